"""What this machine has for `regard`, what is missing, and what would slow it down or break it."""
