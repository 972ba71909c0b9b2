"""How a model is trained. The defaults are the paper's (5); the docstrings are the help text."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from regard.config import registries
from regard.config.checking import not_a_fraction, not_positive, refuse_problems, too_large, too_small

Precision = Literal["auto", "float32", "bfloat16"]
Selection = Literal["last", "best"]
ScheduleName = Annotated[str, registries.schedules]
OptimizerName = Annotated[str, registries.optimizers]
MOST_BATCH_TOKENS = 1 << 30
"""The largest batch: one this large takes hours to fill."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig:
    """How a model is trained: for how long, on which batches, and with which optimizer."""

    SECTION: ClassVar[str] = "training"

    seed: int = 1
    """Seed of every random choice."""
    batch_tokens: int = 25000
    """Output tokens per step, over all processes (5.1)."""
    accumulate: int = 0
    """Number of parts into which a process divides its share of a step; 0 chooses by memory."""
    precision: Precision = "auto"
    """Data type of activations; auto takes bfloat16 where the hardware is fast at it."""
    compile: bool = True
    """Compile training steps on a GPU, if the task allows it; very short runs are faster without."""
    max_steps: int = 100000
    """Number of steps (5.2)."""
    max_epochs: int | None = None
    """Stop after this many epochs; none for no limit."""
    max_minutes: float | None = None
    """Stop after this many minutes of training, interruptions not counted; none for no limit."""
    patience: int = 0
    """Stop after this many validations without a better loss; 0 for never."""
    learning_rate: float | None = None
    """Highest learning rate; none for the paper's, (d_model * warmup_steps)^-0.5 (5.3)."""
    schedule: ScheduleName = "paper"
    """How the rate changes after its warm-up: paper falls with the inverse square root of the step (5.3); the
    others fall to zero at the first limit of max_steps, max_epochs and max_minutes."""
    warmup_steps: int = 4000
    """Steps over which the learning rate grows (5.3)."""
    optimizer: OptimizerName = "adamw"
    """Optimizer; muon makes the updates of the layers' matrices orthogonal."""
    adam_beta1: float = 0.9
    """Decay rate of Adam's first moment (5.3)."""
    adam_beta2: float = 0.98
    """Decay rate of Adam's second moment (5.3)."""
    adam_epsilon: float = 1e-9
    """Added to Adam's denominator (5.3)."""
    weight_decay: float = 0.0
    """Decoupled weight decay, relative to the learning rate; the paper has none."""
    label_smoothing: float = 0.1
    """Share of the target probability that is spread over the whole vocabulary, epsilon_ls (5.4)."""
    class_weights: bool = False
    """Weight the labels of a classifier so that rare ones count as much as common ones."""
    hidden_tokens: float = 0.0
    """Share of a text's tokens that are masked at random while a classifier learns labels."""
    agreement: float = 0.0
    """Weight of R-Drop: a classifier's predictions under two dropout masks must agree; 0 for none."""
    pretrain_steps: int = 10000
    """Steps of masked-token pretraining before a classifier learns labels, if --pretrain gives texts."""
    clip_norm: float = 0.0
    """Largest norm of the whole gradient; 0 for no limit, as in the paper."""
    validate_every: int = 1000
    """Steps between validations."""
    probe_sentences: int = 2
    """Held-out sentences whose attention is stored at each validation, for playback; 0 for none."""
    checkpoint_every: int = 1500
    """Steps between checkpoints; 1500 are the paper's ten minutes, at 0.4 s per step (5.2, 6.1)."""
    average_checkpoints: int = 5
    """Number of last checkpoints to average at the end (6.1); 1 for none."""
    selection: Selection = "last"
    """The model that a run keeps: last is the average of the last checkpoints, or without averaging the last
    step (6.1); best is the one with the lowest validation loss, averages included;
    with --from, the model to start from is one of them, and none with a lower BLEU is taken."""
    ema_decay: float = 0.0
    """Decay rate of a moving average of the weights, which is then validated and kept; 0 for none. With
    selection = last, it is kept instead of the average of checkpoints."""

    def __post_init__(self) -> None:
        refuse_problems(self)

    def problems(self) -> list[str]:
        """Every setting that is out of range."""
        counts = [
            "batch_tokens",
            "max_steps",
            "max_epochs",
            "warmup_steps",
            "average_checkpoints",
            "pretrain_steps",
        ]
        others = [
            "seed",
            "accumulate",
            "patience",
            "probe_sentences",
            "weight_decay",
            "clip_norm",
            "agreement",
        ]
        least = dict.fromkeys([*counts, "validate_every", "checkpoint_every"], 1) | dict.fromkeys(others, 0)
        return [
            *too_small(self, least),
            *too_large(self, {"batch_tokens": MOST_BATCH_TOKENS}),
            *not_positive(self, "learning_rate", "adam_epsilon", "max_minutes"),
            *not_a_fraction(
                self, "adam_beta1", "adam_beta2", "label_smoothing", "ema_decay", "hidden_tokens"
            ),
        ]
