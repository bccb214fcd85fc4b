"""A text's vectors at every layer of a model, and what they show."""
