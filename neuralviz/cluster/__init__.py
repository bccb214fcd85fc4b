"""Read, embed and map corpora on a Ray cluster, in the same store; needs ``neuralviz[ray]``."""
