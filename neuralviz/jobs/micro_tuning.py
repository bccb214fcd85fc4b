"""Micro-tuning with progress: on texts, and of every block on one text."""

from __future__ import annotations

import atexit
import json
import queue
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from neuralviz import micro_tuning
from neuralviz.errors import SettingsError, Stopped
from neuralviz.jobs.task import KeptTask, Lane, LatestTask, Progress, Task
from neuralviz.micro_tuning.blanks import FilledBlank, TextDelta, split_at_blanks
from neuralviz.micro_tuning.record import RECORD_FORMAT, RunRecord, read_record, record_bytes
from neuralviz.micro_tuning.settings import REVISION
from neuralviz.micro_tuning.watching import BATCH, WatchedEvent, go_together, watch, watch_together
from neuralviz.models.shared import ModelRef, find_held, shared_model
from neuralviz.models.tokens import TokenizedText, tokenize
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from neuralviz.errors import ShouldStop
    from neuralviz.layers.settings import MarkGrid
    from neuralviz.micro_tuning import TuningSettings
    from neuralviz.micro_tuning.walkthrough import Walkthrough
    from neuralviz.models import LanguageModel


MAX_SHARED = 2000  # characters of a run in a shared batch; longer ones would delay others


@dataclass(frozen=True)
class _Tune(Task[WatchedEvent, RunRecord]):
    model: ModelRef
    texts: tuple[str, ...]
    settings: TuningSettings

    def start(self) -> RunRecord:
        return RunRecord(self.model.id, self.settings, self.texts)

    def fold(self, result: RunRecord, events: Sequence[WatchedEvent]) -> RunRecord:
        return result.having(events)

    def progress(self, result: RunRecord) -> Progress:
        epochs = self.settings.epochs
        if not result.epochs_reached:  # on a long text that takes seconds
            if find_held("masked", self.model.id) is None:
                return Progress(doing="Loading the model …")
            first = f"the first of {epochs:,} epochs" if epochs > 1 else "the epoch"
            return Progress(doing=f"Computing {first} …")
        doing = f"Epoch {result.epochs_reached:,} of {epochs:,}"
        if (n := len(self.texts)) > 1:
            doing = f"{result.texts_done:,} of {many(n, 'text')}, {doing.lower()}"
        return Progress(result.progress, 1.0, doing=doing)


@dataclass(frozen=True)
class TuneTexts(_Tune, KeptTask[WatchedEvent, RunRecord]):
    """Micro-tune on each text; a few short ones share batches with other runs."""

    @property
    def lane(self) -> Lane:  # type: ignore[override]
        is_small = len(self.texts) <= BATCH and sum(map(len, self.texts)) <= MAX_SHARED
        return "shared" if is_small else "long"

    def events(self, should_stop: ShouldStop) -> Generator[WatchedEvent, None, None]:
        tune = watch_with_others if self.lane == "shared" else watch
        yield from tune(shared_model(self.model.id), self.texts, self.settings, should_stop)

    def cache_key(self) -> str:
        versions = [RECORD_FORMAT.version, REVISION]
        return json.dumps([versions, self.model.identity(), self.texts, asdict(self.settings)])

    def pack(self, result: RunRecord) -> bytes:
        return record_bytes(result)

    def unpack(self, content: bytes) -> RunRecord:
        return read_record(content)


@dataclass(frozen=True)
class TuneBlocks(_Tune):
    """Micro-tune parameters of all blocks on one text, to see which of them move."""

    grid: MarkGrid  # places of the tuned parameters

    def events(self, should_stop: ShouldStop) -> Generator[WatchedEvent, None, None]:
        model = shared_model(self.model.id)
        for event in micro_tuning.micro_tune(
            model, self.texts, self.settings, should_stop=should_stop
        ):
            yield WatchedEvent(0, event)


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
        if should_stop():
            raise Stopped
        scales = [scale for scale, _ in self.scaled]
        deltas = list(zip(scales, self.deltas, strict=True))
        yield fill_blanks(model, self.sentence, deltas)


@dataclass(frozen=True)
class WalkThrough(LatestTask["Walkthrough"]):
    """Micro-tune on short texts and keep every number."""

    lane = "short"

    model: ModelRef
    texts: tuple[str, ...]  # the one that is followed, then those to compare it with

    def events(self, should_stop: ShouldStop) -> Generator[Walkthrough, None, None]:
        from neuralviz.micro_tuning import walkthrough

        model = shared_model(self.model.id)
        yield walkthrough.walk_through(model, self.texts, should_stop=should_stop)


@dataclass(eq=False)
class _Member:
    """A run's texts, and an inbox for its events and, at the end, None or an error."""

    model: LanguageModel
    texts: Sequence[TokenizedText]
    settings: TuningSettings
    should_stop: ShouldStop
    inbox: queue.SimpleQueue[WatchedEvent | BaseException | None] = field(
        default_factory=queue.SimpleQueue
    )


_arrivals: queue.SimpleQueue[_Member] = queue.SimpleQueue()
_lock = threading.Lock()
_thread: threading.Thread | None = None
_step = threading.Lock()  # held during a step
# A thread inside torch when Python ends would crash the process.
atexit.register(_step.acquire)


def watch_with_others(
    model: LanguageModel, texts: Sequence[str], settings: TuningSettings, should_stop: ShouldStop
) -> Generator[WatchedEvent, None, None]:
    """Micro-tune like `watch`, in one batch with texts of other runs where they fit."""
    tokens = tokenize(model, texts)
    if not go_together(model, [tokens], settings):
        yield from watch(model, texts, settings, should_stop)
        return
    has_left = threading.Event()
    member = _Member(model, tokens, settings, lambda: has_left.is_set() or should_stop())
    _arrivals.put(member)
    _start_thread()
    try:
        while (event := member.inbox.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event
    finally:
        has_left.set()


def _start_thread() -> None:
    global _thread
    with _lock:
        if _thread is None:
            _thread = threading.Thread(target=_tune_all, name="neuralviz-sharing", daemon=True)
            _thread.start()


def _tune_all() -> None:
    """Compute a step of each batch in turn, for ever."""
    batches: deque[Iterator[None]] = deque()
    while True:
        arrived = [] if batches else [_arrivals.get()]
        with suppress(queue.Empty):
            while True:
                arrived.append(_arrivals.get_nowait())
        batches.extendleft(_make_batches(arrived))  # new runs see their first step soon
        batch = batches.popleft()
        with _step, suppress(StopIteration):
            next(batch)
            batches.append(batch)


def _make_batches(arrived: Iterable[_Member]) -> list[Iterator[None]]:
    alike: dict[tuple[int, TuningSettings], list[_Member]] = {}
    for member in arrived:
        alike.setdefault((id(member.model), member.settings), []).append(member)
    return [
        _tune_batch([members[number] for number in group])
        for members in alike.values()
        for group in go_together(
            members[0].model, [member.texts for member in members], members[0].settings
        )
    ]


def _tune_batch(members: Sequence[_Member]) -> Iterator[None]:
    """Tune on the texts of runs, a step at a time, and put events into their inboxes."""
    end: BaseException | None = None
    try:
        for step in watch_together(
            members[0].model,
            [member.texts for member in members],
            members[0].settings,
            [member.should_stop for member in members],
        ):
            for number, event in step:
                members[number].inbox.put(event)
            yield
    except BaseException as error:  # no run may wait for ever
        end = error
    for member in members:
        member.inbox.put(end)
