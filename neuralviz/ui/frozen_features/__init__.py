"""The page on frozen features: small models that learn people's scores from frozen vectors."""
