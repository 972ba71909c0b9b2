"""Data: from files to batches.

`reading` (files of text as rows with their line numbers), `cleaning` (which rows are trained on, dropped or
held out, and the report of it), `store` (token ids on disk), `batches` (batches, and the stream of them),
`numerals` (the built-in corpus). This module imports nothing.
"""
