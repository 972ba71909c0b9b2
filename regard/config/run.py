"""The whole configuration of a run, and the stable dotted names of its settings."""

from dataclasses import dataclass, field

from regard.config.checking import Section
from regard.config.data import DataConfig
from regard.config.decoding import DecodingConfig
from regard.config.model import ModelConfig
from regard.config.task import TaskConfig
from regard.config.training import TrainingConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class RunConfig:
    """The configuration of a run: one frozen value a section. The default is the paper's base model."""

    task: TaskConfig = field(default_factory=TaskConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)


SECTIONS: dict[str, type[Section]] = {
    "task": TaskConfig,
    "model": ModelConfig,
    "data": DataConfig,
    "training": TrainingConfig,
    "decoding": DecodingConfig,
}
