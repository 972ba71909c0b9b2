"""Scores of outputs against references: translations, labels, summaries, answers; perplexity."""
