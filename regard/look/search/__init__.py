"""The tree of a beam search."""
