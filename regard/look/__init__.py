"""Looking inside a model: traces, interventions and what they mean; and pictures, without a dependency."""
