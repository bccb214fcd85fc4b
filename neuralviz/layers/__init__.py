"""The vectors of a text at every layer of a model, and what can be made and seen of them."""
