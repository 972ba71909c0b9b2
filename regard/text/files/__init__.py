"""Text files: opening, decoding, lines in step, tables."""
