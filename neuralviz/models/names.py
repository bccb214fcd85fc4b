"""Ids of the models that come with neuralviz."""

from __future__ import annotations

BUNDLED = "bundled"
MINILM = "all-MiniLM-L6-v2"  # the sentence encoder
