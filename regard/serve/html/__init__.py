"""HTML documents: text, tags and paragraphs."""
