"""Results as the content of a file, and back, exactly: plain JSON and arrays in one npz archive.

Only the classes named here are made from a file; nothing in it is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from neuralviz.arrays import npz_bytes, read_npz
from neuralviz.embedders.specs import EmbedderSpec
from neuralviz.errors import NeuralvizError, StoreError
from neuralviz.evaluation.bootstrap import Intervals
from neuralviz.evaluation.broken import BrokenCount, Overlap
from neuralviz.evaluation.confusion import Confusion
from neuralviz.evaluation.correlation import Correlation
from neuralviz.evaluation.data import GroupedData, LabelledData, ParaphraseData, ScoredData
from neuralviz.evaluation.events import Cell, Compared
from neuralviz.evaluation.experiments import Row
from neuralviz.evaluation.measured import Measured
from neuralviz.evaluation.paraphrases import QualityMap
from neuralviz.evaluation.plan import EvaluationPlan, MeasureSettings
from neuralviz.evaluation.probed import Probed
from neuralviz.evaluation.probing_tasks import ProbingTask
from neuralviz.evaluation.results import Results
from neuralviz.evaluation.triplets import Grouping, WorstTriplets
from neuralviz.evaluation.uniformity import Uniformity
from neuralviz.maps.neighbourhoods import KnnAccuracy, Outvoted

FORMAT = 2  # raise it where files of before lack what is shown, or cannot be read any more
_CLASSES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        BrokenCount, Cell, Compared, Confusion, Correlation, EvaluationPlan, GroupedData,
        Grouping, Intervals, KnnAccuracy, LabelledData, Measured, MeasureSettings, Outvoted,
        Overlap, ParaphraseData, Probed, ProbingTask, QualityMap, Results, Row, ScoredData,
        Uniformity, WorstTriplets,
    )
}  # fmt: skip


def results_bytes(results: Results) -> bytes:
    """The content of a file from which `read_results` makes the same results."""
    arrays: dict[str, np.ndarray] = {}
    header = {"format": FORMAT, "results": _plain(results, arrays)}
    return npz_bytes(header, arrays)


def read_results(content: bytes) -> Results:
    """The results that `results_bytes` wrote.

    Raises:
        StoreError: they cannot be read, or a newer neuralviz wrote them.
    """
    try:
        header, arrays = read_npz(content)
        if header["format"] != FORMAT:
            raise StoreError(
                "These results were saved by another version of neuralviz. Evaluate again."
            )
        results = _restore(header["results"], arrays)
    except NeuralvizError as error:
        raise StoreError(f"Could not read the saved results: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError("Could not read the saved results. Evaluate again.") from error
    if not isinstance(results, Results):
        raise StoreError("Could not read the saved results. Evaluate again.")
    return results


def _plain(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A value as JSON; what JSON has no word for is a list that begins with a word for it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else ["float", str(value)]
    if isinstance(value, np.ndarray):
        arrays[name := f"array-{len(arrays)}"] = value
        return ["array", name]
    if isinstance(value, tuple):
        return ["tuple", [_plain(entry, arrays) for entry in value]]
    if isinstance(value, Mapping):
        pairs = [[_plain(key, arrays), _plain(entry, arrays)] for key, entry in value.items()]
        return ["map", pairs]
    if isinstance(value, EmbedderSpec):
        return ["spec", value.to_json()]
    kind = type(value).__name__
    if _CLASSES.get(kind) is not type(value):
        raise TypeError(f"{kind} cannot be kept in a file of results")
    names = [field.name for field in fields(value)]
    return [kind, {name: _plain(getattr(value, name), arrays) for name in names}]


def _restore(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The value that `_plain` wrote."""
    if not isinstance(value, list):
        return value
    kind, content = value
    if kind == "float":
        return float(content)
    if kind == "array":
        return arrays[content]
    if kind == "tuple":
        return tuple(_restore(entry, arrays) for entry in content)
    if kind == "map":
        return {_restore(key, arrays): _restore(entry, arrays) for key, entry in content}
    if kind == "spec":
        return EmbedderSpec.from_json(content)
    return _CLASSES[kind](**{name: _restore(entry, arrays) for name, entry in content.items()})
