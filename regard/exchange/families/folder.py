"""A folder of Hugging Face's `transformers`: settings, weights, and the files of a tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.config import ModelConfig
from regard.errors import BundleError, ConfigError
from regard.text.vocabularies.imported import TokenizerVocabulary
from regard.text.vocabularies.vocabulary import Vocabulary

if TYPE_CHECKING:
    from torch import Tensor


SETTINGS, GENERATION, TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"
SAFE, PICKLED = "model.safetensors", "pytorch_model.bin"

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "swish": "swish",
    "silu": "swish",
}
"""Hugging Face's names of activations, and ours; the first of several is the one that is exported."""


class ForeignSettings:
    """The content of `config.json`, and the problems with it."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.problems: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        """A setting, or its default."""
        return self.values.get(name, default)

    def number(self, name: str) -> int:
        """A required setting, a whole number."""
        value = self.values.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        self.problems.append(f"{name} = {value!r} is not a whole number")
        return 1

    def same(self, name: str, other: str) -> int:
        """Two settings that must be equal, as regard has only one."""
        first, second = self.number(name), self.number(other)
        if first != second:
            self.problems.append(f"{name} = {first} and {other} = {second} must be equal")
        return first

    def only(self, name: str, *values: Any) -> None:
        """Refuse other values of a setting than these."""
        if (value := self.get(name)) not in (None, *values):
            known = " or ".join(map(repr, values))
            self.problems.append(f"{name} = {value!r} is not supported, only {known}")

    def activation(self, name: str) -> Any:
        """Our name of the activation in a setting."""
        value = self.get(name)
        if value not in ACTIVATIONS:
            self.problems.append(f"{name} = {value!r} is not supported, only {', '.join(ACTIVATIONS)}")
        return ACTIVATIONS.get(value, "relu")


class ForeignFolder:
    """An opened Hugging Face folder."""

    def __init__(self, folder: Path | str) -> None:
        """Read the settings.

        Raises:
            BundleError: the folder or its settings are missing.
        """
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise BundleError("the folder does not exist", str(folder), code="missing_folder")
        if not (self.folder / SETTINGS).is_file():
            problem = f"is not a Hugging Face folder: it has no {SETTINGS}"
            raise BundleError(problem, str(folder), code="missing_file")
        self.settings = ForeignSettings(self.table(SETTINGS))
        self.generation, self.tokenizer = self.table(GENERATION), self.table(TOKENIZER)

    @property
    def forbidden(self) -> list[int]:
        """Single tokens that must never be generated (`bad_words_ids`)."""
        words = self.generation.get("bad_words_ids") or self.settings.get("bad_words_ids") or []
        return [word[0] for word in words if len(word) == 1]

    def has(self, name: str) -> bool:
        """Whether the folder has a file."""
        return (self.folder / name).is_file()

    def bytes_of(self, name: str) -> bytes:
        """The content of a file.

        Raises:
            BundleError: the file cannot be read.
        """
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise self._unreadable(name, error.strerror) from error

    def table(self, name: str) -> dict[str, Any]:
        """The content of a JSON file; empty if there is none.

        Raises:
            BundleError: the file has another content.
        """
        if not self.has(name):
            return {}
        try:
            table = json.loads(self.bytes_of(name))
        except (ValueError, RecursionError) as error:
            raise self._unreadable(name, f"not JSON: {error}") from error
        if not isinstance(table, dict):
            raise self._unreadable(name, "not a JSON object")
        return table

    def weights(self) -> dict[str, Tensor]:
        """All weights by name, from one file or several.

        Raises:
            BundleError: the weights are missing, or cannot be read.
        """
        for name in (SAFE, PICKLED):
            if self.has(name):
                return self._weights_in(name)
            if self.has(f"{name}.index.json"):
                parts = sorted(set(self.table(f"{name}.index.json").get("weight_map", {}).values()))
                return {key: weight for part in parts for key, weight in self._weights_in(part).items()}
        problem = f"has no weights: neither {SAFE} nor {PICKLED}"
        raise BundleError(problem, str(self.folder), code="missing_file")

    def _weights_in(self, name: str) -> dict[str, Tensor]:
        import pickle

        import safetensors
        import torch
        from safetensors.torch import load

        try:
            if name.endswith(".safetensors"):
                return load(self.bytes_of(name))
            # `weights_only`: a pickle could execute code otherwise.
            pickled = torch.load(self.folder / name, map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, pickle.UnpicklingError, safetensors.SafetensorError) as error:
            raise self._unreadable(name, error) from error
        return {key: weight for key, weight in pickled.items() if isinstance(weight, torch.Tensor)}

    def _unreadable(self, name: str, why: object) -> BundleError:
        return BundleError(f"{name} cannot be read: {why}", str(self.folder), code="unreadable_file")


# --- tokenizers -------------------------------------------------------------------------------------------


DEFINITION, WORDS, NUMBERS, MERGES = "tokenizer.json", "vocab.txt", "vocab.json", "merges.txt"


def wordpiece(folder: ForeignFolder) -> str | None:
    """BERT's tokenizer definition: `tokenizer.json`, or one made from `vocab.txt`; None without either."""
    if folder.has(DEFINITION):
        return folder.bytes_of(DEFINITION).decode()
    if not folder.has(WORDS):
        return None
    tokenizers = _library()
    words = folder.bytes_of(WORDS).decode().splitlines()
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=folder.tokenizer.get("tokenize_chinese_chars", True),
        strip_accents=folder.tokenizer.get("strip_accents"),
        lowercase=folder.tokenizer.get("do_lower_case", True),
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece(prefix="##")
    tokenizer.add_special_tokens(["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"])
    return str(tokenizer.to_str())


