"""The page on frozen features below its title: the ladder, the layers, a rung, two texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.errors import SettingsError
from neuralviz.evaluation import ladder_results as ladders
from neuralviz.evaluation.ladder_results import (
    DEFAULT_SEED,
    Ladder,
    LadderLine,
    LadderSettings,
    RungResult,
)
from neuralviz.headlines import layers as headlines
from neuralviz.jobs import Run
from neuralviz.jobs import ladder as jobs
from neuralviz.jobs.ladder import ClimbLadder, LookAtLayers, ScoreTwoTexts, TwoScores
from neuralviz.layers.settings import POOLING_NAMES, POOLINGS, PoolingName
from neuralviz.models.shared import ModelRef
from neuralviz.plots import ladder as plots
from neuralviz.plots.layers import layer_figure
from neuralviz.plots.report import About
from neuralviz.reading.pairs import ScoredPairs
from neuralviz.training import similarity
from neuralviz.training.similarity import SimilarityModel
from neuralviz.training.similarity.kept import model_path
from neuralviz.training.similarity.settings import RUNG_NAMES, RUNGS, Rung
from neuralviz.ui.choices import (
    Write,
    choose_one,
    choose_text_model,
    may_load,
    save_by_name,
    show_views,
)
from neuralviz.ui.figures import list_worst, quote, show_figure, show_table
from neuralviz.ui.inputs import choose_pairs, put_upload_in_address, remember_texts
from neuralviz.ui.limits import character_limit, effective_settings
from neuralviz.ui.page import (
    dim_old_results,
    hide_on_stage,
    plain,
    result_view_id,
    show_error,
    show_headline,
    show_on_stage,
    show_only_on_stage,
    slide,
    wide_columns,
)
from neuralviz.ui.runs import (
    RunSentences,
    SessionRuns,
    find_current_run,
    show_current_run,
    show_run_panel,
)
from neuralviz.words import many

KEY = "frozen"
LOOKS = SessionRuns(f"{KEY}-layers")
SEEDS = {"One": (DEFAULT_SEED,), "Three": tuple(range(DEFAULT_SEED, DEFAULT_SEED + 3))}
_MODEL_HELP = (
    "It stays as it is. You can choose a sentence encoder, a masked language model or a model that "
    "predicts the next token, by its Hub ID or its folder."
)
Draw = Callable[..., object]

RUNS = SessionRuns(KEY)
TWO_TEXTS = SessionRuns(f"{KEY}-two", kept=8)
PATIENCE = 0.5  # seconds: two texts are scored by then, once the model is loaded
HEIGHT = 300  # px
N_BASELINES = 3  # lines of a new ladder
N_WORST = 20  # predictions in the table
COEFFICIENTS = {"Spearman": "spearman", "Pearson": "pearson", "Kendall tau-b": "kendall_b"}
COEFFICIENTS |= {"Kendall tau-c": "kendall_c", "pairs": "n"}
_ON_STAGE = ("Predictions", "Errors")  # the first views; the others need more words
_SILENT = RunSentences(start="Loading the model …", done="")


def show() -> None:
    task, looking, pressed = choose_ladder()
    if pressed:
        put_upload_in_address(KEY)
    recorded = load_recorded_run()
    run = find_current_run(
        RUNS,
        task,
        result_view_id(KEY),
        pressed=pressed,
        recorded=recorded,
        owns_address=looking is None or bool(looking.result.layers),  # the pooling is known
    )
    if run is not None:
        sentences, draw = RunSentences(start="Loading the model …"), partial(_show_ladder, run)
        show_current_run(RUNS, run, task, "Train", draw, sentences, recorded=recorded)
    shown_error = run.error if run is not None else None
    views: dict[str, Callable[[Write], None]] = {}
    climbed = run if run is not None and run.is_over and run.result.results else None
    if climbed is not None:
        views["Predictions"] = partial(_show_rung, climbed, _show_predictions)
        views["Errors"] = partial(_show_rung, climbed, _show_errors)
    if looking is not None and (looking.error is None or looking.error != shown_error):
        views["Layers"] = partial(_show_layers, looking)
    if climbed is not None:
        views["One rung"] = partial(_show_rung, climbed, _show_layer_shares)
        views["Two texts"] = partial(_ask_two_texts, climbed)
        views["All numbers"] = partial(_show_numbers, climbed.result)
    if views:
        # the layers are those of the widgets' pairs
        is_of_run = st.session_state.get(f"{KEY}-more", next(iter(views))) != "Layers"
        is_old = run is not None and run.task != task and is_of_run
        with dim_old_results(f"{KEY}-closer", is_old):
            n_on_stage = len(views.keys() & _ON_STAGE)
            show_views(KEY, views, key=f"{KEY}-more", n_on_stage=n_on_stage)


def _drawing(model_id: str, **settings: str) -> Draw:
    """`show_figure` with the settings that all figures of a model name."""
    provenance = About("Frozen features", {"model": model_id, **settings}, (model_id,))
    return partial(show_figure, provenance=provenance, height=HEIGHT)


# --- what is trained -----------------------------------------------------------------------------


def choose_ladder() -> tuple[ClimbLadder | None, Run[Ladder] | None, bool]:
    """Ask for a ladder; returns it, the run over its layers, and whether *Train* was pressed."""
    left_column, right_column = wide_columns(2, f"{KEY}-given")
    with left_column:
        pairs = choose_pairs(KEY)
    with right_column:
        model_place, pooling_place = st.columns(2)
        with model_place:
            model_id = choose_text_model(f"{KEY}-model", _MODEL_HELP)
        if pairs is None or not may_load(model_id):
            return None, None, False
        model = ModelRef.from_id(model_id)
        looking = _look_at_layers(model, pairs)
        with pooling_place:
            pooling = _choose_pooling(list(looking.result.layers))
        row = st.container(horizontal=True, vertical_alignment="center")
        pressed = row.button("Train", type="primary", icon=":material/fitness_center:")
        try:
            with row.popover("Settings", icon=":material/tune:", key=f"{KEY}-settings"):
                settings = _choose_settings(pooling)
        except SettingsError as error:
            show_error(error)
            return None, looking, pressed
    return ClimbLadder(model, pairs, settings), looking, pressed


@st.cache_resource(max_entries=1, show_spinner=False)
def load_recorded_run() -> Run[Ladder] | None:
    """The recorded ladder as a finished run, the same one for all sessions."""
    ladder = jobs.recorded_ladder()
    return None if ladder is None else Run.from_result(jobs.example_ladder(), ladder)


def _look_at_layers(model: ModelRef, pairs: ScoredPairs) -> Run[Ladder]:
    """A run over the layers: the recorded one where it is of these pairs."""
    recorded = load_recorded_run()
    if recorded is not None and (recorded.task.model, recorded.task.pairs) == (model, pairs):
        return recorded
    return LOOKS.start(LookAtLayers(model, pairs))


def _choose_pooling(model_poolings: Sequence[str]) -> PoolingName:
    """Ask for a pooling, the model's default first; all are offered while it is not loaded."""
    options = model_poolings or POOLINGS
    chosen = st.selectbox(
        "Pooling",
        options,
        format_func=POOLING_NAMES.__getitem__,
        key=f"{KEY}-pooling-{options[0]}",  # a model with other poolings resets it
        bind="query-params",
        help="How the vectors of a text's tokens become one vector at each layer.",
    )
    return cast("PoolingName", chosen or options[0])


