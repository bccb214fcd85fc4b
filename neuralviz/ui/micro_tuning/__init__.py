"""The micro-tuning page: its inputs, its runs, and their figures."""
