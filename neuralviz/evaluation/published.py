"""What the neural paper prints for data that we can measure, with the model that it measured.

Tables 1, 3 to 5, 7 to 9, 11 to 13, 15 and 16: STS test, MRPC train, ASSET test. The errors of
Tables 7 and 11 are printed ten times too small and are not used; the counts are.
"""

from __future__ import annotations

from dataclasses import dataclass

from neuralviz.evaluation.data import DataSet, GroupedData, ScoredData

BERT = "bert-base-uncased"
MPNET, MINI = "all-mpnet-base-v2", "all-MiniLM-L6-v2"


@dataclass(frozen=True)
class PublishedCount:
    """A published count of broken pairs or broken triplets.

    Attributes:
        wrong: how many are broken.
        same, diff: mean products of what is alike and of what is not.
        shared: I with the neural embedding (Eq. 3); None where it is not printed.
    """

    wrong: int
    same: float
    diff: float
    shared: float | None = None


@dataclass(frozen=True)
class Published:
    """A cell of the papers' tables; None where they have no value.

    Attributes:
        model: that was measured.
        spearman, kendall_c, kendall_b: of products with scores.
        pairs, triplets: what was broken.
        source: the tables.
    """

    model: str
    spearman: float | None = None
    kendall_c: float | None = None
    kendall_b: float | None = None
    pairs: PublishedCount | None = None
    triplets: PublishedCount | None = None
    source: str = ""


# the tables of correlations, of pairs and of triplets, and the rows that they have
_TABLES = {
    (4, 3, 1): ("neural", "mean", f"mean of {MPNET}"),
    (8, 7, 5): ("neural, 5 epochs", "neural-L0", "neural-L1", "neural-L2"),
    (12, 11, 9): ("neural-B0", "neural-B1", "neural-B2", "neural-B3"),
    (16, 15, 13): (
        "neural, Appendix G", "neural-1", "cls", "avg", "cls-tuned", "avg-tuned", "cls-diff",
        "avg-diff",
    ),
}  # fmt: skip
_TOTAL_PAIRS = {"stsb": 180_492, "mrpc": 2_953_956}
_TOTAL_TRIPLETS = {"stsb": 455_624, "mrpc": 24_472_808, "asset": 155_511_620}

