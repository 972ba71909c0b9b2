"""Claims about the Transformer that can be run: a file each, of what, setup, run, picture and verdict."""
