"""Texts: read from files or from what was pasted."""