def _choose_settings(pooling: PoolingName) -> LadderSettings:
    rungs = st.pills(
        "Rungs",
        RUNGS,
        default=list(RUNGS),
        selection_mode="multi",
        format_func=RUNG_NAMES.__getitem__,
        key=f"{KEY}-rungs",
        bind="query-params",
    )
    for rung in RUNGS:
        st.caption(f"**{RUNG_NAMES[rung]}**: {headlines.LADDER_IN_SHORT[rung]}.")
    seeds = choose_one(
        st.segmented_control,
        "Seeds",
        list(SEEDS),
        key=f"{KEY}-seeds",
        help="With three, each rung is trained three times, and the mean is shown.",
    )
    return LadderSettings(
        pooling=pooling, rungs=tuple(rung for rung in RUNGS if rung in rungs), seeds=SEEDS[seeds]
    )


# --- the ladder and the layers -----------------------------------------------------------------


def _show_ladder(run: Run[Ladder], ladder: Ladder, live: bool) -> None:
    """Show the main finding, the ladder, and the rungs' learning curves."""
    lines, rungs, curves = ladders.ladder_lines(ladder), run.task.settings.rungs, ladder.curves
    height = 120 + 40 * (len(rungs) + N_BASELINES)  # px, from the start on
    model_id = run.task.model.id
    draw = partial(_drawing(model_id), height=height)

    def tabulate_curves() -> pd.DataFrame:
        return pd.DataFrame(
            {"rung": rung, "seed": seed, "epoch": epoch, "loss": loss, "dev Spearman": dev}
            for (rung, seed), curve in curves.items()
            for epoch, (loss, dev) in enumerate(zip(curve.losses, curve.dev, strict=True), 1)
        )

    sentence = headlines.describe_ladder(ladder, is_whole=not live)
    waiting = "Small models learn people's scores from all layers, rung by rung."
    with slide("frozen-ladder", sentence or waiting):
        with show_only_on_stage(f"{KEY}-ladder"):
            best_lines = [line for line in headlines.compared_lines(lines) if line is not None]
            st.markdown(headlines.explain_ladder(ladder, best_lines, sentence))
            if best_lines:
                best_rungs = [line.rung for line in best_lines if line.rung]
                figure, key = plots.ladder_figure(best_lines, best_rungs), f"{KEY}-{run.id}-best"
                draw(figure, "best", lambda: _tabulate_ladder(best_lines), key=key)
        left_column, right_column = wide_columns([7, 5], "frozen-ladder")
        with left_column, hide_on_stage(f"{KEY}-all"):
            figure, key = plots.ladder_figure(lines, rungs), f"{KEY}-{run.id}-ladder"
            draw(figure, "ladder", lambda: _tabulate_ladder(lines), key=key)
        with right_column, hide_on_stage(f"{KEY}-curves"):
            figure, key = plots.curves_figure(curves), f"{KEY}-{run.id}-curves"
            alt = "How the rungs learn: Spearman on the dev pairs, and the loss, by epoch"
            about = About("How the rungs learn", {"model": model_id}, (model_id,))
            draw(figure, "learning-curves", tabulate_curves, provenance=about, key=key, alt=alt)


