"""The contenders of `benchmarks/train_step.py`, one a file."""
