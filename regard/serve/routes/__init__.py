"""The routes, by family."""