def _show_layers(looking: Run[Ladder], _write: Write) -> None:
    """Show how well the cosine at each layer follows human scores before any training."""
    draw_layers = partial(_draw_layers, looking.task.model.id)
    if looking is load_recorded_run():
        draw_layers(looking.result, live=False)
        return
    show_run_panel(LOOKS, looking, draw_layers, sentences=_SILENT)
    if any(len(first.scores) == jobs.LOOKED_AT for first, *_ in looking.result.layers.values()):
        st.caption(f"The first {many(jobs.LOOKED_AT, 'train pair')}.")


def _draw_layers(model_id: str, ladder: Ladder, live: bool) -> None:
    sentence, best = headlines.describe_best_layer(ladder.layers, is_whole=not live)
    values = {
        name: [layer.correlation.spearman for layer in measured]
        for name, measured in ladder.layers.items()
    }
    figure = layer_figure(values, (best.pooling, best.layer) if best is not None else None)
    figure.update_layout(legend={"xref": "container"})
    if not ladder.layers:
        sentence = "Every text is read once, for its vectors at all layers."
        figure.update_layout(yaxis={"range": [0, 1]}, xaxis={"range": [0, 6], "tickvals": []})

    def tabulate_layers() -> pd.DataFrame:
        return pd.DataFrame(
            {"pooling": name, "layer": layer}
            | {label: getattr(row.correlation, field) for label, field in COEFFICIENTS.items()}
            for name, measured in ladder.layers.items()
            for layer, row in enumerate(measured)
        )

    show_headline(sentence, key=f"{KEY}-layers")
    show_only_on_stage(f"{KEY}-layers").markdown(headlines.explain_layers(sentence))
    _drawing(model_id)(figure, "correlation-by-layer", tabulate_layers, height=HEIGHT + 40)


