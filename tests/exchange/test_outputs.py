"""`generate()` of an exported model, called without arguments, writes what regard writes."""

import json

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import regard
from regard.bundle import load_bundle, save_bundle
from regard.bundle.bundle import describe_bundle
from regard.config import DecodingConfig, ModelConfig, TaskConfig
from regard.exchange.generation import our_penalty, their_penalty
from regard.exchange.huggingface import import_model, write_huggingface
from regard.exchange.outputs import LIMIT, LOOP, PENALTY, Agreement
from regard.exchange.sample_texts import sample_texts
from regard.model.build import build
from regard.text import learn_subwords
from regard.text.vocabularies import read_vocabulary
from tests.exchange.folders import SIZES
from tests.exchange.foreign import ENGLISH, GERMAN, bart, bert, gpt2, marian, sentences
from tests.model.small import stirred
from tests.refusals import refused

N = 13


def ours(folder, *, ending=5.0, extra=61, alpha=0.0, beam=3, **changes):
    """A model whose outputs end sooner the higher `ending` is: the bias of the end token."""
    lines = sentences(ENGLISH) + sentences(GERMAN)
    subwords = learn_subwords(lines, 330, tags=["en", "de"], threads=1)
    vocabulary = read_vocabulary(subwords)
    torch.manual_seed(2)
    sizes = SIZES | {"output_bias": True, "vocab_size": vocabulary.vocab_size} | changes
    model = stirred(build(ModelConfig(**sizes)))
    with torch.no_grad():
        model.output_probabilities.bias[vocabulary.eos_id] += ending
    return save_bundle(
        folder,
        model,
        subwords=subwords,
        task=TaskConfig(source="en", target="de", both_directions=True),
        decoding=DecodingConfig(beam_size=beam, length_penalty=alpha, extra_length=extra),
    )


def exported(model, out, **options):
    original = regard.load(model, engine="torch", device="cpu", quantisation="float32")
    return write_huggingface(model, out, original=original, n_texts=N, **options)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_generate_without_arguments_gives_the_same_translations(tmp_path, norm, beam):
    model = ours(tmp_path / "ours", norm_position=norm, beam=beam)
    verified = exported(model, tmp_path / "theirs")
    assert (verified.agreement.n, verified.agreement.n_equal) == (N, N)
    origin = "sentences of random words from the vocabulary"
    assert str(verified).endswith(f"verified: {N} of {N} translations equal those of regard ({origin})")
    # And without the code under test:
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "theirs")
    theirs = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "theirs")
    loaded = regard.load(model, engine="torch", device="cpu")
    for text in sentences(ENGLISH, 3, seed=8):
        ids = theirs.generate(**tokenizer(f">>de<<{text}", return_tensors="pt"))
        expected = loaded.translate(text, source="en", to="de", whole_lines=True, check_numbers=False).text
        assert tokenizer.decode(ids[0], skip_special_tokens=True) == expected.strip()


def test_the_file_has_what_generate_needs(tmp_path):
    exported(ours(tmp_path / "ours", alpha=0.6), tmp_path / "theirs")
    settings = json.loads((tmp_path / "theirs" / "generation_config.json").read_text())
    assert 0 < settings.pop("length_penalty") < 0.7
    assert settings == {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "decoder_start_token_id": 1,
        "forced_eos_token_id": None,
        "do_sample": False,
        "num_beams": 3,
        "max_length": SIZES["max_length"],
        "early_stopping": False,
    }


def test_outputs_that_differ_are_counted_with_the_reason_and_not_called_verified(tmp_path):
    model = ours(tmp_path / "ours", ending=-9.0, extra=1)  # nothing ends by itself
    verified = exported(model, tmp_path / "theirs")
    assert verified.agreement.n_equal < N
    assert {reason for reason, _ in verified.agreement.reasons} <= {LIMIT, LOOP}
    assert "verified" not in str(verified)
    assert f"{verified.agreement.n_equal} of {N} translations equal" in str(verified)


def test_tokens_that_are_never_generated_are_so_there_too(tmp_path):
    marian(tmp_path / "theirs")
    model = import_model(tmp_path / "theirs", tmp_path / "ours")
    write_huggingface(model, tmp_path / "back")
    settings = json.loads((tmp_path / "back" / "generation_config.json").read_text())
    padding = json.loads((tmp_path / "back" / "vocab.json").read_text())["<pad>"]
    assert settings["bad_words_ids"] == [[padding]]
    again = load_bundle(import_model(tmp_path / "back", tmp_path / "again"))
    assert torch.equal(
        again.model.output_probabilities.bias, load_bundle(model).model.output_probabilities.bias
    )


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (gpt2, "continuations"),
        (lambda folder: bert(folder, "BertForSequenceClassification"), "labels"),
        (
            lambda folder: bert(
                folder, "BertForSequenceClassification", problem_type="multi_label_classification"
            ),
            "labels",
        ),
    ],
    ids=["GPT-2", "BERT", "BERT, several labels"],
)
def test_continuations_and_labels_are_compared_too(tmp_path, make, kind):
    make(tmp_path / "theirs")
    model = import_model(tmp_path / "theirs", tmp_path / "ours")
    agreement = exported(model, tmp_path / "back").agreement
    assert (agreement.kind, agreement.n, agreement.n_equal) == (kind, N, N)


