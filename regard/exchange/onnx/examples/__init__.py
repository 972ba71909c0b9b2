"""Programs that run exported folders, each written into the folder that it is for. Nothing imports them."""
