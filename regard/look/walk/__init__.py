"""One token in one head, step by step, with its numbers."""
