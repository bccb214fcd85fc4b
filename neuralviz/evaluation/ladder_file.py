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
    about: dict[str, Any] = {"format": FORMAT}
    if ladder.test is not None:
        about["test"] = asdict(ladder.test) | {"scores": None}
        arrays["test_scores"] = ladder.test.scores
    about["layers"] = []
    for n, layer in enumerate(ladder.layers.values()):
        about["layers"].append(layer.pooling)
        for name in _OF_LAYERS:
            arrays[f"layers_{n}_{name}"] = getattr(layer, name)
    about["baselines"] = []
    for n, one in enumerate(ladder.baselines.values()):
        about["baselines"].append(_numbers(one, ("name", "dev", "spearman", "pearson")))
        arrays[f"baseline_{n}"] = one.predicted
    about["curves"] = []
    for n, ((rung, seed), curve) in enumerate(ladder.curves.items()):
        about["curves"].append(
            {"rung": rung, "seed": seed, "losses": curve.losses, "dev": curve.dev}
        )
        if curve.rebuilt:
            arrays[f"curve_{n}"] = np.stack(curve.rebuilt)
    about["results"] = []
    for n, result in enumerate(ladder.results.values()):
        trained = result.trained
        about["results"].append(
            _numbers(result, ("rung", "seed", "spearman", "pearson", "seconds"))
            | _numbers(trained, ("n_layers", "d_model", "best_epoch", "epochs", "dev"))
            | {"settings": asdict(trained.settings)}
        )
        arrays[f"result_{n}"] = result.predicted
        arrays[f"result_{n}_heard"] = trained.heard
        arrays[f"result_{n}_weights"] = np.frombuffer(trained.weights, np.uint8)
        if trained.losses is not None:
            arrays[f"result_{n}_losses"] = trained.losses
    return npz_bytes(about, arrays)


def read_ladder(content: bytes) -> Ladder:
    """What `ladder_bytes` made bytes of.

    Raises:
        ValueError: they are something else.
    """
    about, arrays = read_npz(content)
    try:
        if about["format"] != FORMAT:
            raise ValueError("This file is of another version.")
        layers = [
            LayerCosines(
                str(pooling),
                *(arrays[f"layers_{n}_{name}"] for name in _OF_LAYERS),
            )
            for n, pooling in enumerate(about["layers"])
        ]
        baselines = [
            Baseline(predicted=arrays[f"baseline_{n}"], **one)
            for n, one in enumerate(about["baselines"])
        ]
        curves = {
            (one["rung"], one["seed"]): Curve(
                tuple(one["losses"]), tuple(one["dev"]), tuple(arrays.get(f"curve_{n}", ()))
            )
            for n, one in enumerate(about["curves"])
        }
        results = [_result(one, n, arrays) for n, one in enumerate(about["results"])]
        return Ladder(
            None,
            {one.pooling: one for one in layers},
            _test(about["test"], arrays) if "test" in about else None,
            {one.name: one for one in baselines},
            curves,
            {(one.rung, one.seed): one for one in results},
        )
    except (LookupError, TypeError, AttributeError, SettingsError) as error:
        raise ValueError("This is no file of a ladder.") from error


def _numbers(value: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _test(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> TestPairs:
    values = dict(about) | {
        "scores": arrays["test_scores"],
        "scale": Scale(**about["scale"]),
        "sentences1": tuple(about["sentences1"]),
        "sentences2": tuple(about["sentences2"]),
        "notes": tuple(about["notes"]),
    }
    return TestPairs(**values)


def _result(one: Mapping[str, Any], n: int, arrays: Mapping[str, np.ndarray]) -> RungResult:
    trained = SimilarityEnded(
        settings=SimilaritySettings(**one["settings"]),
        n_layers=int(one["n_layers"]),
        d_model=int(one["d_model"]),
        weights=arrays[f"result_{n}_weights"].tobytes(),
        losses=arrays.get(f"result_{n}_losses"),
        best_epoch=int(one["best_epoch"]),
        epochs=int(one["epochs"]),
        dev=float(one["dev"]),
        heard=arrays[f"result_{n}_heard"],
    )
    return RungResult(
        one["rung"],
        one["seed"],
        trained,
        arrays[f"result_{n}"],
        float(one["spearman"]),
        float(one["pearson"]),
        float(one["seconds"]),
    )
