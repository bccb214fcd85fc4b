"""Read texts, tables and vectors from files and pasted text."""
