"""How much each input token influenced an output token, by several methods."""
