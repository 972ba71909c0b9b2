"""How much each input token influenced an output token, by several methods."""

STEPS = 512
"""Most points at which integrated gradients evaluate the gradient; fewer if the errors are small before."""
MOST_STEPS = 4096
"""Largest number that can be set."""