def _show_numbers(ladder: Ladder, _write: Write) -> None:
    """Show all numbers of the ladder as a table, and the numbers of pairs."""
    test, numbers = ladder.test, _tabulate_ladder(ladders.ladder_lines(ladder))
    assert test is not None
    sizes = (
        f"{many(test.n_train, 'train pair')}, {test.n_dev:,} dev pairs, "
        f"{len(test.scores):,} test pairs."
    )
    st.caption(plain(" ".join([sizes, *test.notes])))
    table = numbers.dropna(axis="columns", how="all")
    table = table.rename(columns={"low": "95% from", "high": "to"})
    three = st.column_config.NumberColumn(format="%.3f")
    config = dict.fromkeys(map(str, table.select_dtypes("float")), three)
    show_table(table, "frozen-table", title="All numbers", column_config=config)
    if "published Spearman" in table:
        st.caption(f"*Published*: {ladders.PUBLISHED_OF} on these test pairs, those of STS-B.")


def _tabulate_ladder(lines: Sequence[LadderLine]) -> pd.DataFrame:
    columns = ("name", "dev Spearman", "Spearman", "low", "high", "Pearson", "seeds")
    rows = [
        (
            line.name, line.dev, line.spearman, *(line.interval or (np.nan, np.nan)),
            line.pearson, max(1, len(line.seeds)), line.published,
        )
        for line in lines
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=[*columns, "published Spearman"])


# --- a rung --------------------------------------------------------------------------------------


def _show_rung(
    run: Run[Ladder], show: Callable[[Ladder, RungResult, Draw, Write], None], write_headline: Write
) -> None:
    """Ask for a rung, show something of it, and offer to save it."""
    ladder = run.result
    best = ladders.best_rung(ladder) or ladder.rungs[0]
    rung: Rung = choose_one(
        st.pills, "Rung", ladder.rungs, default=best, format_func=RUNG_NAMES.__getitem__,
        key=f"{KEY}-rung-{best}",  # another best rung resets it
        label_visibility="collapsed", persist_state="session",
    )  # fmt: skip
    result = ladders.best_result(ladder, rung)
    seed = str(result.trained.settings.seed)
    draw = _drawing(run.task.model.id, rung=RUNG_NAMES[rung], seed=seed)
    show_only_on_stage(f"{KEY}-rung").markdown(headlines.explain_rung(ladder, rung))
    show(ladder, result, draw, write_headline)
    with hide_on_stage("frozen-save"):
        _offer_to_save(run, rung)


def _show_layer_shares(ladder: Ladder, result: RungResult, draw: Draw, write: Write) -> None:
    """Draw each layer's share of the rung's score, and the autoencoders' loss at each layer."""
    rung, shares = result.trained.settings.rung, result.trained.layer_shares
    rebuilt = [
        (ladder.curves[place].rebuilt if place in ladder.curves else (), rung_result.trained.losses)
        for place, rung_result in ladder.results.items()
        if rung_result.trained.losses is not None
    ]
    write(headlines.describe_layer_shares(rung, shares))
    places = wide_columns(1 + bool(rebuilt), "frozen-shares")
    with places[0]:
        table = pd.DataFrame({"layer": range(len(shares)), "share": shares})
        draw(plots.layer_shares_figure(rung, shares), "layer-shares", table)
    for epochs, losses in rebuilt[:1]:
        with places[1], hide_on_stage(f"{KEY}-rebuilt"):
            table = pd.DataFrame({"layer": range(len(losses)), "lost": losses})
            draw(plots.autoencoder_figure(epochs, losses), "autoencoder-loss", table)


def _show_predictions(ladder: Ladder, result: RungResult, draw: Draw, write: Write) -> None:
    """Draw predictions against human scores, and list the worst."""
    test = ladder.test
    assert test is not None
    rung, predicted = result.trained.settings.rung, result.measured.cosines
    sentences = list(zip(test.sentences1, test.sentences2, strict=True))
    order = np.argsort(-np.abs(predicted - test.scores), kind="stable")
    numbers, worst = pd.DataFrame(sentences, columns=["text 1", "text 2"]), order[0]
    numbers = numbers.assign(**{"human score": test.scores, "prediction": predicted}).iloc[order]
    case = sentences[worst], test.scores[worst], predicted[worst]
    write(headlines.describe_worst(rung, len(sentences), *case, quote))
    left_column, right_column = wide_columns(2, "frozen-predictions")
    with left_column:
        figure = plots.predictions_figure(rung, predicted, test.scores, sentences)
        draw(figure, "predictions", numbers, height=HEIGHT + 100)
    with right_column:
        list_worst(numbers[:N_WORST], "frozen-worst")


