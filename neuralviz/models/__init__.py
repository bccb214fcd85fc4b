"""Language models, loaded once and frozen."""

from neuralviz.models.language_model import LanguageModel, Layer, TextModel
from neuralviz.models.loading import BUNDLED, MINILM, export_model, load_model, load_text_model
from neuralviz.models.sentence_transformer import load_sentence_transformer
from neuralviz.models.tokens import TokenizedText, tokenize

__all__ = [
    "BUNDLED",
    "MINILM",
    "LanguageModel",
    "Layer",
    "TextModel",
    "TokenizedText",
    "export_model",
    "load_model",
    "load_sentence_transformer",
    "load_text_model",
    "tokenize",
]
