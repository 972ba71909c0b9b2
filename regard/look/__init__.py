"""Pictures of what happened and of what a model looked at: SVG, one file each, without a dependency."""
