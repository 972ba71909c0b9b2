"""The registries of the package, one per kind of choice. Imports no torch.

Each maps the names of its built-in choices to the module that registers them. To add a choice of your own,
see `docs/extending.md`.
"""

from regard.config.registry import Registry

_POSITIONS = "regard.model.positional_encoding"
_SIMILARITY = "regard.model.similarity"
_FEED_FORWARD = "regard.model.feed_forward"
_NORM = "regard.model.add_and_norm"
_OPTIMIZERS = "regard.training.optimizers"
_SCHEDULE = "regard.training.schedule"

tasks = Registry(
    "task",
    {
        "translate": "regard.tasks.translate",
        "generate": "regard.tasks.generate",
        "classify": "regard.tasks.classify",
        "summarise": "regard.tasks.fields",
        "converse": "regard.tasks.fields",
        "answer": "regard.tasks.fields",
    },
)
"""What a model is trained for, by `task.name`: subclasses of `regard.Task`."""

positions = Registry(
    "position",
    dict.fromkeys(("sinusoidal", "learned", "rotary", "none"), _POSITIONS)
    | dict.fromkeys(("alibi", "t5-relative"), "regard.model.relative_positions"),
)
"""How a stack knows the order of its tokens, by `model.positions`: subclasses of `Positions`."""

similarities = Registry(
    "similarity", dict.fromkeys(("scaled-dot", "dot", "cosine", "additive", "bilinear"), _SIMILARITY)
)
"""How a query is compared with a key, by `model.similarity`: subclasses of `DotProduct`."""

feed_forwards = Registry(
    "feed-forward",
    dict.fromkeys(("relu", "gelu", "gelu-tanh", "swish", "swiglu", "geglu"), _FEED_FORWARD),
)
"""What the feed-forward sub-layer does between its linear maps, by `model.feed_forward`: functions."""

norms = Registry("norm", dict.fromkeys(("layer", "rms"), _NORM))
"""How activations are normalised, by `model.norm`: modules made from d_model and epsilon."""

optimizers = Registry("optimizer", {"adamw": f"{_OPTIMIZERS}.adamw", "muon": f"{_OPTIMIZERS}.muon"})
"""What turns gradients into steps, by `training.optimizer`: functions of a model and a `TrainingConfig`."""

schedules = Registry("schedule", dict.fromkeys(("paper", "cosine", "warmup-stable-decay"), _SCHEDULE))
"""The learning rate over a run, by `training.schedule`: functions like `regard.training.schedule.paper`."""
