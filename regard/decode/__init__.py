"""Search for outputs: greedy, beam search and sampling, over token ids only."""
