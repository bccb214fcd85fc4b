"""Training with progress: ways to make pairs side by side."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from neuralviz import training
from neuralviz.errors import ShouldStop, TextError, check_stop
from neuralviz.evaluation.measures import kept_vectors
from neuralviz.jobs.task import KeptTask, Progress
from neuralviz.maps.neighbours import K
from neuralviz.maps.projection import lay_out_snapshots
from neuralviz.models import BUNDLED, TextModel
from neuralviz.models.shared import ModelRef, shared_text_model
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.training.record import (
    LESSONS_FORMAT,
    Lesson,
    LessonChange,
    TrainingStarted,
    Watch,
    list_checkpoints,
    make_change,
    training_folder,
)
from neuralviz.training.settings import PairKind, PairSource, Part, TrainingSettings, steps_of_epoch

LOOKS_FIRST = "Measuring the texts before training …"
LABELS_READ = 10_000  # texts, to choose a column

LessonEvent = tuple[int, LessonChange]  # number of the lesson, and what changes in it


@dataclass(frozen=True)
class TrainOnCorpus(KeptTask[LessonEvent, tuple[Lesson, ...]]):
    """Train one or two encoders on a corpus, a step of each in turn."""

    format = LESSONS_FORMAT

    model: ModelRef  # to start from
    corpus: str  # id
    labels: str  # column; empty for none
    settings: tuple[TrainingSettings, ...]  # of each encoder
    n_watched: int  # texts in a snapshot
    watch_every: int  # steps between snapshots

    def start(self) -> tuple[Lesson, ...]:
        return tuple(Lesson(settings) for settings in self.settings)

    def events(self, should_stop: ShouldStop) -> Generator[LessonEvent, None, None]:
        store = CorpusStore()
        corpus = store.corpus(self.corpus)
        texts = store.texts(corpus)
        labels = store.label_names(corpus, self.labels) if self.labels else None
        model = shared_text_model(self.model.id)
        for settings in self.settings:
            training.check_family_can_be_saved(model, settings)
        watch = Watch(texts, labels, n_texts=self.n_watched)
        vectors: list[dict[int, np.ndarray]] = [{} for _ in self.settings]  # by step
        with closing(self._train_in_turn(model, texts, watch, should_stop)) as changes:
            for number, change in changes:
                snapshots = change.get("snapshots", ())
                vectors[number] |= {shot.step: shot.vectors for shot in snapshots}
                bare = [replace(shot, vectors=None) for shot in snapshots]
                yield number, change | {"snapshots": bare}
        check_stop(should_stop)
        for number, by_step in enumerate(vectors):
            ordered = [by_step[step] for step in sorted(by_step)]
            with suppress(TextError):  # too few texts, or an encoder to which all are alike
                yield number, {"maps": lay_out_snapshots(ordered, should_stop=should_stop)}

    def _train_in_turn(
        self, model: TextModel, texts: Sequence[str], watch: Watch, should_stop: ShouldStop
    ) -> Generator[LessonEvent, None, None]:
        """A step of each in turn; after the first, one look at the untrained weights."""
        started, was_looked_at = set[int](), False
        with ExitStack() as stack:
            runs = {}
            for number, settings in enumerate(self.settings):
                run = training.train(
                    model,
                    texts,
                    settings,
                    watch=watch,
                    watch_every=self.watch_every,
                    watch_before=False,
                    folder=self.folder(number),
                    should_stop=should_stop,
                )
                runs[number] = stack.enter_context(closing(run))
            while runs:
                for number, run in list(runs.items()):
                    event = next(run, None)
                    if event is None:
                        del runs[number]
                        continue
                    yield number, make_change(event)
                    if not isinstance(event, TrainingStarted):
                        started.add(number)
                if len(started) == len(self.settings) and not was_looked_at:
                    yield from self._look_at_start(model, watch, should_stop)
                    was_looked_at = True

    def _look_at_start(
        self, model: TextModel, watch: Watch, should_stop: ShouldStop
    ) -> Generator[LessonEvent, None, None]:
        settings = self.settings[0]
        untrained = training.measure_untrained(model, settings, watch, kept_vectors(), should_stop)
        snapshot = watch.look(training.make_learner(model, settings), 0, should_stop)
        for number in range(len(self.settings)):
            yield number, {"untrained": untrained, "snapshots": [snapshot]}

    def fold(self, result: tuple[Lesson, ...], events: Sequence[LessonEvent]) -> tuple[Lesson, ...]:
        return tuple(
            lesson.having([change for changed, change in events if changed == number])
            for number, lesson in enumerate(result)
        )

    def progress(self, result: tuple[Lesson, ...]) -> Progress:
        n_done = sum(lesson.step for lesson in result)
        steps = sum(lesson.steps for lesson in result)
        if not steps:
            return Progress(doing="Reading the corpus …")
        looked = all(lesson.snapshots for lesson in result)  # a look takes longer than many steps
        doing = f"Step {result[0].step:,} of {result[0].steps:,}"
        if all(lesson.step for lesson in result) and not looked:
            doing += f". {LOOKS_FIRST}"
        elif all(lesson.is_over for lesson in result):
            doing += ". Drawing the maps …"
        return Progress(n_done, steps, doing=doing, is_last=looked)

    def folder(self, number: int) -> Path:
        """Folder of an encoder's checkpoints and weights."""
        decides = json.dumps([asdict(self.model), self.corpus, asdict(self.settings[number])])
        name = hashlib.sha256(decides.encode()).hexdigest()[:16]
        return training_folder(name)

    def kept_steps(self) -> tuple[int, ...]:
        """The step of each encoder's newest saved weights; 0 if there are none."""
        folders = map(self.folder, range(len(self.settings)))
        return tuple(max(list_checkpoints(folder), default=0) for folder in folders)

    def cache_key(self) -> str:
        return json.dumps([LESSONS_FORMAT.version, "texts once", asdict(self)])


