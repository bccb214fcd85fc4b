"""Micro-tuning with progress: on texts, and of every block on one text."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from neuralviz.errors import SettingsError, ShouldStop, Stopped, check_stop
from neuralviz.jobs.task import KeptTask, Lane, LatestTask, Progress
from neuralviz.lazy import Lazy
from neuralviz.micro_tuning.blanks import split_at_blanks
from neuralviz.micro_tuning.events import (
    RUN_FORMAT,
    FilledBlank,
    MaskedPredictions,
    RunRecord,
    TextDelta,
    WatchedEvent,
)
from neuralviz.micro_tuning.settings import REVISION, TuningSettings
from neuralviz.micro_tuning.watching import BATCH, watch
from neuralviz.models import tokenize
from neuralviz.models.shared import ModelRef, shared_model
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.micro_tuning.walkthrough import Walkthrough

MAX_SHARED = 2000  # characters of a run that takes turns; the steps of longer ones last
MAX_AT_ONCE = 8  # steps of runs that take turns; each has its own activations
START_SECONDS = 10.0  # for their threads to start
E = TypeVar("E")


@dataclass(frozen=True)
class TuneTexts(KeptTask[WatchedEvent, RunRecord]):
    """Micro-tune on each text; runs on a few short ones take turns, step by step."""

    format = RUN_FORMAT

    model: ModelRef
    texts: tuple[str, ...]
    settings: TuningSettings

    def start(self) -> RunRecord:
        return RunRecord(self.model.id, self.settings, self.texts)

    def fold(self, result: RunRecord, events: Sequence[WatchedEvent]) -> RunRecord:
        return result.having(events)

    def progress(self, result: RunRecord) -> Progress:
        if not (result.epochs_reached or result.parts):  # on a long text that takes seconds
            return Progress(doing="Working on epoch 1 …")
        doing = f"In epoch {result.epoch:,} of {self.settings.epochs:,}"
        if (n := len(self.texts)) > 1:
            doing = f"{len(result.reports):,} of {many(n, 'text')} finished, {doing.lower()}"
        return Progress(result.progress, 1.0, doing=doing)

    @property
    def lane(self) -> Lane:  # type: ignore[override]
        is_small = len(self.texts) <= BATCH and sum(map(len, self.texts)) <= MAX_SHARED
        return "shared" if is_small else "long"

    def events(self, should_stop: ShouldStop) -> Generator[WatchedEvent, None, None]:
        model = shared_model(self.model.id)
        events = watch(model, self.texts, self.settings, should_stop)
        yield from take_turns(events) if self.lane == "shared" else events

    def cache_key(self) -> str:
        versions = [self.format.version, REVISION]
        return json.dumps([versions, self.model.identity(), self.texts, asdict(self.settings)])


@dataclass(frozen=True)
class FillBlanks(LatestTask[tuple[FilledBlank, ...]]):
    """Predict the blanks of a sentence, with and without deltas of a run on the weights."""

    lane = "short"

    model: ModelRef  # with its files when the deltas were made
    sentence: str  # with blanks, as of `fill_blanks`
    run_id: str
    scaled: tuple[tuple[float, int], ...]  # each delta's scale, and its text in the run
    deltas: tuple[TextDelta, ...] = field(compare=False)

    def events(self, should_stop: ShouldStop) -> Generator[tuple[FilledBlank, ...], None, None]:
        from neuralviz.micro_tuning.predictions import fill_blanks

        split_at_blanks(self.sentence)  # checked before a model is loaded
        if ModelRef.from_id(self.model.id) != self.model:
            raise SettingsError(
                f"The files of the model “{self.model.id}” have changed since this run, so its "
                "deltas no longer fit. Press Tune to run it again."
            )
        model = shared_model(self.model.id)
        check_stop(should_stop)
        scales = [scale for scale, _ in self.scaled]
        deltas = list(zip(scales, self.deltas, strict=True))
        yield fill_blanks(model, self.sentence, deltas)


@dataclass(frozen=True)
class PredictTokens(LatestTask[MaskedPredictions]):
    """Predict tokens of a text that are masked together."""

    lane = "short"

    model: ModelRef
    text: str
    chunk: int  # the part of the text that the tokens are in
    tokens: tuple[int, ...]  # indices in the text

    def events(self, should_stop: ShouldStop) -> Generator[MaskedPredictions, None, None]:
        from neuralviz.micro_tuning.predictions import predict_tokens

        model = shared_model(self.model.id)
        check_stop(should_stop)
        (text,) = tokenize(model, [self.text])
        yield predict_tokens(model, text, text.chunks[self.chunk], self.tokens)


@dataclass(frozen=True)
class WalkThrough(LatestTask["Walkthrough"]):
    """Micro-tune on short texts and keep every number."""

    lane = "short"

    model: ModelRef
    texts: tuple[str, ...]  # the one that is followed, then those to compare it with

    def events(self, should_stop: ShouldStop) -> Generator[Walkthrough, None, None]:
        from neuralviz.micro_tuning import walkthrough

        model = shared_model(self.model.id)
        walk = partial(walkthrough.walk_through, model, self.texts, should_stop=should_stop)
        yield _walks.get((model.id, model.fingerprint, self.texts), walk)


_walks = Lazy(kept=8, freeze=False)  # most visitors look at the examples


# --- turns of runs on short texts ----------------------------------------------------------------


def take_turns(events: Iterator[E]) -> Iterator[E]:
    """Yield the events; beside other runs, each is computed on one core, first come, first served.

    Steps on short texts side by side take less time than one after the other on all cores, which
    mostly wait for each other.
    """
    global _n_active
    with _lock:
        _n_active += 1
    try:
        while (event := _take_turn(partial(next, events, None))) is not None:
            yield event
    finally:
        with _lock:
            _n_active -= 1


_n_active = 0  # runs that take turns
_lock = threading.Lock()


def _take_turn(step: Callable[[], E]) -> E:
    if _n_active == 1:
        return step()
    with _lock:
        cores = _cores()
    try:
        turn = cores.submit(step)
    except RuntimeError as error:
        raise Stopped from error  # Python ends
    return turn.result()


@cache
def _cores() -> ThreadPoolExecutor:
    """Threads that compute on one core each; Python waits for them before it ends."""
    import torch

    def use_one_core() -> None:
        torch.get_num_threads()  # the first call in a thread takes over what is set for all
        torch.set_num_threads(1)  # in this thread, and for all that begin
        started.wait()

    n_threads = torch.get_num_threads()
    n_cores = min(n_threads, MAX_AT_ONCE)
    started = threading.Barrier(n_cores, timeout=START_SECONDS)  # each sets its own number
    cores = ThreadPoolExecutor(n_cores, "neuralviz-turns")
    try:
        for start in [cores.submit(use_one_core) for _ in range(n_cores)]:
            start.result()
    finally:
        torch.set_num_threads(n_threads)  # for all others that begin
    return cores
