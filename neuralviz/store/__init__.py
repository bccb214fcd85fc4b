"""Storage of corpora and vectors, and export to files."""
