"""The routes, one module per API."""
