"""What a model folder reads text with is told apart by its bytes, and damage by its name."""

import pickle
from base64 import b64encode

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from regard.text import Subwords, learn_subwords
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.imported import (
    MarianVocabulary,
    TokenizerVocabulary,
    marian_model,
    tokenizer_model,
)
from tests.refusals import refused

LINES = ["the cat sat on a mat", "two dogs ran after three birds"] * 20


@pytest.fixture(scope="module")
def subwords():
    return learn_subwords(LINES, 300, threads=1)


@pytest.fixture(scope="module")
def marian(subwords):
    pieces = Subwords(subwords).pieces(range(3, Subwords(subwords).vocab_size))
    names = ["</s>", "<unk>", *reversed(pieces), "<pad>"]
    return marian_model(subwords, subwords, {piece: i for i, piece in enumerate(names)}, len(names) - 1)


@pytest.fixture(scope="module")
def byte_level():
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    numbers = {letter: i for i, letter in enumerate([*letters, "<end>"])}
    made = Tokenizer(models.BPE(vocab=numbers, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<end>"])
    return tokenizer_model(
        "byte-level", made.to_str(), vocab_size=259, bos=256, eos=256, opening=(256,), closing=(256,)
    )


def test_each_kind_is_known_by_its_bytes_and_travels_between_processes(subwords, marian, byte_level):
    kinds = {subwords: Subwords, marian: MarianVocabulary, byte_level: TokenizerVocabulary}
    for model, kind in kinds.items():
        found = read_vocabulary(model)
        assert type(found) is kind
        assert found.model == model
        again = pickle.loads(pickle.dumps(found.outputs))
        assert again.encode_one("two cats").tolist() == found.outputs.encode_one("two cats").tolist()
        assert found.decode(found.encode_one("two cats")) == "two cats"
        with refused("unknown_id"):
            found.pieces([found.vocab_size])


def test_a_piece_has_the_number_of_the_table_and_not_of_the_model(subwords, marian):
    ours, theirs = Subwords(subwords), read_vocabulary(marian)
    cut = ours.pieces(ours.encode_one("the cat"))
    assert theirs.pieces(theirs.encode_one("the cat")) == cut
    assert theirs.encode_one("the cat").tolist() != ours.encode_one("the cat").tolist()
    assert theirs.pieces([theirs.bos_id, theirs.eos_id]) == ["<pad>", "</s>"]


def test_what_opens_and_closes_a_text_is_the_vocabulary_s(byte_level):
    found = read_vocabulary(byte_level)
    ids = found.encode_one("é!")
    assert found.pieces(ids) == ["<end>", "<0xC3>", "<0xA9>", "!"]
    assert found.pieces([257, 258]) == ["<257>", "<258>"]  # ids that no piece has
    assert found.closed(ids, 10).tolist() == [*ids, 256]
    assert found.closed(ids, 3).tolist() == [*ids[:2], 256]
    assert found.begun([]) == [256]
    with refused("missing_token", "[CLS]"):
        _ = found.cls_id


@pytest.mark.parametrize(
    ("model", "code", "place"),
    [
        (b"", "damaged_vocabulary", "SentencePiece"),
        (b"{", "damaged_vocabulary", ""),
        (b'{"kind": "morse"}', "unknown_vocabulary", "'morse'"),
        (b'{"kind": "marian"}', "damaged_vocabulary", "pieces"),
        (b'{"kind": "byte-level"}', "damaged_vocabulary", "vocab_size"),
        (b'{"kind": "marian", "start": 0, "pieces": [], "source": "eA=="}', "damaged_vocabulary", ""),
    ],
)
def test_damage_is_named(model, code, place):
    with refused(code, place):
        read_vocabulary(model)


def test_a_table_that_skips_a_number_or_lacks_what_it_needs_is_refused(subwords):
    with refused("damaged_vocabulary", "vocab.json"):
        marian_model(subwords, subwords, {"</s>": 0, "<unk>": 2}, 0)
    with refused("damaged_vocabulary", "<unk>"):
        marian_model(subwords, subwords, {"</s>": 0}, 0)
    assert (
        b64encode(subwords).decode() in marian_model(subwords, subwords, {"</s>": 0, "<unk>": 1}, 0).decode()
    )