def byte_level(folder: ForeignFolder, special: list[str]) -> str | None:
    """GPT-2's or BART's: `tokenizer.json`, or one made from `vocab.json` and `merges.txt`; None without."""
    if folder.has(DEFINITION):
        return folder.bytes_of(DEFINITION).decode()
    if not (folder.has(NUMBERS) and folder.has(MERGES)):
        return None
    tokenizers = _library()
    lines = folder.bytes_of(MERGES).decode().splitlines()
    pairs = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=folder.table(NUMBERS), merges=pairs))
    space = folder.tokenizer.get("add_prefix_space", False)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=space)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    return str(tokenizer.to_str())


def id_of(definition: str, token: str, folder: ForeignFolder) -> int:
    """The id of a special token.

    Raises:
        BundleError: the tokenizer does not have it.
    """
    number: int | None = _library().Tokenizer.from_str(definition).token_to_id(token)
    if number is None:
        raise BundleError(f"the tokenizer has no {token}", str(folder.folder), code="missing_token")
    return number


def words_by_id(definition: str, size: int) -> list[str]:
    """The tokens of a vocabulary as the tokenizer writes them; ids that have none are numbered, `<7>`."""
    tokenizer = _library().Tokenizer.from_str(definition)
    return [tokenizer.id_to_token(i) or f"<{i}>" for i in range(size)]


def readable_by(reader: str, vocabulary: Vocabulary) -> TokenizerVocabulary:
    """The vocabulary, if a tokenizer class of Hugging Face can read it.

    Raises:
        ConfigError: it is a SentencePiece model.
    """
    if isinstance(vocabulary, TokenizerVocabulary):
        return vocabulary
    problem = f"the vocabulary is a SentencePiece model, which {reader} cannot read"
    raise ConfigError(problem, code="inexpressible_vocabulary")


def tokenizer_files(
    reader: str, vocabulary: Vocabulary, config: ModelConfig, **settings: Any
) -> dict[str, bytes]:
    """The files of a tokenizer class of Hugging Face, by name."""
    about = {"tokenizer_class": reader, "model_max_length": config.max_length, **settings}
    definition = readable_by(reader, vocabulary).tokenizer_json.encode()
    return {DEFINITION: definition, TOKENIZER: json.dumps(about, indent=2).encode()}


def _library() -> Any:
    try:
        import tokenizers
    except ImportError as error:
        problem = "this model needs the library tokenizers: pip install 'regard[exchange]'"
        raise ConfigError(problem, code="missing_library") from error
    return tokenizers
