"""Texts are continued as the whole model would, end where they should, and grow too long only if asked to."""

import pytest
import torch

from regard.config import ModelConfig
from regard.engine import generator as module
from regard.engine.generator import Generator
from regard.engine.options import GenerateOptions
from regard.engine.streams import UntilStop
from regard.model.language_model import LanguageModel
from regard.packing import pack
from regard.text.vocabularies.subwords import Subwords, learn_subwords
from regard.text.vocabularies.vocabulary import unseen_characters
from tests.refusals import refused

LONGEST = 17


@pytest.fixture(scope="module")
def generator():
    subwords = Subwords(learn_subwords(["the cat sat on the mat", "a dog sat"] * 20, 300))
    torch.manual_seed(3)
    config = ModelConfig(
        architecture="decoder",
        vocab_size=subwords.vocab_size,
        d_model=24,
        n_heads=3,
        d_ff=32,
        decoder_layers=2,
        max_length=LONGEST,
    )
    return Generator(LanguageModel(config), subwords)


def likeliest_by_the_whole(generator, prompt, n):
    """The same, with everything read anew for each token."""
    ids = [generator.subwords.bos_id, *generator.subwords.encode_one(prompt).tolist()]
    start = len(ids)
    with torch.no_grad():
        for _ in range(n):
            ids.append(int(generator.model(pack([ids]))[-1].argmax()))
    return generator.subwords.pieces(ids[start:])


def test_the_cache_changes_nothing(generator):
    found = generator.generate("the cat", GenerateOptions(max_tokens=9, temperature=0))
    assert found.finish == "length"
    assert list(found.tokens) == likeliest_by_the_whole(generator, "the cat", 9)
    assert len(found.token_scores) == 9
    assert all(score < 0 for score in found.token_scores)


def test_a_stream_is_the_same_text_and_a_seed_repeats_it(generator):
    options = GenerateOptions(max_tokens=10, seed=5)
    whole = generator.generate("a dog", options)
    text = whole.text
    stream = generator.stream("a dog", options)
    with refused("not_ended"):
        _ = stream.result
    assert "".join(stream) == text
    assert stream.result == whole
    assert generator.generate("a dog", GenerateOptions(max_tokens=10, seed=6)).text != text


def test_past_the_trained_length_is_an_error_unless_the_window_slides(generator):
    n_prompt = len(generator.subwords.encode_one("the cat"))
    room = LONGEST - n_prompt
    assert len(generator.generate("the cat", GenerateOptions(max_tokens=room)).tokens) == room
    with refused("no_room", f"leaves {room}, not {room + 1}"):
        generator.generate("the cat", GenerateOptions(max_tokens=room + 1))
    with refused("no_room"):  # before the first piece
        generator.stream("the cat", GenerateOptions(max_tokens=room + 1))
    slid = generator.generate("the cat", GenerateOptions(max_tokens=3 * LONGEST, past_length="slide"))
    assert len(slid.tokens) == 3 * LONGEST


def test_a_window_that_has_slid_reads_its_second_half(generator):
    options = GenerateOptions(max_tokens=LONGEST + 3, temperature=0, past_length="slide")
    found = generator.generate("", options)
    every = generator.subwords.pieces(range(generator.subwords.vocab_size))
    ids_of = dict(zip(every, range(len(every)), strict=True))
    ids = [generator.subwords.bos_id, *map(ids_of.__getitem__, found.tokens)]
    window = ids[LONGEST + 1 - LONGEST // 2 : LONGEST + 1]
    with torch.no_grad():
        assert int(generator.model(pack([window]))[-1].argmax()) == ids[LONGEST + 1]


def test_a_prompt_longer_than_the_model_needs_a_window_that_slides(generator):
    prompt = "the cat sat " * LONGEST
    with refused("no_room", "leaves 0,"):
        generator.generate(prompt, GenerateOptions())
    found = generator.generate(prompt, GenerateOptions(max_tokens=5, past_length="slide"))
    assert len(found.tokens) == 5


def test_an_end_ends_the_text(generator, monkeypatch):
    eos, word = generator.subwords.eos_id, generator.subwords.encode_one("the")[0]
    monkeypatch.setattr(module, "likeliest", lambda *_: torch.tensor([eos if _[2] == 2 else int(word)]))
    found = generator.generate("the", GenerateOptions(max_tokens=9, temperature=0))
    assert found.finish == "end"
    assert found.tokens == tuple(generator.subwords.pieces([word, word]))


def test_characters_never_seen_are_read_as_bytes_and_named(generator):
    assert unseen_characters(generator.subwords, "the 龘 cat 龘é\n") == ("龘", "é")
    found = generator.generate("龘", GenerateOptions(max_tokens=3))
    assert found.unseen == ("龘",)


@pytest.mark.parametrize(
    ("pieces", "stop", "text", "stopped"),
    [
        (["ab", "cd", "ef"], ["de"], "abc", True),
        (["ab", "c", "d"], ["cx"], "abcd", False),
        (["aXbY"], ["Y", "X"], "a", True),
        (["abc"], [], "abc", False),
        (["en", "d"], ["end"], "", True),
    ],
)
def test_a_text_ends_before_a_stop_string_wherever_it_is_cut(pieces, stop, text, stopped):
    stopping = UntilStop(stop)
    assert "".join([*map(stopping.add, pieces), stopping.end()]) == text
    assert stopping.stopped == stopped


def test_what_cannot_become_a_stop_string_does_not_wait():
    stopping = UntilStop(["\n\n"])
    assert [stopping.add(piece) for piece in ("one\n", "two", "\n", "\nthree")] == ["one", "\ntwo", "", ""]
    assert (stopping.stopped, stopping.end()) == (True, "")


@pytest.mark.parametrize(
    "options",
    [{"max_tokens": 0}, {"temperature": -1.0}, {"stop": [""]}, {"past_length": "grow"}, {"top_p": 2.0}],
)
def test_nonsense_is_refused(generator, options):
    with refused("bad_option", next(iter(options)).replace("stop", "stop string")):
        generator.generate("the", GenerateOptions(**options))
