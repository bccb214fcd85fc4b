"""The Compare page: its settings, its run, and its figures."""
