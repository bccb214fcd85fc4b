"""A ladder as bytes that hold plain values only; loads no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from neuralviz.arrays import npz_bytes, read_npz
from neuralviz.errors import SettingsError
from neuralviz.evaluation.ladder_events import (
    Baseline,
    Curve,
    Ladder,
    LayerCosines,
    RungResult,
    TestPairs,
)
from neuralviz.reading.scales import Scale
from neuralviz.training.similarity.events import SimilarityEnded
from neuralviz.training.similarity.settings import SimilaritySettings

FORMAT = 3  # raise it where the same settings give another result
_OF_LAYERS = ("cosines", "scores", "numbers", "spearman", "pearson")


def ladder_bytes(ladder: Ladder) -> bytes:
    """A ladder as a file of plain arrays; how far the features are is not kept."""
    arrays: dict[str, np.ndarray] = {}
    header: dict[str, Any] = {"format": FORMAT}
    if ladder.test is not None:
        header["test"] = asdict(ladder.test) | {"scores": None}
        arrays["test_scores"] = ladder.test.scores
    header["layers"] = []
    for n, layer in enumerate(ladder.layers.values()):
        header["layers"].append(layer.pooling)
        for name in _OF_LAYERS:
            arrays[f"layers_{n}_{name}"] = getattr(layer, name)
    header["baselines"] = []
    for n, baseline in enumerate(ladder.baselines.values()):
        header["baselines"].append(_numbers(baseline, ("name", "dev", "spearman", "pearson")))
        arrays[f"baseline_{n}"] = baseline.predicted
    header["curves"] = []
    for n, ((rung, seed), curve) in enumerate(ladder.curves.items()):
        header["curves"].append(
            {"rung": rung, "seed": seed, "losses": curve.losses, "dev": curve.dev}
        )
        if curve.rebuilt:
            arrays[f"curve_{n}"] = np.stack(curve.rebuilt)
    header["results"] = []
    for n, result in enumerate(ladder.results.values()):
        trained = result.trained
        header["results"].append(
            _numbers(result, ("rung", "seed", "spearman", "pearson", "seconds"))
            | _numbers(trained, ("n_layers", "d_model", "best_epoch", "epochs", "dev"))
            | {"settings": asdict(trained.settings)}
        )
        arrays[f"result_{n}"] = result.predicted
        arrays[f"result_{n}_heard"] = trained.layer_shares
        arrays[f"result_{n}_weights"] = np.frombuffer(trained.weights, np.uint8)
        if trained.losses is not None:
            arrays[f"result_{n}_losses"] = trained.losses
    return npz_bytes(header, arrays)


def read_ladder(content: bytes) -> Ladder:
    """What `ladder_bytes` made bytes of.

    Raises:
        ValueError: they are something else.
    """
    header, arrays = read_npz(content)
    try:
        if header["format"] != FORMAT:
            raise ValueError("This file is of another version.")
        layers = [
            LayerCosines(
                str(pooling),
                *(arrays[f"layers_{n}_{name}"] for name in _OF_LAYERS),
            )
            for n, pooling in enumerate(header["layers"])
        ]
        baselines = [
            Baseline(predicted=arrays[f"baseline_{n}"], **fields)
            for n, fields in enumerate(header["baselines"])
        ]
        curves = {
            (entry["rung"], entry["seed"]): Curve(
                tuple(entry["losses"]), tuple(entry["dev"]), tuple(arrays.get(f"curve_{n}", ()))
            )
            for n, entry in enumerate(header["curves"])
        }
        results = [_result(entry, n, arrays) for n, entry in enumerate(header["results"])]
        return Ladder(
            None,
            {entry.pooling: entry for entry in layers},
            _test(header["test"], arrays) if "test" in header else None,
            {entry.name: entry for entry in baselines},
            curves,
            {(entry.rung, entry.seed): entry for entry in results},
        )
    except (LookupError, TypeError, AttributeError, SettingsError) as error:
        raise ValueError("This is no file of a ladder.") from error


def _numbers(value: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _test(entry: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> TestPairs:
    values = dict(entry) | {
        "scores": arrays["test_scores"],
        "scale": Scale(**entry["scale"]),
        "sentences1": tuple(entry["sentences1"]),
        "sentences2": tuple(entry["sentences2"]),
        "notes": tuple(entry["notes"]),
    }
    return TestPairs(**values)


def _result(entry: Mapping[str, Any], n: int, arrays: Mapping[str, np.ndarray]) -> RungResult:
    trained = SimilarityEnded(
        settings=SimilaritySettings(**entry["settings"]),
        n_layers=int(entry["n_layers"]),
        d_model=int(entry["d_model"]),
        weights=arrays[f"result_{n}_weights"].tobytes(),
        losses=arrays.get(f"result_{n}_losses"),
        best_epoch=int(entry["best_epoch"]),
        epochs=int(entry["epochs"]),
        dev=float(entry["dev"]),
        layer_shares=arrays[f"result_{n}_heard"],
    )
    return RungResult(
        entry["rung"],
        entry["seed"],
        trained,
        arrays[f"result_{n}"],
        float(entry["spearman"]),
        float(entry["pearson"]),
        float(entry["seconds"]),
    )
