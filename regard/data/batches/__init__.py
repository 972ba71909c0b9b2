"""Examples packed into batches, and the endless stream of them."""
