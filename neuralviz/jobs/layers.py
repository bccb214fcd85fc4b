"""A text, layer by layer: what a model predicts, and how its tokens change."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from neuralviz.errors import ShouldStop, check_stop
from neuralviz.jobs.task import LatestTask, Progress
from neuralviz.models import LanguageModel, tokenize
from neuralviz.models.shared import ModelRef, shared_lens_model, shared_text_model

if TYPE_CHECKING:
    from neuralviz.layers.geometry import TokenStates
    from neuralviz.layers.settings import SbertWkSettings
    from neuralviz.layers.words import TokenWeights
    from neuralviz.micro_tuning import TuningSettings
    from neuralviz.micro_tuning.lens import Lens

MOST_READ = 40  # tokens that are masked in turn
TEXTS_HELD = 4  # cached with their token vectors


@dataclass(frozen=True, eq=False)
class ReadText:
    """What is read from every layer, before and after micro-tuning on the text."""

    before: Lens
    after: Lens | None = None  # None until it is there, or without a head or layers to tune
    is_hardly_read: bool = False


@dataclass(frozen=True)
class ReadLayers(LatestTask[ReadText]):
    """Read every layer of a text, then micro-tune a model with a head on the text and again."""

    lane = "short"

    model: ModelRef
    text: str
    settings: TuningSettings | None  # None leaves the model as it is
    is_translated: bool  # whether each layer's vectors are first made like the last one's

    def events(self, should_stop: ShouldStop) -> Generator[ReadText, None, None]:
        from neuralviz.micro_tuning.events import TextDelta
        from neuralviz.micro_tuning.lens import read_layers, translate_bundled
        from neuralviz.micro_tuning.loop import learn
        from neuralviz.micro_tuning.watching import find_hardly_read

        model = shared_lens_model(self.model.id)
        texts = tokenize(model, [self.text])
        tokens = range(min(MOST_READ, len(texts[0])))
        translate = translate_bundled() if self.is_translated else None
        read = partial(
            read_layers, model, texts[0], tokens, translate=translate, should_stop=should_stop
        )
        read_text = ReadText(
            read(), is_hardly_read=bool(find_hardly_read(self.model.id, [self.text], should_stop))
        )
        yield read_text
        if self.settings is not None and isinstance(model, LanguageModel):
            deltas = learn(model, texts, self.settings, should_stop).deltas
            values = tuple(delta[0] for delta in deltas)
            delta = TextDelta(model.id, self.settings.layers, values)
            yield replace(read_text, after=read(delta=delta))

    def progress(self, result: ReadText | None) -> Progress:
        if result is None:
            return Progress()
        return Progress(1, 2, "Training the model on the text …", is_last=False)


@dataclass(frozen=True, eq=False)
class FollowedText:
    """A text's token vectors at every layer, and what SBERT-WK makes of them."""

    states: TokenStates
    weights: TokenWeights
    is_hardly_read: bool


@dataclass(frozen=True)
class FollowText(LatestTask[FollowedText]):
    """Follow the tokens of one text from layer to layer (SBERT-WK, sections III and IV)."""

    lane = "short"

    model: ModelRef
    text: str
    settings: SbertWkSettings

    def events(self, should_stop: ShouldStop) -> Generator[FollowedText, None, None]:
        from neuralviz.layers.words import token_weights
        from neuralviz.micro_tuning.watching import find_hardly_read

        states = _token_states(self.model, self.text)
        check_stop(should_stop)
        is_hardly_read = bool(find_hardly_read(self.model.id, [self.text], should_stop))
        yield FollowedText(states, token_weights(states, self.settings), is_hardly_read)


@lru_cache(maxsize=TEXTS_HELD)
def _token_states(model: ModelRef, text: str) -> TokenStates:
    from neuralviz.layers.words import follow_tokens

    network = shared_text_model(model.id)
    return follow_tokens(network, tokenize(network, [text])[0])
