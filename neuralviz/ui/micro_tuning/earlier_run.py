"""Keeps the earlier run, over which a run is drawn, in the address: a link brings both back."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.jobs.micro_tuning import TuneTexts
from neuralviz.micro_tuning.blueprints import Blueprint
from neuralviz.micro_tuning.settings import TuningSettings
from neuralviz.models.shared import ModelRef
from neuralviz.ui.links import View, load_view, save_once

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from neuralviz.jobs import Run
    from neuralviz.micro_tuning.record import RunRecord
    from neuralviz.ui.session_runs import SessionRuns

ADDRESS = "earlier"  # query parameter: the id of the earlier run's view
_LAST_VIEW = "micro-tuning-earlier"  # session state: the view last written or opened
_RUN = "run"  # a choice of the view


def put_earlier_in_address(runs: SessionRuns, earlier: Run[RunRecord] | None) -> None:
    """Let the address name the earlier run that is shown, if one is and its result is kept.

    Args:
        runs: of the session.
        earlier: see above.
    """
    if earlier is None or not earlier.view:
        st.query_params.pop(ADDRESS, None)
        return
    run_id, view_id = st.session_state.get(_LAST_VIEW, (None, None))
    if run_id != earlier.id:
        task: TuneTexts = earlier.task
        run = [task.model.id, asdict(task.settings), earlier.view]
        try:
            view_id = save_once(View(task.texts, choices=((_RUN, json.dumps(run)),)))
        except OSError:  # the page has reported it for the texts
            return
        st.session_state[_LAST_VIEW] = (earlier.id, view_id)
    st.query_params[ADDRESS] = view_id


def restore_earlier(runs: SessionRuns, texts: Sequence[str]) -> None:
    """Make the earlier run that an address names the session's last run, if it has these texts.

    Args:
        runs: of the session.
        texts: that are asked for.
    """
    view_id = st.query_params.get(ADDRESS)
    if not view_id or view_id == st.session_state.get(_LAST_VIEW, (None, None))[1]:
        return
    st.session_state[_LAST_VIEW] = (None, view_id)
    view = load_view(view_id)
    if view is not None and view.texts == tuple(texts):
        try:
            model_id, settings, result_id = json.loads(dict(view.choices)[_RUN])
            task = TuneTexts(ModelRef.from_id(model_id), view.texts, _read_settings(settings))
        except (ValueError, LookupError, TypeError, NeuralvizError):
            pass  # a view of another page or version
        else:
            if runs.find(task) is not None or runs.recall(task, result_id) is not None:
                return
    st.toast("The earlier run in this link is not saved here. Showing the newer one alone.")


def _read_settings(values: dict[str, Any]) -> TuningSettings:
    """Settings from their fields as JSON gives them."""
    tuples = {
        "layers": tuple(values["layers"]),
        "betas": tuple(values["betas"]),
        "blueprints": tuple(Blueprint(*pair) for pair in values["blueprints"]),
    }
    return TuningSettings(**values | tuples)
