"""Looking inside a model: traces, walks, interventions, what they mean; and pictures, without a dependency."""
