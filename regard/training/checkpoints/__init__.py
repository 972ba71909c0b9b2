"""The run folder: checkpoints, journal, lock."""
