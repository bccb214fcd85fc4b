"""The page that explains neural embeddings in ten steps."""
