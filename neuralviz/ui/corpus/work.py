"""Starts and shows runs that embed a corpus and make its maps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from neuralviz.jobs.mapping import MakeMaps, MapsState
from neuralviz.ui.limits import effective_settings
from neuralviz.ui.run_panel import RunSentences, show_run_panel
from neuralviz.ui.session_runs import SessionRuns, find_status, is_of_others

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.jobs import Run
    from neuralviz.jobs.mapping import MapChoice
    from neuralviz.store.corpora import Corpus

RUNS = SessionRuns("corpus-maps")
LIVE_SECONDS = 1.0
_SAVED = (
    "The embeddings that were finished are saved; what is missing is made when you press the "
    "button above."
)
_LOST = {
    "crashed": f"The server ended while it was working on this corpus. {_SAVED}",
    "not begun": f"Work on this corpus did not begin. {_SAVED}",
    "stopped": f"Work on this corpus was stopped. {_SAVED}",
    "failed": f"Work on this corpus failed. {_SAVED}",
    "cut off": f"The process that worked on this corpus ended suddenly. {_SAVED}",
    "elsewhere": (
        "Another server of this machine is working on this corpus. Reload the page later to see "
        "the map."
    ),
}


def start_maps(corpus: Corpus, choices: Sequence[MapChoice]) -> None:
    """Start a run that makes missing maps; it replaces the session's unfinished one."""
    RUNS.start(MakeMaps.for_current_models(corpus.id, choices), again=True, work=_work(corpus))


def current_run(corpus: Corpus) -> Run[MapsState] | None:
    """The run on this corpus: the session's last, else one under way that the address names.

    Where users do not share corpora, the last one under way counts without being named.
    """
    return RUNS.meet(
        lambda task: isinstance(task, MakeMaps) and task.corpus_id == corpus.id,
        unnamed=effective_settings().private or not effective_settings().open,
    )


def find_makeable(run: Run[MapsState] | None, missing: Sequence[MapChoice]) -> list[MapChoice]:
    """The missing maps that a new run may make now.

    Empty while this session's run is under way; while another session's is, those that it leaves.
    """
    if run is None or run.is_over:
        return list(missing)
    under_way = _task(run).choices
    return [choice for choice in missing if is_of_others(run) and choice not in under_way]


def is_of_interest(run: Run[MapsState], missing: Sequence[MapChoice]) -> bool:
    """Whether to show a run: this session's, or another session's that makes a missing map.

    A finished run is shown where maps are still missing.
    """
    if run.is_over:
        return bool(missing) and run.status != "done"
    return not is_of_others(run) or any(choice in _task(run).choices for choice in missing)


def describe_lost_run(corpus: Corpus) -> str:
    """What became of a lost run that the address names; empty where none was lost."""
    status = find_status(_work(corpus))
    return _LOST.get(status, "") if status is not None else ""


def _work(corpus: Corpus) -> str:
    return f"maps of {corpus.id}"


def _task(run: Run[MapsState]) -> MakeMaps:
    return cast("MakeMaps", run.task)


def show_run(run: Run[MapsState]) -> None:
    """Show the run's progress; the page runs again when the run is over."""

    show_run_panel(
        RUNS,
        run,
        lambda _result, _live: None,
        sentences=RunSentences(describe_stopped=partial(describe_stopped, _task(run))),
        interval=LIVE_SECONDS,
    )


def describe_stopped(task: MakeMaps, result: MapsState) -> str:
    """How far a stopped run came, and what it saved."""
    embedding = result.embedding
    if embedding is None and result.projecting is None:
        return "Stopped before the first text was embedded."
    if embedding is None or result.projecting is not None or embedding.is_complete:
        return "Stopped before the map was finished. The embeddings are saved."
    if not embedding.done:
        return f"Stopped before the first text was embedded by {task.methods[result.place]}."
    return (
        f"Stopped. {embedding.done:,} of {embedding.total:,} different texts are embedded by "
        f"{task.methods[result.place]} and saved. Press “Run again” to resume."
    )
