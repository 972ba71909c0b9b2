"""Search over `step(ids, state) -> log_probs, state`, and nothing else: it knows token ids only."""
