"""What a model folder reads text with is told apart by its bytes, and damage by its name."""

import pickle
import random
from base64 import b64encode

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from regard.text import Subwords, learn_subwords
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.imported import (
    MarianVocabulary,
    TokenizerVocabulary,
    marian_model,
    tokenizer_model,
)
from regard.text.vocabularies.vocabulary import Vocabulary, whole_characters
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


# --- streams ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def merged_bytes():
    """Byte-level BPE whose tokens begin and end inside characters, as a GPT-2's do."""
    letters = pre_tokenizers.ByteLevel.alphabet()
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    lines = ["猫狗猫鸟 😀😁 the cat", "狗鸟猫猫 😁😀 a dog"] * 9
    made.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=300, initial_alphabet=sorted(letters)))
    made.add_special_tokens(["<end>"])
    size = made.get_vocab_size()
    return tokenizer_model("byte-level", made.to_str(), vocab_size=size + 2, bos=size - 1, eos=size - 1)


@pytest.fixture(scope="module")
def wordpiece():
    words = ["[UNK]", "[SEP]", "cat", "dog", "##s", "##ly", ".", "'", "s", "don", "t", ","]
    made = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    made.decoder = decoders.WordPiece()
    made.add_special_tokens(["[SEP]"])
    return tokenizer_model("wordpiece", made.to_str(), vocab_size=len(words), bos=1, eos=1)


KINDS = ["subwords", "marian", "byte_level", "merged_bytes", "wordpiece"]


class Counting(Vocabulary):
    """A vocabulary that counts the ids that it decodes."""

    def __init__(self, of):
        self.of, self.n_decoded, self.vocab_size = of, 0, of.vocab_size

    def decode(self, ids):
        self.n_decoded += len(ids)
        return self.of.decode(ids)

    def is_special(self, token):
        return self.of.is_special(token)

    def encode(self, texts, *, threads=1):
        return self.of.encode(texts, threads=threads)

    def pieces(self, ids):
        return self.of.pieces(ids)


def drawn_ids(vocabulary, rng, n):
    """Random tokens in runs of a kind: any, bytes, special ones, spaces, one token again and again."""
    pieces = vocabulary.pieces(range(vocabulary.vocab_size))
    every = list(range(vocabulary.vocab_size))
    kinds = [
        every,
        [i for i in every if pieces[i].startswith("<0x")],
        [i for i in every if vocabulary.is_special(i)],
        [i for i in every if pieces[i].startswith("▁")],
        [rng.choice(every)],
    ]
    ids = []
    while len(ids) < n:
        ids += rng.choices(rng.choice([kind for kind in kinds if kind]), k=rng.choice([1, 2, 3, 5, 40]))
    return ids[:n]


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_has_the_text_of_the_whole(kind, request):
    vocabulary = read_vocabulary(request.getfixturevalue(kind)).outputs
    rng = random.Random(7)
    for n in [*range(12), *[30] * 150, *range(60, 70), 400]:
        ids = drawn_ids(vocabulary, rng, n)
        assert "".join(whole_characters(vocabulary, ids)) == vocabulary.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prompt", ["", "the cat", " ", "the ", "猫", "the cat sat on 😀"])
def test_a_stream_continues_a_prompt(kind, prompt, request):
    vocabulary = read_vocabulary(request.getfixturevalue(kind)).outputs
    before = vocabulary.encode_one(prompt).tolist()
    rng = random.Random(5)
    for n in [1, 2, 3, *[20] * 30]:
        ids = drawn_ids(vocabulary, rng, n)
        whole = vocabulary.decode([*before, *ids])
        assert "".join(whole_characters(vocabulary, ids, before)) == whole[len(vocabulary.decode(before)) :]


@pytest.mark.parametrize("kind", ["subwords", "byte_level", "merged_bytes", "wordpiece"])
def test_the_work_for_a_token_does_not_grow_with_the_text(kind, request):
    vocabulary = read_vocabulary(request.getfixturevalue(kind))
    rng = random.Random(3)
    runs = [drawn_ids(vocabulary, rng, 2000)]
    runs += [[i] * 2000 for i in rng.sample(range(vocabulary.vocab_size), min(40, vocabulary.vocab_size))]
    for ids in runs:
        counting = Counting(vocabulary)
        assert "".join(whole_characters(counting, ids)) == vocabulary.decode(ids)
        assert counting.n_decoded <= 30 * len(ids)
    text = vocabulary.encode_one("the cat sat on a mat " * 100).tolist()
    alone, after = Counting(vocabulary), Counting(vocabulary)
    assert "".join(whole_characters(after, text, text)).strip() == vocabulary.decode(text).strip()
    assert "".join(whole_characters(alone, text)) == vocabulary.decode(text)
    assert after.n_decoded <= alone.n_decoded + 20 <= 6 * len(text) + 20
