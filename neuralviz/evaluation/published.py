"""What the neural paper prints for data that we can measure, with the model that it measured.

Tables 1, 3 to 5, 7 to 9, 11 to 13, 15 and 16: STS test, MRPC train, ASSET test. The errors of
Tables 7 and 11 are printed ten times too small and are not used; the counts are.
"""

from __future__ import annotations

from dataclasses import dataclass

from neuralviz.evaluation.data import DataSet

BERT = "bert-base-uncased"
MPNET, MINI = "all-mpnet-base-v2", "all-MiniLM-L6-v2"


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
    "mean": Published(MINI, 0.820, 0.638, 0.642, 7_216, 945, "Tables 1, 3 and 4"),
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
_MAIN = "Tables 1, 3 and 4"
_BENCHMARKS: dict[str, dict[str, Published]] = {
    "stsb": _STS_TEST
    | {"mean of all-mpnet-base-v2": Published(MPNET, 0.834, 0.651, 0.655, 5_889, 815, _MAIN)},
    "mrpc": {
        "neural": Published(BERT, pairs=772_375, triplets=1_491, source=_MAIN),
        "mean": Published(MINI, pairs=736_308, triplets=2_024, source=_MAIN),
        "mean of all-mpnet-base-v2": Published(MPNET, pairs=651_299, triplets=1_621, source=_MAIN),
        "neural, 5 epochs": Published(BERT, pairs=772_375, triplets=1_757, source=_LAYERS),
        "neural-L0": Published(BERT, pairs=764_793, triplets=2_996, source=_LAYERS),
        "neural-L1": Published(BERT, pairs=800_874, triplets=1_713, source=_LAYERS),
        "neural-L2": Published(BERT, pairs=804_656, triplets=3_905, source=_LAYERS),
        "neural-B0": Published(BERT, pairs=793_688, triplets=1_932, source=_BLUEPRINTS),
        "neural-B1": Published(BERT, pairs=786_711, triplets=1_713, source=_BLUEPRINTS),
        "neural-B2": Published(BERT, pairs=783_147, triplets=1_747, source=_BLUEPRINTS),
        "neural-B3": Published(BERT, pairs=796_018, triplets=2_334, source=_BLUEPRINTS),
    },
    "asset": {
        "neural": Published(BERT, triplets=74_731, source="Table 1"),
        "mean": Published(MINI, triplets=2_110, source="Table 1"),
        "mean of all-mpnet-base-v2": Published(MPNET, triplets=2_838, source="Table 1"),
        "neural, 5 epochs": Published(BERT, triplets=99_951, source="Table 5"),
        "neural-L0": Published(BERT, triplets=96_207, source="Table 5"),
        "neural-L1": Published(BERT, triplets=128_230, source="Table 5"),
        "neural-L2": Published(BERT, triplets=196_091, source="Table 5"),
    },
}


def published(data: DataSet, name: str, model_id: str = "") -> Published | None:
    """What was published of a row on these data.

    Args:
        data: one whose ``benchmark`` is known; nothing is known of others.
        name: `Row.published`.
        model_id: of the row: pooled vectors were published of two models.
    """
    known = _BENCHMARKS.get(data.benchmark, {})
    if name == "mean" and model_id.rstrip("/").endswith(MPNET):
        name = f"mean of {MPNET}"
    return known.get(name)
