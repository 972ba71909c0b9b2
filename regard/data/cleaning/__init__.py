"""Which rows are trained on, dropped or held out, and the report of it."""
