"""Training: from a token store to a model folder, resumable to the bit."""