# [row] tau-c, tau-b, Spearman
_CORRELATIONS = {
    "stsb": {
        "neural": (0.478, 0.482, 0.658),
        "mean": (0.638, 0.642, 0.820),
        f"mean of {MPNET}": (0.651, 0.655, 0.834),
        "neural, 5 epochs": (0.470, 0.473, 0.648),
        "neural-L0": (0.471, 0.475, 0.649),
        "neural-L1": (0.465, 0.468, 0.642),
        "neural-L2": (0.453, 0.457, 0.628),
        "neural-B0": (0.460, 0.463, 0.636),
        "neural-B1": (0.467, 0.470, 0.645),
        "neural-B2": (0.466, 0.469, 0.643),
        "neural-B3": (0.468, 0.471, 0.644),
        "neural, Appendix G": (0.468, 0.471, 0.646),
        "neural-1": (0.469, 0.472, 0.645),
        "cls": (0.137, 0.138, 0.203),
        "avg": (0.346, 0.348, 0.497),
        "cls-tuned": (0.173, 0.174, 0.255),
        "avg-tuned": (0.383, 0.385, 0.544),
        "cls-diff": (0.443, 0.446, 0.618),
        "avg-diff": (0.456, 0.459, 0.630),
    }
}
# [row] broken, same, diff
_PAIRS: dict[str, dict[str, tuple[float, ...]]] = {
    "stsb": {
        "neural": (17_893, 0.53, 0.29),
        "mean": (7_216, 0.84, 0.37),
        f"mean of {MPNET}": (5_889, 0.84, 0.33),
        "neural, 5 epochs": (18_975, 0.53, 0.29),
        "neural-L0": (18_742, 0.56, 0.31),
        "neural-L1": (19_569, 0.51, 0.28),
        "neural-L2": (20_485, 0.51, 0.29),
        "neural-B0": (19_953, 0.53, 0.30),
        "neural-B1": (18_760, 0.53, 0.30),
        "neural-B2": (19_328, 0.51, 0.28),
        "neural-B3": (20_024, 0.50, 0.26),
        "neural, Appendix G": (19_194, 0.53, 0.30),
        "neural-1": (19_686, 0.58, 0.34),
        "cls": (62_899, 0.92, 0.89),
        "avg": (33_342, 0.89, 0.79),
        "cls-tuned": (56_930, 0.91, 0.88),
        "avg-tuned": (28_524, 0.88, 0.77),
        "cls-diff": (21_103, 0.56, 0.33),
        "avg-diff": (21_167, 0.58, 0.34),
    },
    "mrpc": {
        "neural": (772_375, 0.54, 0.42),
        "mean": (736_308, 0.83, 0.71),
        f"mean of {MPNET}": (651_299, 0.85, 0.71),
        "neural, 5 epochs": (772_375, 0.54, 0.42),
        "neural-L0": (764_793, 0.55, 0.43),
        "neural-L1": (800_874, 0.51, 0.40),
        "neural-L2": (804_656, 0.52, 0.41),
        "neural-B0": (793_688, 0.52, 0.42),
        "neural-B1": (786_711, 0.53, 0.42),
        "neural-B2": (783_147, 0.52, 0.41),
        "neural-B3": (796_018, 0.50, 0.39),
        "neural, Appendix G": (785_630, 0.54, 0.42),
        "neural-1": (784_603, 0.57, 0.46),
        "cls": (1_100_243, 0.92, 0.90),
        "avg": (837_001, 0.92, 0.88),
        "cls-tuned": (1_056_685, 0.92, 0.89),
        "avg-tuned": (788_863, 0.90, 0.86),
        "cls-diff": (830_654, 0.56, 0.45),
        "avg-diff": (796_859, 0.58, 0.46),
    },
}
# [row] broken, same, diff, and where it is printed I with neural
_TRIPLETS: dict[str, dict[str, tuple[float, ...]]] = {
    "stsb": {
        "neural": (455, 0.53, 0.03),
        "mean": (945, 0.84, 0.03, 0.67),
        f"mean of {MPNET}": (815, 0.84, 0.03, 0.64),
        "neural, 5 epochs": (516, 0.53, 0.04),
        "neural-L0": (541, 0.56, 0.03),
        "neural-L1": (517, 0.51, 0.04),
        "neural-L2": (697, 0.51, 0.05),
        "neural-B0": (534, 0.53, 0.04),
        "neural-B1": (466, 0.53, 0.04),
        "neural-B2": (653, 0.51, 0.04),
        "neural-B3": (582, 0.50, 0.03),
        "neural, Appendix G": (471, 0.53, 0.04),
        "neural-1": (516, 0.58, 0.05),
        "cls": (12_805, 0.92, 0.73),
        "avg": (1_708, 0.89, 0.55),
        "cls-tuned": (9_918, 0.91, 0.70),
        "avg-tuned": (1_257, 0.88, 0.50),
        "cls-diff": (975, 0.56, 0.05),
        "avg-diff": (792, 0.58, 0.06),
    },
    "mrpc": {
        "neural": (1_491, 0.54, 0.02),
        "mean": (2_024, 0.83, 0.06, 0.78),
        f"mean of {MPNET}": (1_621, 0.85, 0.06, 0.72),
        "neural, 5 epochs": (1_757, 0.53, 0.03),
        "neural-L0": (2_996, 0.55, 0.01),
        "neural-L1": (1_713, 0.51, 0.03),
        "neural-L2": (3_905, 0.52, 0.04),
        "neural-B0": (1_932, 0.53, 0.03),
        "neural-B1": (1_713, 0.53, 0.03),
        "neural-B2": (1_747, 0.52, 0.02),
        "neural-B3": (2_334, 0.50, 0.01),
        "neural, Appendix G": (1_639, 0.54, 0.03),
        "neural-1": (2_076, 0.57, 0.04),
        "cls": (333_146, 0.92, 0.75),
        "avg": (9_637, 0.92, 0.62),
        "cls-tuned": (221_189, 0.92, 0.73),
        "avg-tuned": (5_608, 0.90, 0.56),
        "cls-diff": (9_044, 0.56, 0.06),
        "avg-diff": (5_432, 0.58, 0.05),
    },
    "asset": {
        "neural": (74_731, 0.51, 0.01),
        "mean": (2_110, 0.87, 0.03, 0.44),
        f"mean of {MPNET}": (2_838, 0.87, 0.04, 0.05),
        "neural, 5 epochs": (99_951, 0.50, 0.02),
        "neural-L0": (96_207, 0.52, 0.01),
        "neural-L1": (128_230, 0.48, 0.02),
        "neural-L2": (196_091, 0.48, 0.03),
        "neural-B0": (113_772, 0.50, 0.02),
        "neural-B1": (111_335, 0.50, 0.02),
        "neural-B2": (109_574, 0.49, 0.01),
        "neural-B3": (126_789, 0.47, 0.01),
        "neural, Appendix G": (75_916, 0.50, 0.02),
        "neural-1": (93_684, 0.54, 0.02),
        "cls": (1_745_865, 0.92, 0.69),
        "avg": (60_617, 0.91, 0.52),
        "cls-tuned": (1_334_770, 0.91, 0.67),
        "avg-tuned": (34_829, 0.89, 0.47),
        "cls-diff": (555_409, 0.52, 0.03),
        "avg-diff": (342_306, 0.54, 0.02),
    },
}


