"""Import from and export to the folders of Hugging Face's `transformers`."""
