"""The experiments, one file per claim."""
