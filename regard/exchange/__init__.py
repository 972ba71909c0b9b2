"""Other people's formats, in and out. This module imports nothing, and what is in it no torch."""
