"""Vocabularies: from text to token ids and back."""
