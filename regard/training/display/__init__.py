"""What a run shows: lines, a live panel, trackers."""
