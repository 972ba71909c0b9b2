"""Looking inside a model: traces, interventions, influence, word alignment, and views of them."""
