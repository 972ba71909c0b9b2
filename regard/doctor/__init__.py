"""`regard doctor`: what this machine has, what is missing, and what is broken or slow."""
