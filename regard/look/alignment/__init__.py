"""Word alignment read from attention heads."""
