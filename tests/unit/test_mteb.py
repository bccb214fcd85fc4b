"""Embedders as the encoders of other programs: MTEB on local tasks, BERTopic's way of calling."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scipy import stats

from neuralviz.embedders import Embedder, embedder_spec, make_embedder
from neuralviz.models import BUNDLED, MINILM, load_sentence_transformer, load_text_model
from neuralviz.reading.pairs import read_pairs
from neuralviz.reading.source import Source

if TYPE_CHECKING:
    from neuralviz.models import LanguageModel

pytestmark = pytest.mark.slow  # importing MTEB takes seconds

SAMPLES = Path(__file__).parents[2] / "sample_data"
N_PAIRS = 12


@pytest.fixture(scope="module")
def loaders(tiny: LanguageModel) -> dict[str, Any]:
    """The small model stands in for the bundled one, which would take longer to tune."""
    encoder = load_text_model(MINILM, device="cpu")
    sentence_transformer = load_sentence_transformer(MINILM, device="cpu")
    return {
        "masked": lambda model_id: {BUNDLED: tiny}[model_id],
        "text": lambda model_id: {BUNDLED: tiny, MINILM: encoder}[model_id],
        "sentence-transformer": lambda model_id: {MINILM: sentence_transformer}[model_id],
    }


def described(name: str, kind: str, main_score: str) -> Any:
    """What MTEB has to know of a task; its data come from nowhere else than the test."""
    from mteb.abstasks.task_metadata import TaskMetadata

    unknown = ("reference", "date", "domains", "task_subtypes", "license", "annotations_creators",
               "dialect", "sample_creation", "bibtex_citation")  # fmt: skip
    return TaskMetadata(
        name=name,
        dataset={"path": "local/none", "revision": "1"},
        description="Made from sample_data.",
        type=kind,
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score=main_score,
        **dict.fromkeys(unknown),
    )


def in_memory(task: type, **columns: Any) -> Any:
    """A task on columns of its own, in place of a download."""
    from datasets import Dataset, DatasetDict

    class Local(task):
        def load_data(self, *_: object, **__: object) -> None:
            self.dataset = DatasetDict(test=Dataset.from_dict(columns))
            self.data_loaded = True

    Local.__name__ = task.__name__
    return Local()


def sts_task() -> Any:
    from mteb.abstasks.sts import AbsTaskSTS

    class SampleSTS(AbsTaskSTS):
        metadata = described("SampleSTS", "STS", "cosine_spearman")
        min_score, max_score = 0, 5

    first, second, scores = pairs()
    return in_memory(SampleSTS, sentence1=first, sentence2=second, score=scores)


def pairs() -> tuple[list[str], list[str], list[float]]:
    path = SAMPLES / "scored_pairs.csv"
    read = read_pairs(Source(path.name, path.read_bytes())).first(N_PAIRS)
    return list(read.sentences1), list(read.sentences2), read.scores.tolist()


def run(embedder: Embedder, task: Any, **encode: Any) -> float:
    import mteb

    result = mteb.evaluate(
        embedder, task, cache=None, co2_tracker=False, show_progress_bar=False,
        encode_kwargs=encode or None,
    )  # fmt: skip
    (one,) = result.task_results
    return one.get_score()


@pytest.fixture(autouse=True)
def _nothing_outside(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("MTEB_CACHE", str(tmp_path / "mteb"))
    pytest.importorskip("mteb")


@pytest.mark.parametrize(
    ("method", "options"), [("neural+mean", {"epochs": "2"}), ("sentence-transformer", {})]
)
def test_the_main_score_of_a_local_sts_task_is_that_of_our_products(
    method: str, options: dict[str, str], loaders: dict[str, Any]
) -> None:
    embedder = make_embedder(embedder_spec(method, options), loaders)
    first, second, scores = pairs()
    products = (embedder.encode(first) * embedder.encode(second)).sum(axis=1)
    expected = stats.spearmanr(products, scores).statistic
    assert run(embedder, sts_task(), batch_size=5) == pytest.approx(expected, abs=1e-4)


def test_results_are_filed_under_name_and_settings(loaders: dict[str, Any]) -> None:
    make = partial(make_embedder, loaders=loaders)
    first, second, joined = (
        make(spec).mteb_model_meta
        for spec in (
            embedder_spec("mean"), embedder_spec("mean", {"layer": "0"}),
            embedder_spec("cls+mean"),
        )
    )  # fmt: skip
    assert first.name == second.name == "neuralviz/mean"
    assert joined.name == "neuralviz/cls+mean"
    assert first.revision == make(embedder_spec("mean")).mteb_model_meta.revision
    assert first.revision != second.revision
    assert (first.embed_dim, joined.embed_dim) == (384, 768)
