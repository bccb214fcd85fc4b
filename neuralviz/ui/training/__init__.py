"""The training page."""
