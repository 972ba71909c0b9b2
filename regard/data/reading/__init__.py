"""Readers of corpora: parallel files, tables, documents, rows with named fields."""
