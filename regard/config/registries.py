"""The registries of the package, one per kind of choice. Imports no torch."""

from regard.config.registry import Registry

tasks = Registry("task", {})
"""What a model is trained for, by `task.name`; filled by `regard/tasks/`."""
