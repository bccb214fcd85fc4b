"""How well embeddings agree with people; names that bring torch or pandas load on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuralviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from neuralviz.evaluation.data import scored_data as scored_data
    from neuralviz.evaluation.ladder import measure_cosines as measure_cosines
    from neuralviz.evaluation.ladder import model_poolings as model_poolings
    from neuralviz.evaluation.ladder import own_embeddings as own_embeddings
    from neuralviz.evaluation.ladder import train_ladder as train_ladder
    from neuralviz.evaluation.measures import evaluate as evaluate
    from neuralviz.evaluation.results import EvaluationPlan as EvaluationPlan
    from neuralviz.evaluation.results import Progress as Progress
    from neuralviz.evaluation.results import Results as Results
    from neuralviz.evaluation.rows import method_rows as method_rows

_NAMES = {
    "data": "scored_data",
    "ladder": "measure_cosines model_poolings own_embeddings train_ladder",
    "measures": "evaluate",
    "results": "EvaluationPlan Progress Results",
    "rows": "method_rows",
}
__all__ = " ".join(_NAMES.values()).split()

__getattr__, __dir__ = lazy_names(__name__, **_NAMES)
