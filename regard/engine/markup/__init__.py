"""Inline markup: tags are taken out of a text before it is translated, and put back at the right words."""
