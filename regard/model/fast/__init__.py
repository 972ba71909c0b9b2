"""Fast paths of the model: kernels, caches, slots."""
