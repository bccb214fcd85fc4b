"""The command line: the same work without a browser."""

from neuralviz.cli.commands import app, main

__all__ = ["app", "main"]
