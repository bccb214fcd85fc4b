"""Maps of a corpus: projections, neighbours and clusters."""
