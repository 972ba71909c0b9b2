"""Models behind HTTP: one scheduler each, routes that existing clients already speak, limits that hold."""
