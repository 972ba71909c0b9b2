"""Model families of Hugging Face: their settings, weight names and vocabularies, in both directions."""
