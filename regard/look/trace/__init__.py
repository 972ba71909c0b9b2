"""The trace: everything that a model computed for one text. `data` is the bottom, `trace` the top."""
