"""Language models, loaded once and frozen."""

from neuralviz.models.language_model import LanguageModel, Layer
from neuralviz.models.loading import BUNDLED, export_model, load_model

__all__ = ["BUNDLED", "LanguageModel", "Layer", "export_model", "load_model"]
