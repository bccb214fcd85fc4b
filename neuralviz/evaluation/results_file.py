"""How results of an evaluation are kept in a file."""

from __future__ import annotations

from neuralviz.arrays import RecordFormat
from neuralviz.embedders.specs import EmbedderSpec
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
from neuralviz.micro_tuning.blueprints import Blueprint

RESULTS_FORMAT = RecordFormat(
    "results",
    version=3,
    classes=(
        Blueprint, BrokenCount, Cell, Compared, Confusion, Correlation, EmbedderSpec,
        EvaluationPlan, GroupedData, Grouping, Intervals, KnnAccuracy, LabelledData, Measured,
        MeasureSettings, Outvoted, Overlap, ParaphraseData, Probed, ProbingTask, QualityMap,
        Results, Row, ScoredData, Uniformity, WorstTriplets,
    ),
)  # fmt: skip
