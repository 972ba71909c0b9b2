"""The definition of a tokenizer, `tokenizer.json`: read from a folder, or made from files of older ones."""

from __future__ import annotations

from typing import Any

from regard.errors import BundleError, ConfigError
from regard.exchange.huggingface.folder import ForeignFolder
from regard.text.vocabularies.imported import TokenizerVocabulary
from regard.text.vocabularies.vocabulary import Vocabulary

DEFINITION, WORDS, NUMBERS, MERGES = "tokenizer.json", "vocab.txt", "vocab.json", "merges.txt"


def wordpiece(folder: ForeignFolder) -> str | None:
    """BERT's, from `vocab.txt` where there is nothing newer; None where there is nothing at all."""
    if folder.has(DEFINITION):
        return folder.bytes_of(DEFINITION).decode()
    if not folder.has(WORDS):
        return None
    tokenizers = _library()
    words = folder.bytes_of(WORDS).decode().splitlines()
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]")
    )
    made.normalizer = tokenizers.normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=folder.tokenizer.get("tokenize_chinese_chars", True),
        strip_accents=folder.tokenizer.get("strip_accents"),
        lowercase=folder.tokenizer.get("do_lower_case", True),
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.decoder = tokenizers.decoders.WordPiece(prefix="##")
    made.add_special_tokens(["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"])
    return str(made.to_str())


def byte_level(folder: ForeignFolder, special: list[str]) -> str | None:
    """GPT-2's and BART's, from `vocab.json` and `merges.txt` where there is nothing newer."""
    if folder.has(DEFINITION):
        return folder.bytes_of(DEFINITION).decode()
    if not (folder.has(NUMBERS) and folder.has(MERGES)):
        return None
    tokenizers = _library()
    lines = folder.bytes_of(MERGES).decode().splitlines()
    pairs = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=folder.table(NUMBERS), merges=pairs))
    space = folder.tokenizer.get("add_prefix_space", False)
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=space)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(special)
    return str(made.to_str())


def id_of(definition: str, token: str, folder: ForeignFolder) -> int:
    """The id of a special token.

    Raises:
        BundleError: there is none.
    """
    found: int | None = _library().Tokenizer.from_str(definition).token_to_id(token)
    if found is None:
        raise BundleError(f"the tokenizer has no {token}", str(folder.folder))
    return found


def read_by(reader: str, vocabulary: Vocabulary) -> TokenizerVocabulary:
    """A vocabulary that one of Hugging Face's tokenizers can read.

    Raises:
        ConfigError: it is one of SentencePiece's.
    """
    if isinstance(vocabulary, TokenizerVocabulary):
        return vocabulary
    raise ConfigError(f"the vocabulary is one of SentencePiece, which {reader} cannot read")


def _library() -> Any:
    try:
        import tokenizers
    except ImportError as error:
        missing = "texts of this model are cut by the library tokenizers, which is not installed"
        raise ConfigError(f"{missing}: pip install 'regard[exchange]'") from error
    return tokenizers
