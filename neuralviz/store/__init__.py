"""What is kept: corpora, vectors, and the files they are written to."""
