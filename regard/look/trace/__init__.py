"""The trace: everything that a model computed for one text."""
