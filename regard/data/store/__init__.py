"""The token store: encoded examples on disk."""
