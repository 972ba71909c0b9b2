"""Figures 1 and 2 of the paper, one box a file."""
