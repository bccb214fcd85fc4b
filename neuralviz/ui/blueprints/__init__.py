"""The page of the masking blueprints."""
