"""Figures: SVG, PNG and terminal output."""
