"""The HTTP application: middleware, errors, schemas, keys, limits, metrics."""
