"""Phrases that an output must contain: glossaries and their token spellings."""
