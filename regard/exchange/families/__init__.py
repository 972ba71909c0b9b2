"""Model families of Hugging Face: their settings, weight names and vocabularies."""
