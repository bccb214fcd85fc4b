"""A model's own embedding of a sentence, which the rungs of the ladder are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.embedders.registry import LOADERS, make_embedder
from neuralviz.embedders.specs import embedder_spec
from neuralviz.errors import ModelError
from neuralviz.evaluation.ladder_events import NEURAL, SENTENCE
from neuralviz.models.language_model import LanguageModel
from neuralviz.training.similarity.features import different_texts

if TYPE_CHECKING:
    from neuralviz.embedders.base import Embedder
    from neuralviz.embedders.registry import Loaders
    from neuralviz.models import TextModel
    from neuralviz.training.similarity.data import SplitPairs

MOST_TUNED_ON = 400  # texts; each is a micro-tuning


def own_embeddings(
    model: TextModel, split: SplitPairs, *, loaders: Loaders = LOADERS
) -> list[tuple[str, Embedder]]:
    """What a model makes of a sentence by itself.

    A sentence encoder's own embedding; of a masked language model the neural embedding, where there
    are not too many texts. Models that predict the next token have none.

    Args:
        model: loaded.
        split: of which the texts of dev and test pairs are embedded.
        loaders: where models come from, by kind.
    """
    if isinstance(model, LanguageModel):
        if len(different_texts([split.dev, split.test])) > MOST_TUNED_ON:
            return []
        spec = embedder_spec("neural", {"precision": "fast"}, model.id)
        return [(NEURAL, make_embedder(spec, loaders))]
    try:
        spec = embedder_spec("sentence-transformer", model_id=model.id)
        return [(SENTENCE, make_embedder(spec, loaders))]
    except ModelError:  # a model without a pooling of its own
        return []