def find_published(data: DataSet, name: str, model_id: str = "") -> Published | None:
    """What was published of a row on these data.

    Counts stand only where there are as many pairs, or triplets, as the paper had: with other
    bounds of what is similar there are others.

    Args:
        data: one whose ``benchmark`` is known; nothing is known of others.
        name: `Row.published`.
        model_id: of the row: pooled vectors were published of two models.
    """
    if name == "mean" and model_id.rstrip("/").endswith(MPNET):
        name = f"mean of {MPNET}"
    benchmark = data.benchmark
    tau_c, tau_b, spearman = _CORRELATIONS.get(benchmark, {}).get(name, (None, None, None))
    pairs = triplets = None
    if isinstance(data, ScoredData):
        total = int(data.is_similar.sum()) * int(data.is_dissimilar.sum())
        pairs = _count(_PAIRS, _TOTAL_PAIRS, benchmark, name, total)
    if isinstance(data, ScoredData | GroupedData):
        triplets = _count(_TRIPLETS, _TOTAL_TRIPLETS, benchmark, name, data.grouping.n_triplets)
    if spearman is None and pairs is None and triplets is None:
        return None
    numbers = next(tables for tables, rows in _TABLES.items() if name in rows)
    used_tables = [
        n for n, value in zip(numbers, (spearman, pairs, triplets), strict=True) if value
    ]
    model = {"mean": MINI, f"mean of {MPNET}": MPNET}.get(name, BERT)
    return Published(model, spearman, tau_c, tau_b, pairs, triplets, _named(used_tables))


def _count(
    counts: dict[str, dict[str, tuple[float, ...]]],
    totals: dict[str, int],
    benchmark: str,
    name: str,
    total: int,
) -> PublishedCount | None:
    row = counts.get(benchmark, {}).get(name)
    if row is None or total != totals[benchmark]:
        return None
    wrong, *rest = row
    return PublishedCount(int(wrong), *rest)


def _named(tables: list[int]) -> str:
    """``Table 1``, ``Tables 1, 3 and 4``."""
    words = [str(number) for number in sorted(tables)]
    before = ", ".join(words[:-1])
    return f"Tables {before} and {words[-1]}" if before else f"Table {words[0]}"
