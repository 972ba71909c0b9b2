"""Train, run, serve and look inside Transformers, as *Attention Is All You Need* defines them.

Every public name is here. Each is imported when it is first used, so that `import regard`, and with it the
command line's help, does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.version import __version__

if TYPE_CHECKING:
    from regard.bundle import Bundle, compact, describe_bundle, load_bundle, save_bundle, weights_hash
    from regard.config import (
        DataConfig,
        DecodingConfig,
        ModelConfig,
        RunConfig,
        TrainingConfig,
        preset,
        read_config,
        registries,
        to_toml,
    )
    from regard.engine.options import ClassifyOptions, GenerateOptions, TranslateOptions
    from regard.engine.results import Classification, Continuation, Result, Score
    from regard.errors import BundleError, ConfigError, CorpusError, RegardError, RequestError, ShapeError
    from regard.exchange.huggingface import import_model
    from regard.loaded import load
    from regard.model.add_and_norm import AddAndNorm
    from regard.model.classifier import Classifier
    from regard.model.decoder import Decoder, DecoderLayer
    from regard.model.embedding import Embedding
    from regard.model.encoder import Encoder, EncoderLayer
    from regard.model.feed_forward import FeedForward
    from regard.model.language_model import LanguageModel
    from regard.model.multi_head_attention import MultiHeadAttention
    from regard.model.scaled_dot_product_attention import attention_weights, scaled_dot_product_attention
    from regard.model.taps import addresses, recording
    from regard.model.transformer import Transformer
    from regard.packing import Packed, pack, unpack
    from regard.tasks.loaded import LoadedModel
    from regard.tasks.loaded.classifier import LoadedClassifier
    from regard.tasks.loaded.generator import LoadedGenerator
    from regard.tasks.loaded.translator import LoadedTranslator
    from regard.tasks.pairs import PairsTask
    from regard.tasks.task import Lesson, Task
    from regard.training.run import Run, evaluate, train

# The same list as above: that one is for type checkers, this one runs. A test holds them equal.
_HOMES = {
    "AddAndNorm": "regard.model.add_and_norm",
    "addresses": "regard.model.taps",
    "attention_weights": "regard.model.scaled_dot_product_attention",
    "Bundle": "regard.bundle",
    "BundleError": "regard.errors",
    "Classification": "regard.engine.results",
    "Classifier": "regard.model.classifier",
    "ClassifyOptions": "regard.engine.options",
    "compact": "regard.bundle",
    "ConfigError": "regard.errors",
    "Continuation": "regard.engine.results",
    "CorpusError": "regard.errors",
    "DataConfig": "regard.config",
    "Decoder": "regard.model.decoder",
    "DecoderLayer": "regard.model.decoder",
    "DecodingConfig": "regard.config",
    "describe_bundle": "regard.bundle",
    "Embedding": "regard.model.embedding",
    "Encoder": "regard.model.encoder",
    "EncoderLayer": "regard.model.encoder",
    "evaluate": "regard.training.run",
    "FeedForward": "regard.model.feed_forward",
    "GenerateOptions": "regard.engine.options",
    "import_model": "regard.exchange.huggingface",
    "LanguageModel": "regard.model.language_model",
    "Lesson": "regard.tasks.task",
    "load": "regard.loaded",
    "load_bundle": "regard.bundle",
    "LoadedClassifier": "regard.tasks.loaded.classifier",
    "LoadedGenerator": "regard.tasks.loaded.generator",
    "LoadedModel": "regard.tasks.loaded",
    "LoadedTranslator": "regard.tasks.loaded.translator",
    "ModelConfig": "regard.config",
    "MultiHeadAttention": "regard.model.multi_head_attention",
    "pack": "regard.packing",
    "Packed": "regard.packing",
    "PairsTask": "regard.tasks.pairs",
    "preset": "regard.config",
    "read_config": "regard.config",
    "recording": "regard.model.taps",
    "RegardError": "regard.errors",
    "registries": "regard.config",
    "RequestError": "regard.errors",
    "Result": "regard.engine.results",
    "Run": "regard.training.run",
    "RunConfig": "regard.config",
    "save_bundle": "regard.bundle",
    "scaled_dot_product_attention": "regard.model.scaled_dot_product_attention",
    "Score": "regard.engine.results",
    "ShapeError": "regard.errors",
    "Task": "regard.tasks.task",
    "to_toml": "regard.config",
    "train": "regard.training.run",
    "TrainingConfig": "regard.config",
    "Transformer": "regard.model.transformer",
    "TranslateOptions": "regard.engine.options",
    "unpack": "regard.packing",
    "weights_hash": "regard.bundle",
}

__all__ = [  # noqa: RUF022 - sorted without regard to case, as a reader looks names up
    "__version__",
    "AddAndNorm",
    "addresses",
    "attention_weights",
    "Bundle",
    "BundleError",
    "Classification",
    "Classifier",
    "ClassifyOptions",
    "compact",
    "ConfigError",
    "Continuation",
    "CorpusError",
    "DataConfig",
    "Decoder",
    "DecoderLayer",
    "DecodingConfig",
    "describe_bundle",
    "Embedding",
    "Encoder",
    "EncoderLayer",
    "evaluate",
    "FeedForward",
    "GenerateOptions",
    "import_model",
    "LanguageModel",
    "Lesson",
    "load",
    "load_bundle",
    "LoadedClassifier",
    "LoadedGenerator",
    "LoadedModel",
    "LoadedTranslator",
    "ModelConfig",
    "MultiHeadAttention",
    "pack",
    "Packed",
    "PairsTask",
    "preset",
    "read_config",
    "recording",
    "RegardError",
    "registries",
    "RequestError",
    "Result",
    "Run",
    "RunConfig",
    "save_bundle",
    "scaled_dot_product_attention",
    "Score",
    "ShapeError",
    "Task",
    "to_toml",
    "train",
    "TrainingConfig",
    "Transformer",
    "TranslateOptions",
    "unpack",
    "weights_hash",
]


def __getattr__(name: str) -> Any:
    """Import the home of a public name on first use, and keep the name for the next."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, also those not imported yet."""
    return sorted({*globals(), *__all__})
