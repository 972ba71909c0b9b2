"""Documents of other programs: what is translated in them, and how they are written with translations."""
