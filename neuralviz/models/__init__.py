"""Language models, loaded once and frozen."""

from neuralviz.models.language_model import LanguageModel, Layer
from neuralviz.models.loading import BUNDLED, export_model, load_model
from neuralviz.models.tokens import TokenizedText, tokenize

__all__ = [
    "BUNDLED",
    "LanguageModel",
    "Layer",
    "TokenizedText",
    "export_model",
    "load_model",
    "tokenize",
]
