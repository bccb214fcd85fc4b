"""The micro-tuning page: what is asked for, the runs, what is drawn of them."""
