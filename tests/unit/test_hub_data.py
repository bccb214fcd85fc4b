"""Data sets of the hub, from local copies in the same format; without a network, in words."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from huggingface_hub import constants

from neuralviz.errors import NeuralvizError
from neuralviz.evaluation.data import (
    HUB_DATA,
    GroupedData,
    HubData,
    LabelledData,
    ScoredData,
    Thresholds,
    load_hub_data,
)

pytest.importorskip("datasets")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


def save(folder: Path, split: str, rows: list[dict]) -> str:
    folder.mkdir(exist_ok=True)
    pd.DataFrame(rows).to_parquet(folder / f"{split}.parquet", index=False)
    return str(folder)


def known_at(monkeypatch: pytest.MonkeyPatch, name: str, folder: str) -> None:
    """A known name whose copy is a local folder."""
    monkeypatch.setitem(HUB_DATA, name, HubData(folder, None, HUB_DATA[name].split))


def test_the_sts_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"sentence1": f"a{n}", "sentence2": f" b{n} ", "similarity_score": float(n)}
        for n in range(6)
    ]
    known_at(monkeypatch, "stsb", save(tmp_path / "stsb", "test", rows))
    data = load_hub_data("hf:stsb")
    assert isinstance(data, ScoredData)
    assert data.texts[data.second[5]] == "b5"
    assert (data.is_similar.sum(), data.is_dissimilar.sum()) == (2, 3)
    assert len(load_hub_data("hf:stsb", max_rows=4).scores) == 4
    assert load_hub_data("hf:stsb", thresholds=Thresholds(5)).is_similar.sum() == 1


def test_mrpc_has_similar_pairs_where_the_label_is_1(tmp_path, monkeypatch) -> None:
    rows = [
        {"sentence1": f"a{n}", "sentence2": f"b{n}", "label": int(n < 3), "idx": n}
        for n in range(5)
    ]
    known_at(monkeypatch, "mrpc", save(tmp_path / "mrpc", "train", rows))
    data = load_hub_data("hf:mrpc")
    assert (data.is_similar.sum(), data.is_dissimilar.sum()) == (3, 2)
    assert data.grouping.n_triplets == 6 * 4


def test_asset_has_an_original_and_its_simplifications_in_a_group(tmp_path, monkeypatch) -> None:
    rows = [
        {"original": f"o{n}", "simplifications": [f"s{n}.{k}" for k in range(10)]} for n in range(3)
    ]
    known_at(monkeypatch, "asset", save(tmp_path / "asset", "test", rows))
    data = load_hub_data("hf:asset")
    assert isinstance(data, GroupedData)
    assert len(data.rows) == 33
    assert data.grouping.n_triplets == 33 * 10 * 22
    assert load_hub_data("hf:asset", max_rows=2).notes[0].startswith("Limited to the first 2 rows")


@pytest.mark.parametrize("which", ["machine_summaries", "human_summaries"])
def test_summeval_has_documents_for_anchors(tmp_path, monkeypatch, which: str) -> None:
    rows = [
        {"text": f"document {n}", which: [f"s{n}.{k}" for k in range(4)], "relevance": [1.0] * 4}
        for n in range(3)
    ]
    known_at(monkeypatch, "summeval", save(tmp_path / "summeval", "test", rows))
    data = load_hub_data("hf:summeval")
    assert data.grouping.anchor.sum() == 3
    assert data.grouping.n_triplets == 3 * 4 * 8


def test_any_other_of_labels_or_groups(tmp_path: Path) -> None:
    labels = save(tmp_path / "labels", "train", [{"text": t, "label": i % 2} for i, t in
                                                 enumerate(["a", "b", "", "c"])])  # fmt: skip
    data = load_hub_data(f"hf:{labels}::train")
    assert isinstance(data, LabelledData)
    assert data.labels == ("0", "1", "1")
    assert "Skipped 1 row" in data.notes[0]
    groups = save(tmp_path / "groups", "test", [{"text": t, "group": t[0]} for t in
                                                ("a1", "a2", "b1")])  # fmt: skip
    assert load_hub_data(groups).grouping.n_triplets == 2


def test_a_split_that_there_is_not(tmp_path: Path) -> None:
    folder = save(tmp_path / "some", "train", [{"text": "a", "label": 1}] * 3)
    with pytest.raises(NeuralvizError, match="Could not read"):
        load_hub_data(f"{folder}::none")


def test_without_a_network_or_the_package_it_is_said(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(NeuralvizError, match="not on this machine"):
        load_hub_data(str(tmp_path / "nothing"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)

    def offline(*_: object, **__: object) -> None:
        raise ConnectionError("Couldn't reach the hub (offline mode is enabled).")

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", offline)
    with pytest.raises(NeuralvizError, match="stsb_multi_mt is not available: it is not on"):
        load_hub_data("hf:stsb")
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(NeuralvizError, match="pip install datasets"):
        load_hub_data("hf:stsb")


def test_no_code_of_a_data_set_is_run(tmp_path: Path) -> None:
    folder = tmp_path / "script"
    folder.mkdir()
    mark = tmp_path / "ran"
    (folder / "script.py").write_text(f"open({str(mark)!r}, 'w')\n", "utf-8")
    with pytest.raises(NeuralvizError):
        load_hub_data(str(folder))
    assert not mark.exists()
