"""Other people's formats, in and out. This module imports nothing, and what engines need of it no torch."""
