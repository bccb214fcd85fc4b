"""``python -m neuralviz``."""

from neuralviz.cli import main

main()
