"""Data: where examples come from, and how they reach the model.

`corpus` (files of text, as rows with their line numbers), `spool` (pipes, kept as files), `cleaning` (which
rows are fit to train on, and which are held out), `report` (what came of that), `store` (ids on disk),
`batches`, `stream`. They are imported by name; this module imports nothing.
"""
