"""The page that explains how it works: the way, and what stands at each of its steps."""
