"""Changes inside a model, as data, and how they are applied."""
