"""Methods measured on labelled data, and the recorded results of the examples."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from neuralviz.embedders.specs import list_models
from neuralviz.errors import ShouldStop, StoreError
from neuralviz.evaluation.data import DataSet, read_data
from neuralviz.evaluation.measures import evaluate
from neuralviz.evaluation.probing_tasks import ProbingTask
from neuralviz.evaluation.results import RESULTS_FORMAT, EvaluationPlan, Event, Results
from neuralviz.evaluation.results import Progress as EvaluationProgress
from neuralviz.evaluation.rows import method_rows
from neuralviz.jobs.task import KeptTask, Progress
from neuralviz.models.shared import ModelRef
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.store.corpora import CorpusStore


@dataclass(frozen=True, eq=False)
class EvaluationState:
    """An evaluation so far."""

    results: Results
    doing: EvaluationProgress | None = None  # current step
    embedded: Mapping[tuple[int, int], float] = field(default_factory=dict)  # 0 … 1, by data, row


@dataclass(frozen=True)
class Evaluate(KeptTask[Event, EvaluationState]):
    """Evaluate a plan; embeddings are saved and reused."""

    plan: EvaluationPlan
    models: tuple[ModelRef, ...]  # of the rows; other files of a model make another task
    corpus: str = ""  # id of the saved corpus of the texts, where embeddings are kept; or empty

    @classmethod
    def for_current_models(cls, plan: EvaluationPlan, *, corpus: str = "") -> Evaluate:
        return cls(plan, list_models(row.spec for row in plan.rows), corpus)

    def start(self) -> EvaluationState:
        return EvaluationState(Results(self.plan))

    def events(self, should_stop: ShouldStop) -> Generator[Event, None, None]:
        vectors = None
        if self.corpus:
            store = CorpusStore()
            if self.corpus not in {corpus.id for corpus in store.corpora()}:
                raise StoreError("This corpus was deleted in the meantime. Choose other data.")
            if not any(isinstance(data, ProbingTask) and data.rewrites for data in self.plan.data):
                vectors = store.vectors
        yield from evaluate(self.plan, vectors, should_stop=should_stop)

    def fold(self, result: EvaluationState, events: Sequence[Event]) -> EvaluationState:
        results, doing, embedded = result.results, result.doing, dict(result.embedded)
        for event in events:
            if isinstance(event, EvaluationProgress):
                doing = event
                embedded |= _embedded_shares(event)
            else:
                results = results.having(event)
        return replace(result, results=results, doing=doing, embedded=embedded)

    def progress(self, result: EvaluationState) -> Progress:
        results, doing = result.results, result.doing
        if doing is None and not results.cells:
            return Progress()
        n_texts = [len(data.texts) for data in self.plan.data]
        places = {(data, row) for data in range(len(n_texts)) for row in range(len(self.plan.rows))}
        shares = {**result.embedded, **dict.fromkeys(results.cells, 1.0)}  # failed ones are over
        total = sum(n_texts[data] for data, _ in places)
        n_done = round(sum(n_texts[data] * share for (data, _), share in shares.items()))
        step = _describe_step(doing, results) if doing is not None else ""
        begun = shares.keys() | ({(doing.data, doing.row)} if doing is not None else set())
        text = f"{n_done:,} of {total:,} embeddings{step}"
        return Progress(n_done, total, text, is_last=begun >= places)

    def cache_key(self) -> str:
        models = [model.identity() for model in self.models]
        return json.dumps([RESULTS_FORMAT.version, self.plan.cache_key(), models, self.corpus])

    def is_whole(self, result: EvaluationState) -> bool:
        return all(cell.measured is not None for cell in result.results.cells.values())

    def pack(self, result: EvaluationState) -> bytes:
        return RESULTS_FORMAT.pack(result.results)

    def unpack(self, content: bytes) -> EvaluationState:
        return EvaluationState(RESULTS_FORMAT.unpack(content))


def _embedded_shares(event: EvaluationProgress) -> dict[tuple[int, int], float]:
    if event.row is None or not event.total:
        return {}
    rows = event.at_once or (event.row,)
    return dict.fromkeys([(event.data, row) for row in rows], event.done / event.total)


def _describe_step(doing: EvaluationProgress, results: Results) -> str:
    """The current step in words, after the counts; empty when all is done."""
    if doing.row is None:
        return "" if doing.data in results.compared else ", comparing errors"
    if (doing.data, doing.row) in results.cells:
        return ""
    more = f" and {len(doing.at_once) - 1} more" if doing.at_once else ""
    return f", {doing.doing} {results.rows[doing.row].label}{more}"


# --- sample data ----------------------------------------------------------------------------------


RECORDED = "recorded_evaluation.npz"
FIRST_METHODS = ("mean", "sbert-wk", "neural")


@dataclass(frozen=True)
class Example:
    """A sample data file and what is in it."""

    name: str
    file: str
    line: str
    roles: Mapping[str, str] = field(default_factory=dict)  # columns, unless their names say it

    def read(self) -> DataSet:
        source = Source(self.file, (sample_data() / self.file).read_bytes())
        data = read_data(source, self.roles)
        return replace(data, name=f"{self.file}, {self.name.lower()}") if self.roles else data


EXAMPLES = {
    example.name: example
    for example in (
        Example(
            "Forms", "topics.csv",
            "480 texts in six forms, such as headlines and complaints.",
            {"text": "text", "label": "form"},
        ),
        Example(
            "Topics", "topics.csv",
            "The same texts, on ten topics.",
            {"text": "text", "label": "topic"},
        ),
        Example(
            "Scored pairs", "scored_pairs.csv",
            "300 pairs of sentences, scored from 0 (unrelated) to 5 (same meaning); many are hard.",
        ),
        Example(
            "Texts in groups", "triplet_groups.csv",
            "82 texts; those of a group mean the same.",
        ),
    )
}  # fmt: skip


def example_plan() -> EvaluationPlan:
    data = tuple(example.read() for example in EXAMPLES.values())
    return EvaluationPlan(data, method_rows(FIRST_METHODS))


def recorded_results() -> tuple[Results, ...]:
    """Results of ``scripts/record_evaluation.py`` by example; empty without its file."""
    results = RESULTS_FORMAT.read(sample_data() / RECORDED)
    if results is None:
        return ()
    return tuple(results.of_data(number) for number in range(len(results.data)))
