"""Language models, loaded once and frozen. Whatever needs torch is imported at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.lazy_names import lazy_names
from neuralviz.models.language_model import BUNDLED, MINILM, LanguageModel, Layer, TextModel
from neuralviz.models.tokens import TokenizedText, tokenize

if TYPE_CHECKING:
    from neuralviz.models.exporting import export, export_model
    from neuralviz.models.loading import load_model, load_text_model
    from neuralviz.models.sentence_transformer import load_sentence_transformer

__all__ = [
    "BUNDLED",
    "MINILM",
    "LanguageModel",
    "Layer",
    "TextModel",
    "TokenizedText",
    "export",
    "export_model",
    "load_model",
    "load_sentence_transformer",
    "load_text_model",
    "tokenize",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    exporting="export export_model",
    loading="load_model load_text_model",
    sentence_transformer="load_sentence_transformer",
)
