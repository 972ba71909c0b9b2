"""Models behind HTTP: a scheduler per model, our own API and those of other projects, with limits."""
