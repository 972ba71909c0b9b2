"""Documents: layout, sentences, and passages that stay as they are."""
