"""How well embeddings agree with people."""
