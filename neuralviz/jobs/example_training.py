"""The first view of the training page: settings for small corpora, and the recorded example."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.jobs.training import TrainOnCorpus
from neuralviz.models import BUNDLED
from neuralviz.models.shared import ModelRef
from neuralviz.paths import sample_data
from neuralviz.training.pairs import PairSource, steps_of_epoch
from neuralviz.training.record import read_lessons
from neuralviz.training.settings import Part, TrainingSettings, with_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.store.corpora import Corpus
    from neuralviz.training.record import Lesson
    from neuralviz.training.settings import PairKind

# The paper has 25,000 abstracts, 390 steps an epoch, and falls to 0 at the end of the first one.
# A corpus that people bring has a dozen steps an epoch: at 2e-5 it would hardly move. Chosen on the
# chapters of the example: docs/training.md has all rates that were tried.
RATES: dict[Part, float] = {"model": 1e-4, "table": 0.003}
EPOCHS: dict[Part, int] = {"model": 2, "table": 5}
ENCODER = BUNDLED
PART: Part = "table"  # learns in seconds what a whole model takes minutes for
KINDS: tuple[PairKind, ...] = ("crops", "dropout")
WATCHED = 1_000  # texts, at most: a snapshot of so many takes as long as three steps
SNAPSHOTS = 4  # of each encoder, after the one before
RECORDED = "recorded_training.npz"


def first_settings(part: Part = PART) -> TrainingSettings:
    """The page's first settings for a part of the model to train."""
    return with_options(
        TrainingSettings(), part=part, learning_rate=RATES[part], epochs=EPOCHS[part]
    )


def watched_training(
    model_id: str,
    corpus: Corpus,
    label: str,
    settings: Sequence[TrainingSettings],
    source: PairSource,
) -> TrainOnCorpus:
    """The work that the page asks for.

    Args:
        model_id: to begin with.
        corpus: that is trained on.
        label: column of labels; empty for none.
        settings: of one or two encoders.
        source: of the pairs.
    """
    steps = steps_of_epoch(len(source), settings[0].batch_size) * settings[0].n_epochs
    return TrainOnCorpus(
        ModelRef.now(model_id),
        corpus.id,
        label,
        tuple(settings),
        n_watched=WATCHED,
        watch_every=max(1, -(-steps // SNAPSHOTS)),
    )


def example_training(corpus: Corpus, texts: Sequence[str]) -> TrainOnCorpus:
    """The task whose result is recorded: the example with the page's first settings."""
    settings = [with_options(first_settings(), pairs=kind) for kind in KINDS]
    source = PairSource(texts, settings[0].pairs, settings[0].seed)
    return watched_training(ENCODER, corpus, first_label(corpus), settings, source)


def first_label(corpus: Corpus) -> str:
    """The column of labels that the page begins with, the finest one; empty where there is none."""
    columns = [column.name for column in corpus.columns if column.kind == "text"]
    return columns[-1] if columns else ""


def recorded_lessons() -> tuple[Lesson, ...]:
    """The result recorded by ``scripts/record_training.py``; empty without its file.

    Raises:
        ValueError: the file cannot be read.
    """
    path = sample_data() / RECORDED
    return read_lessons(path.read_bytes()) if path.is_file() else ()
