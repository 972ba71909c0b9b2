"""Pictures of a trace, one a file: SVG, by day and by night, with real words on every axis."""
