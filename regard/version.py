"""The version, in a module of its own: low-level modules need it and may not import `regard` itself."""

__version__ = "0.1.0"