def test_a_bart_says_the_same(tmp_path):
    theirs = bart(tmp_path / "theirs", num_beams=1)
    with torch.no_grad():
        theirs.final_logits_bias[0, theirs.config.eos_token_id] = 3
    theirs.save_pretrained(tmp_path / "theirs")
    model = import_model(tmp_path / "theirs", tmp_path / "ours")
    agreement = exported(model, tmp_path / "back").agreement
    assert agreement.n == N
    assert {reason for reason, _ in agreement.reasons} <= {LIMIT, LOOP}


def test_texts_come_from_a_file_or_the_run_before_the_vocabulary(tmp_path):
    from regard.data.store.writing import write_store

    folder = ours(tmp_path / "run" / "best")
    described, subwords = describe_bundle(folder), load_bundle(folder).subwords
    drawn = sample_texts(described, subwords, N)
    assert len(drawn.texts) == N
    assert {(each.source, each.target) for each in drawn.texts} == {("en", "de"), ("de", "en")}
    vocabulary, data = read_vocabulary(subwords), tmp_path / "run" / "data"
    data.mkdir()
    (data / "subwords.model").write_bytes(subwords)
    texts = ["the cat sat", "zwei Hunde"]
    examples = [
        ([vocabulary.tag_id(to), *vocabulary.encode_one(text).tolist()], vocabulary.encode_one("on").tolist())
        for text, to in zip(texts, ("de", "en"), strict=True)
    ]
    write_store(
        data / "valid", examples, sides=("inputs", "outputs"), key="any", vocab_size=vocabulary.vocab_size
    )
    found = sample_texts(described, subwords, N)
    assert found.origin == "validation texts of the run"
    assert [(each.text, each.target) for each in found.texts] == list(zip(texts, ("de", "en"), strict=True))
    lines = tmp_path / "lines.txt"
    lines.write_bytes("\ufeffdie Katze\r\n\r\nthe cat sat on the mat\r\n".encode())
    given = sample_texts(described, subwords, N, lines)
    assert [(each.text, each.source) for each in given.texts] == [
        ("die Katze", "en"),  # the script does not tell, so it is the first direction
        ("the cat sat on the mat", "en"),
    ]
    lines.write_text("\n \n")
    with refused("no_text", str(lines)):
        sample_texts(described, subwords, N, lines)
    lines.write_bytes(b"\xff\xfe\x00")
    with refused("unreadable_file", str(lines)):
        sample_texts(described, subwords, N, lines)


def test_the_length_penalty_is_converted_for_a_length_and_fitted_to_outputs():
    assert their_penalty(0.0, [[(-1.0, 7)]]) == 0
    assert our_penalty(their_penalty(0.6)) == pytest.approx(0.6, abs=1e-3)
    assert their_penalty(1.0, [[(-3.0, 15)]]) == pytest.approx(15 / 20)
    # At 0.75 the longer output would win, though our penalty prefers the shorter one.
    close = [(-4.0, 15), (-4.0 * (21 / 15) ** 0.735, 21)]
    fitted = their_penalty(1.0, [close])
    assert fitted <= 0.73
    assert close[0][0] / 15**fitted > close[1][0] / 21**fitted


def test_an_agreement_says_what_was_compared():
    assert str(Agreement("labels", "lines of a", 0)) == "no labels compared: there are no texts"
    half = Agreement("translations", "lines of a", 6, ((PENALTY, 2), (LIMIT, 1)))
    assert half.n_equal == 3
    assert str(half).splitlines() == [
        "3 of 6 translations equal those of regard (lines of a)",
        f"  2 differ: {PENALTY}",
        f"  1 differ: {LIMIT}",
    ]


@pytest.mark.slow
def test_the_bundled_translator_says_the_same_there(tmp_path):
    texts = tmp_path / "texts.txt"
    lines = [
        "The cat sat on the mat.",
        "We have to leave early tomorrow.",
        "The model reads the whole sentence before it writes.",
        "我们明天得早点出发。",
        "这本书很有意思。",
        "他每天早上喝一杯咖啡。",
    ]
    texts.write_text("\n".join(lines), encoding="utf-8")
    agreement = exported("zh-en", tmp_path / "theirs", texts=texts).agreement
    assert (agreement.n, agreement.n_equal) == (len(lines), len(lines)), str(agreement)
