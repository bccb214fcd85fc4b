"""Work layer by layer: on a text, the words of a corpus, pairs that people scored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from neuralviz.errors import Stopped
from neuralviz.jobs.task import LatestTask, Progress
from neuralviz.models import tokenize
from neuralviz.models.shared import shared_text_model

if TYPE_CHECKING:
    from collections.abc import Generator

    from neuralviz.errors import ShouldStop
    from neuralviz.evaluation.layer_pairs import LayerPairs
    from neuralviz.layers.following import Sensitivity, TokenWeights
    from neuralviz.layers.geometry import TokenStates
    from neuralviz.layers.settings import SbertWkSettings
    from neuralviz.layers.words import WordVariances
    from neuralviz.models.shared import ModelRef
    from neuralviz.reading.pairs import ScoredPairs

TEXTS_HELD = 4  # with the vectors of their tokens


@dataclass(frozen=True)
class FollowWords(LatestTask["WordVariances"]):
    """How unsteadily the words of some texts turn from layer to layer (SBERT-WK, Table I)."""

    model: ModelRef
    texts: tuple[str, ...]

    def events(self, should_stop: ShouldStop) -> Generator[WordVariances, None, None]:
        from neuralviz.layers.words import word_variances

        model = shared_text_model(self.model.id)
        yield from word_variances(model, tokenize(model, self.texts), should_stop=should_stop)

    def progress(self, result: WordVariances | None) -> Progress:
        if result is None:
            return Progress()
        return _count_progress(
            result.n_read, result.total, "text" if result.total == 1 else "texts"
        )


@dataclass(frozen=True)
class MeasureLayers(LatestTask["LayerPairs"]):
    """How well a model's layers, poolings and the parts of SBERT-WK follow human scores."""

    model: ModelRef  # whose layers
    pairs: ScoredPairs  # of texts, with their scores and labels

    def events(self, should_stop: ShouldStop) -> Generator[LayerPairs, None, None]:
        from neuralviz.evaluation import layer_pairs

        model = shared_text_model(self.model.id)
        yield from layer_pairs.measure_layers(model, self.pairs, should_stop=should_stop)

    def progress(self, result: LayerPairs | None) -> Progress:
        if result is None:
            return Progress()
        return _count_progress(len(result.pairs), result.total, "pairs")


@dataclass(frozen=True, eq=False)
class FollowedText:
    """A text on its way through the layers."""

    states: TokenStates  # the vectors of its tokens after every layer
    weights: TokenWeights  # what SBERT-WK makes of them
    sensitivity: Sensitivity  # how much its settings matter


@dataclass(frozen=True)
class FollowText(LatestTask[FollowedText]):
    """Follow the tokens of one text from layer to layer (SBERT-WK, sections III and IV)."""

    lane = "short"

    model: ModelRef
    text: str
    settings: SbertWkSettings

    def events(self, should_stop: ShouldStop) -> Generator[FollowedText, None, None]:
        from neuralviz.layers import following

        states = _token_states(self.model, self.text)
        if should_stop():
            raise Stopped
        weights = following.token_weights(states, self.settings)
        yield FollowedText(states, weights, following.sensitivity(states, self.settings))


@lru_cache(maxsize=TEXTS_HELD)
def _token_states(model: ModelRef, text: str) -> TokenStates:
    """The vectors of a text's tokens; held while other settings are tried on them."""
    from neuralviz.layers.following import follow_tokens

    network = shared_text_model(model.id)
    return follow_tokens(network, tokenize(network, [text])[0])


def _count_progress(n_done: int, total: int, unit: str) -> Progress:
    return Progress(n_done, total, unit, f"{n_done:,} of {total:,} {unit}")
