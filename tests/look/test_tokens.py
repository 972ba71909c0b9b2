import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from regard.look.trace.tokens import Tokens, display_piece, read_tokens
from regard.text.vocabularies.imported import _BYTES, TokenizerVocabulary, tokenizer_model
from tests.look.traced import subwords


def read(text, *, before=(), after=()):
    return read_tokens(subwords(), [*before, *subwords().encode_one(text), *after])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the cat's mat, 1984!", ["the", "cat's", "mat", ",", "1984", "!"]),
        ("猫坐在垫子上。", ["猫", "坐", "在", "垫", "子", "上", "。"]),
        ("龘ok é", ["龘", "ok", "é"]),
        ("cat猫 cat", ["cat", "猫", "cat"]),
        ("a-b (the)", ["a-b", "(", "the", ")"]),
        ("cat ! ( a", ["cat", "!", "(", "a"]),
    ],
)
def test_subwords_are_joined_and_chinese_is_shown_by_characters(text, words):
    assert [word.text for word in read(text).words] == words


def test_the_bytes_of_a_letter_show_the_letter_and_their_number():
    tokens = read("龘").tokens
    spelt = [token for token in tokens if token.piece.startswith("<0x")]
    assert len(spelt) == 3
    assert [token.text for token in spelt] == ["龘₁", "龘₂", "龘₃"]
    assert {(token.start, token.end) for token in spelt} == {(0, 1)}
    assert len({token.word for token in spelt}) == 1


def test_bytes_that_make_up_no_letter_are_shown_as_such():
    broken = [token.id for token in read("龘").tokens if token.piece.startswith("<0x")][:2]
    tokens = read_tokens(subwords(), [*broken, *subwords().encode_one("猫")])
    assert [token.text for token in tokens.tokens][:2] == ["\ufffd", "\ufffd"]
    assert tokens.text == subwords().decode(tokens.ids)


def test_special_tokens_stand_for_no_text_and_are_words_of_their_own():
    tag, bos, eos = subwords().tag_id("en"), subwords().bos_id, subwords().eos_id
    tokens = read("cat", before=[bos, tag], after=[eos])
    assert [word.text for word in tokens.words] == ["<s>", "<2en>", "cat", "</s>"]
    assert [(token.start, token.end, token.special) for token in tokens.tokens] == [
        (0, 0, True), (0, 0, True), (0, 3, False), (3, 3, True),
    ]  # fmt: skip


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▁"), max_size=20))
def test_a_text_is_spelt_by_its_tokens_from_end_to_end(text):
    tokens = read(text)
    assert tokens.text == subwords().decode(tokens.ids)
    covered = 0
    for token in tokens.tokens:
        assert token.start in (covered, tokens.tokens[0].start) or token.end == covered
        covered = max(covered, token.end)
    assert covered == len(tokens.text)


@given(st.lists(st.integers(0, 327), max_size=12))
def test_whatever_a_model_writes_is_read_as_sentencepiece_reads_it(ids):
    tokens = read_tokens(subwords(), ids)
    assert tokens.text == subwords().decode(ids)
    assert tokens.ids == tuple(ids)
    words = tokens.words
    assert [word.first for word in words[1:]] == [word.last + 1 for word in words[:-1]]
    assert Tokens.from_json(tokens.to_json()) == tokens


def test_a_letter_belongs_to_every_token_that_has_some_of_its_bytes():
    letter = {byte: sign for sign, byte in _BYTES.items()}
    spelt = [b"a", b" \xe7\x8c", b"\xab\xe4", b"\xbd\xa0", b"\xe4", b" b"]
    numbers = {"".join(letter[byte] for byte in token): i for i, token in enumerate(spelt)}
    definition = Tokenizer(models.BPE(vocab=numbers, merges=[])).to_str()
    model = tokenizer_model("byte-level", definition, vocab_size=len(spelt), bos=0, eos=0)
    tokens = read_tokens(TokenizerVocabulary(model), range(len(spelt)))
    assert tokens.text == "a 猫你\ufffd b"
    assert [(each.start, each.end) for each in tokens] == [(0, 1), (1, 3), (2, 4), (3, 4), (4, 5), (5, 7)]


def test_a_space_alone_is_shown_as_one():
    piece = next(i for i in range(subwords().vocab_size) if subwords().pieces([i]) == ["▁"])
    tokens = read_tokens(subwords(), [piece, *subwords().encode_one("cat"), piece, piece])
    assert [tokens.texts[i] for i in (0, -2, -1)] == ["␣"] * 3
    assert display_piece("▁") == "␣"
