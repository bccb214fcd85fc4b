"""A frozen model's layers on scored pairs, and the ladder of models that learn from them."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from neuralviz import evaluation
from neuralviz.errors import ShouldStop, TextError
from neuralviz.evaluation.ladder_results import (
    LADDER_FORMAT,
    Ladder,
    LadderEvent,
    LadderSettings,
    best_result,
)
from neuralviz.evaluation.measures import kept_vectors
from neuralviz.jobs.task import KeptTask, LatestTask, Progress, Task
from neuralviz.models import MINILM
from neuralviz.models.shared import ModelRef, shared_text_model
from neuralviz.paths import sample_data
from neuralviz.reading.pairs import ScoredPairs, read_pairs
from neuralviz.reading.source import Source
from neuralviz.training import similarity
from neuralviz.training.similarity import SimilarityModel
from neuralviz.training.similarity.settings import RUNG_NAMES, Rung

LOOKED_AT = 1000  # train pairs at most, since every pooling reads all their texts


@dataclass(frozen=True)
class _LadderTask(Task[LadderEvent, Ladder]):
    model: ModelRef  # frozen
    pairs: ScoredPairs  # train pairs; dev and test pairs are split off if not given

    def start(self) -> Ladder:
        return Ladder()

    def fold(self, result: Ladder, events: Sequence[LadderEvent]) -> Ladder:
        return result.having(events)

    def progress(self, result: Ladder) -> Progress:
        features = result.progress
        if features is None:
            return Progress()
        text = f"{features.done:,} of {features.total:,} texts, {features.source}"
        return Progress(features.done, features.total, text)


@dataclass(frozen=True)
class LookAtLayers(_LadderTask):
    """Measure how each layer's cosine follows the scores of train pairs, for each pooling."""

    def events(self, should_stop: ShouldStop) -> Generator[LadderEvent, None, None]:
        train = similarity.split_pairs(self.pairs).train.first(LOOKED_AT)
        model = shared_text_model(self.model.id)
        yield from evaluation.measure_cosines(model, train, kept_vectors(), should_stop=should_stop)


@dataclass(frozen=True)
class ClimbLadder(_LadderTask, KeptTask[LadderEvent, Ladder]):
    """Train every rung of the ladder on scored pairs, and test each once."""

    format = LADDER_FORMAT

    settings: LadderSettings
    dev: ScoredPairs | None = None
    test: ScoredPairs | None = None

    def events(self, should_stop: ShouldStop) -> Generator[LadderEvent, None, None]:
        split = similarity.split_pairs(self.pairs, self.dev, self.test)
        model = shared_text_model(self.model.id)
        yield from evaluation.train_ladder(
            model,
            split,
            self.settings,
            kept_vectors(),
            own_embedders=evaluation.own_embeddings(model, split),
            should_stop=should_stop,
        )

    def progress(self, result: Ladder) -> Progress:
        if not result.curves:
            return replace(super().progress(result), is_last=False)
        n = len(self.settings.list_trainings())
        (rung, seed), curve = list(result.curves.items())[-1]
        doing = RUNG_NAMES[rung]
        if len(self.settings.seeds) > 1:
            doing += f", seed {seed}"
        if curve.losses:
            doing += f": epoch {len(curve.losses)}"
        elif curve.rebuilt:
            doing += f": autoencoders, epoch {len(curve.rebuilt)}"
        return Progress(
            len(result.results),
            n,
            doing=f"Rung {len(result.curves)} of {n}, {doing}",
            is_last=rung == self.settings.rungs[-1],
        )

    def cache_key(self) -> str:
        all_pairs = (self.pairs, self.dev, self.test)
        digests = [None if pairs is None else pairs.digest for pairs in all_pairs]
        trainings = [asdict(training) for training in self.settings.list_trainings()]
        model, settings = self.model.identity(), asdict(self.settings)
        return json.dumps([self.format.version, model, digests, settings, trainings])

    def is_whole(self, result: Ladder) -> bool:
        return len(result.results) == len(self.settings.list_trainings())


@dataclass(frozen=True)
class TwoScores:
    """The scores of every trained rung, on the human scale."""

    pair: Mapping[Rung, float]  # of the two texts
    equal: Mapping[Rung, float]  # of the first text and itself, the highest that a rung gives


@dataclass(frozen=True)
class ScoreTwoTexts(LatestTask[TwoScores]):
    """Score two texts of the user with every trained rung."""

    lane = "short"

    model: ModelRef  # frozen
    rungs: tuple[SimilarityModel, ...]  # trained; compared by identity
    first: str
    second: str

    def events(self, should_stop: ShouldStop) -> Generator[TwoScores, None, None]:
        for text in (self.first, self.second):
            if not text.strip():
                raise TextError("The text is empty. Enter at least one word in both.")
        pairs = ScoredPairs((self.first, self.first), (self.second, self.first))
        scores = similarity.score_pairs(self.rungs, pairs, shared_text_model(self.model.id))
        names = [rung.trained.settings.rung for rung in self.rungs]
        pair, equal = np.array(scores).T.tolist()
        yield TwoScores(dict(zip(names, pair, strict=True)), dict(zip(names, equal, strict=True)))


def make_similarity_models(model: ModelRef, ladder: Ladder) -> tuple[SimilarityModel, ...]:
    """A ladder's rungs as models that can be saved, each with its best seed on the dev pairs."""
    assert ladder.test is not None
    scale, fingerprint = ladder.test.scale, ladder.test.fingerprint
    return tuple(
        similarity.SimilarityModel(best_result(ladder, rung).trained, scale, model.id, fingerprint)
        for rung in ladder.rungs
    )


EXAMPLE = "scored_pairs.csv"
RECORDED = "recorded_ladder.npz"


def example_pairs() -> ScoredPairs:
    return read_pairs(Source.from_path(sample_data() / EXAMPLE))


def example_ladder() -> ClimbLadder:
    return ClimbLadder(ModelRef.from_id(MINILM), example_pairs(), LadderSettings())


def recorded_ladder() -> Ladder | None:
    """Result of ``scripts/record_ladder.py``; None without its file, or if it is outdated."""
    return LADDER_FORMAT.read(sample_data() / RECORDED)
