"""What the papers print for data that we can measure, with the model that they measured.

Neural embeddings, Tables 1, 3 to 5, 7 to 9, 11 to 13, 15 and 16: the STS benchmark's test pairs.
The errors of Tables 7 and 11 are printed ten times too small and are not used; the counts are.
"""

from __future__ import annotations

from dataclasses import dataclass

from neuralviz.evaluation.data import DataSet, ScoredData

BERT = "bert-base-uncased"
STS_TEST = (1379, 338, 534)  # pairs, of them scored ≥ 4, and ≤ 2


@dataclass(frozen=True)
class Published:
    """A cell of the papers' tables; None where they have no value.

    Attributes:
        model: that was measured.
        spearman, kendall_c, kendall_b: of products with scores.
        pairs, triplets: broken ones.
        source: the tables.
    """

    model: str
    spearman: float | None = None
    kendall_c: float | None = None
    kendall_b: float | None = None
    pairs: int | None = None
    triplets: int | None = None
    source: str = ""


def _ablation(
    triplets: int, pairs: int, kendall_c: float, kendall_b: float, spearman: float, source: str
) -> Published:
    return Published(BERT, spearman, kendall_c, kendall_b, pairs, triplets, source)


_LAYERS, _BLUEPRINTS = "Tables 5, 7 and 8", "Tables 9, 11 and 12"
_OUTPUTS = "Tables 13, 15 and 16"
_STS_TEST = {
    "neural": Published(BERT, 0.658, 0.478, 0.482, 17_893, 455, "Tables 1, 3 and 4"),
    "mean": Published("all-MiniLM-L6-v2", 0.820, 0.638, 0.642, 7_216, 945, "Tables 1, 3 and 4"),
    "neural, 5 epochs": _ablation(516, 18_975, 0.470, 0.473, 0.648, _LAYERS),
    "neural-L0": _ablation(541, 18_742, 0.471, 0.475, 0.649, _LAYERS),
    "neural-L1": _ablation(517, 19_569, 0.465, 0.468, 0.642, _LAYERS),
    "neural-L2": _ablation(697, 20_485, 0.453, 0.457, 0.628, _LAYERS),
    "neural-B0": _ablation(534, 19_953, 0.460, 0.463, 0.636, _BLUEPRINTS),
    "neural-B1": _ablation(466, 18_760, 0.467, 0.470, 0.645, _BLUEPRINTS),
    "neural-B2": _ablation(653, 19_328, 0.466, 0.469, 0.643, _BLUEPRINTS),
    "neural-B3": _ablation(582, 20_024, 0.468, 0.471, 0.644, _BLUEPRINTS),
    "neural, Appendix G": _ablation(471, 19_194, 0.468, 0.471, 0.646, _OUTPUTS),
    "neural-1": _ablation(516, 19_686, 0.469, 0.472, 0.645, _OUTPUTS),
    "cls": _ablation(12_805, 62_899, 0.137, 0.138, 0.203, _OUTPUTS),
    "avg": _ablation(1_708, 33_342, 0.346, 0.348, 0.497, _OUTPUTS),
    "cls-tuned": _ablation(9_918, 56_930, 0.173, 0.174, 0.255, _OUTPUTS),
    "avg-tuned": _ablation(1_257, 28_524, 0.383, 0.385, 0.544, _OUTPUTS),
    "cls-diff": _ablation(975, 21_103, 0.443, 0.446, 0.618, _OUTPUTS),
    "avg-diff": _ablation(792, 21_167, 0.456, 0.459, 0.630, _OUTPUTS),
}


def published(data: DataSet, name: str) -> Published | None:
    """What was published of a row on these data.

    Args:
        data: the STS benchmark's test pairs, told by how many there are of each kind; none else is
            known.
        name: `Row.published`.
    """
    if not isinstance(data, ScoredData):
        return None
    sizes = (len(data.scores), int(data.is_similar.sum()), int(data.is_dissimilar.sum()))
    return _STS_TEST.get(name) if sizes == STS_TEST else None
