"""Maps of a corpus: projections, neighbours, clusters."""