def _show_errors(ladder: Ladder, result: RungResult, draw: Draw, write: Write) -> None:
    """Draw how the errors are distributed."""
    test = ladder.test
    assert test is not None
    rung, predicted = result.trained.settings.rung, result.measured.cosines
    errors = predicted - test.scores
    sentence, _, spread = headlines.describe_errors(rung, predicted, test.scores).partition("\n\n")
    write(sentence)
    st.caption(spread)
    left_column, right_column = wide_columns(2, "frozen-errors")
    with left_column:
        draw(plots.residual_figure(rung, errors), "errors", pd.DataFrame({"error": errors}))
    with right_column, hide_on_stage(f"{KEY}-q-q"):
        draw(plots.qq_figure(rung, errors), "q-q", pd.DataFrame({"error": errors}))


def _offer_to_save(run: Run[Ladder], rung: Rung) -> None:
    if effective_settings().demo:
        st.caption("Similarity models cannot be saved in this demo.")
        return

    def save(name: str) -> Path:
        models = {model.trained.settings.rung: model for model in _similarity_models(run)}
        return similarity.save_similarity_model(models[rung], name).parent

    with st.expander("Save this rung", icon=":material/save:"):
        st.caption(
            "A saved rung scores any pairs of texts: `neuralviz score pairs.csv --model NAME`, or "
            "from Python `load_similarity_model(NAME).score(pairs)`."
        )
        for warning in headlines.warn_of_rung(run.result, rung):
            st.warning(plain(warning))
        identity = (run.task, rung)
        save_by_name(KEY, "my-similarity", identity, save, lambda n: model_path(n).is_file())


# --- two texts -----------------------------------------------------------------------------------


def _ask_two_texts(run: Run[Ladder], _write: Write) -> None:
    """Ask for two texts, at first the paper's, and show how every rung scores them."""
    with show_on_stage(TWO_TEXTS.kind), st.container(horizontal=True):
        fields = {f"{TWO_TEXTS.kind}-{n}": text for n, text in enumerate(headlines.PAPERS_PAIR, 1)}
        remember_texts(TWO_TEXTS.kind, fields)
        length = character_limit(len(fields))
        texts = [
            st.text_input(f"Text {n}", max_chars=length, key=key, persist_state="session")
            for n, key in enumerate(fields, 1)
        ]
    task = ScoreTwoTexts(run.task.model, _similarity_models(run), *texts)
    scoring = TWO_TEXTS.start(task)
    draw = partial(_show_two_texts, task)
    show_run_panel(TWO_TEXTS, scoring, draw, sentences=_SILENT, patience=PATIENCE)


def _similarity_models(run: Run[Ladder]) -> tuple[SimilarityModel, ...]:
    """A ladder's similarity models, the same ones as long as it is shown."""
    shown_id, models = st.session_state.get(f"{KEY}-models", ("", ()))
    if shown_id != run.id:
        models = jobs.make_similarity_models(run.task.model, run.result)
        st.session_state[f"{KEY}-models"] = run.id, models
    return models


def _show_two_texts(task: ScoreTwoTexts, scores: TwoScores | None, _: bool) -> None:
    if scores is None:
        return
    table = pd.DataFrame(
        {
            "rung": [RUNG_NAMES[rung] for rung in scores.pair],
            "score": list(scores.pair.values()),
            "identical texts": list(scores.equal.values()),
        }
    )
    pair, scale = (task.first, task.second), task.rungs[0].scale
    sentence = headlines.describe_two_texts(pair, scores.pair, scores.equal, quote)
    show_headline(sentence, key=TWO_TEXTS.kind)
    figure = plots.pair_scores_figure(scores.pair, scores.equal, scale.low, scale.high)
    _drawing(task.model.id)(figure, "two-texts", table)
