"""The views of a trace. To add one: a module with its `VIEWS`, and its name below."""

MODULES = {
    "heads": "attention",
    "matrix": "attention",
    "lines": "attention",
    "alignment": "alignment",
    "beam": "beam",
    "positions": "positions",
    "walk": "walk",
    "steps": "steps",
    "influence": "influence",
}
"""The module of each view in this folder; it is imported when the view is used."""
