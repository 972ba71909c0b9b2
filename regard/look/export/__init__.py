"""Traces as JSON, HTML, CSV and NPZ files."""
