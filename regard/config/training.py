"""How a model is trained. The defaults are the paper's (5); the docstrings are the help text."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from regard.config import registries
from regard.config.checking import not_a_fraction, not_positive, refuse_problems, too_small

Precision = Literal["auto", "float32", "bfloat16"]
ScheduleName = Annotated[str, registries.schedules]
OptimizerName = Annotated[str, registries.optimizers]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig:
    """How a model is trained: how long, on how much at once, and with which optimizer."""

    SECTION: ClassVar[str] = "training"

    seed: int = 1
    """Where every random choice of a run starts."""

    batch_tokens: int = 25000
    """Most output tokens in one step, of all processes together (5.1)."""

    accumulate: int = 0
    """Parts that a process takes its share of a step in, one after another; 0 for what memory demands."""

    precision: Precision = "auto"
    """What activations are computed in; auto takes bfloat16 where the hardware is fast at it."""

    compile: bool = True
    """Compile the step on a GPU where the task can be; a run of a minute is over sooner without."""

    max_steps: int = 100000
    """Steps to train for (5.2)."""

    max_epochs: int | None = None
    """Stop after so many times through the data."""

    max_minutes: float | None = None
    """Stop after so many minutes of training, interruptions not counted."""

    patience: int = 0
    """Stop after so many validations without a better loss; 0 for never."""

    learning_rate: float = 1.0
    """Factor on the paper's schedule (5.3), 1 being its formula; in the others, the highest rate."""

    schedule: ScheduleName = "paper"
    """How the rate changes; paper is d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5) (5.3), and the
    others fall to nothing by the first of max_steps, max_epochs and max_minutes."""

    warmup_steps: int = 4000
    """Steps over which the learning rate grows before it falls (5.3)."""

    optimizer: OptimizerName = "adamw"
    """What turns gradients into steps; muon makes the updates of the layers' matrices orthogonal."""

    adam_beta1: float = 0.9
    """Decay of Adam's mean of gradients (5.3)."""

    adam_beta2: float = 0.98
    """Decay of Adam's mean of squared gradients (5.3)."""

    adam_epsilon: float = 1e-9
    """What Adam adds to its denominator (5.3)."""

    weight_decay: float = 0.0
    """Share of each weight taken away at each step, times the learning rate; the paper has none."""

    label_smoothing: float = 0.1
    """Share of the target probability spread over the whole vocabulary, epsilon_ls (5.4)."""

    class_weights: bool = False
    """Whether rare labels count as much as common ones, when a classifier is trained."""

    hidden_tokens: float = 0.0
    """Share of a text's tokens that are hidden, others each time, while a classifier learns labels."""

    agreement: float = 0.0
    """How much a classifier's answers with other dropout must agree (R-Drop); 0: it answers once a step."""

    pretrain_steps: int = 10000
    """Steps in which a classifier guesses hidden tokens first, where --pretrain gives it texts."""

    clip_norm: float = 0.0
    """Largest norm of the whole gradient, 0 for no limit; the paper names none."""

    validate_every: int = 1000
    """Steps between two validations."""

    probe_sentences: int = 2
    """Held-out sentences whose attention is stored at each validation, to be played back; 0 for none."""

    checkpoint_every: int = 1000
    """Steps between two checkpoints."""

    average_checkpoints: int = 5
    """The mean of so many last checkpoints is kept, if it is better (6.1); 1 for none."""

    ema_decay: float = 0.0
    """Decay of a moving average of the weights, which is then what is validated and kept; 0 for none."""

    def __post_init__(self) -> None:
        refuse_problems(self)

    def problems(self) -> list[str]:
        """Every setting that is out of range, as sentences."""
        counts = (
            "batch_tokens",
            "max_steps",
            "max_epochs",
            "warmup_steps",
            "average_checkpoints",
            "pretrain_steps",
        )
        every = ("validate_every", "checkpoint_every")
        least = dict.fromkeys(counts + every, 1) | dict.fromkeys(
            (
                "seed",
                "accumulate",
                "patience",
                "probe_sentences",
                "weight_decay",
                "clip_norm",
                "agreement",
            ),
            0,
        )
        return [
            *too_small(self, least),
            *not_positive(self, "learning_rate", "adam_epsilon", "max_minutes"),
            *not_a_fraction(
                self, "adam_beta1", "adam_beta2", "label_smoothing", "ema_decay", "hidden_tokens"
            ),
        ]
