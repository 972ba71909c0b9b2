"""The registries of the package, one per kind of choice. Imports no torch."""

from regard.config.registry import Registry

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
