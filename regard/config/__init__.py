"""Configuration: frozen values, read once; one error reports all of their mistakes. Imports no torch."""

from regard.config import registries
from regard.config.data import DataConfig
from regard.config.decoding import DecodingConfig
from regard.config.describe import descriptions, reference, settings, to_toml
from regard.config.model import (
    Architecture,
    ModelConfig,
    NormPosition,
    PositionsName,
    SimilarityName,
)
from regard.config.presets import PRESETS, preset, summary
from regard.config.reading import read_config, written_task
from regard.config.run import SECTIONS, RunConfig
from regard.config.task import TaskConfig, TaskName
from regard.config.training import TrainingConfig

__all__ = [
    "PRESETS",
    "SECTIONS",
    "Architecture",
    "DataConfig",
    "DecodingConfig",
    "ModelConfig",
    "NormPosition",
    "PositionsName",
    "RunConfig",
    "SimilarityName",
    "TaskConfig",
    "TaskName",
    "TrainingConfig",
    "descriptions",
    "preset",
    "read_config",
    "reference",
    "registries",
    "settings",
    "summary",
    "to_toml",
    "written_task",
]