# The paper has 25,000 abstracts, 390 steps an epoch, and falls to 0 at the end of the first one.
# A corpus that people bring has a dozen steps an epoch: at 2e-5 it would hardly move. Chosen on the
# chapters of the example: docs/results.md has all rates that were tried.
RATES: dict[Part, float] = {"model": 1e-4, "table": 0.003}
EPOCHS: dict[Part, int] = {"model": 2, "table": 5}
ENCODER = BUNDLED
PART: Part = "table"  # trains in seconds, a whole model in minutes
KINDS: tuple[PairKind, ...] = ("crops", "dropout")
WATCHED = 1_000  # texts, at most: a snapshot of so many takes as long as three steps
SNAPSHOTS = 4  # of each encoder, besides the untrained one
RECORDED = "recorded_training.npz"
TEXTBOOKS = "Example: textbooks"  # passages, long enough for crops
_TEXTS = "textbooks.csv"


def first_settings(part: Part = PART) -> TrainingSettings:
    """The page's default settings for training a part of the model."""
    return TrainingSettings(part=part, learning_rate=RATES[part], epochs=EPOCHS[part])


def watched_training(
    model_id: str,
    corpus: Corpus,
    label: str,
    settings: Sequence[TrainingSettings],
    source: PairSource,
) -> TrainOnCorpus:
    """The task of the page; ``source`` makes the pairs that determine the number of steps."""
    steps = steps_of_epoch(len(source), settings[0].batch_size) * settings[0].n_epochs
    return TrainOnCorpus(
        ModelRef.from_id(model_id),
        corpus.id,
        label,
        tuple(settings),
        n_watched=WATCHED,
        watch_every=max(1, -(-steps // SNAPSHOTS)),
    )


def add_textbooks(store: CorpusStore) -> Corpus:
    read = textbooks()
    return store.find(TEXTBOOKS, read) or store.add(TEXTBOOKS, read)


def textbooks() -> ReadTexts:
    return read_texts(Source(_TEXTS, (sample_data() / _TEXTS).read_bytes()))


def example_training(corpus: Corpus, texts: Sequence[str]) -> TrainOnCorpus:
    settings = [replace(first_settings(), pairs=kind) for kind in KINDS]
    source = PairSource(texts, settings[0])
    return watched_training(ENCODER, corpus, first_label(corpus), settings, source)


def first_label(corpus: Corpus) -> str:
    """The page's default column of labels, the finest of which neighbours can vote; or empty."""
    every_nth = max(1, -(-corpus.n_texts // LABELS_READ))  # files may be sorted by label
    store, rows = CorpusStore(), range(0, corpus.n_texts, every_nth)
    by_kind = {
        kind: [c.name for c in corpus.columns if c.kind == kind] for kind in ("text", "date")
    }
    names = by_kind["text"] or by_kind["date"]
    n_labels = {name: len(set(store.labels(corpus, name, rows)) - {None}) for name in names}
    varied = [name for name in names if n_labels[name] > 1] or names
    shared = [name for name in varied if n_labels[name] * K <= len(rows)]
    finest = max(shared, key=n_labels.__getitem__, default="")
    return finest or min(varied, key=n_labels.__getitem__, default="")


def recorded_lessons() -> tuple[Lesson, ...]:
    """Result of ``scripts/record_training.py``; empty without its file."""
    return LESSONS_FORMAT.read(sample_data() / RECORDED) or ()
