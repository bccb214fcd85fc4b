"""The command that measures embeddings on labelled data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from neuralviz.cli.common import INTERRUPTED, print_message
from neuralviz.cli.data_sets import RoleOption, read_sets, split_roles
from neuralviz.cli.loading import cached_loaders, print_precision_warnings
from neuralviz.cli.terminal import printable
from neuralviz.cli.vectors import (
    OWN_SETTINGS_HELP,
    HeaderOption,
    MethodsModel,
    NoHeaderOption,
    header_line,
    options_option,
    progress_bars,
)
from neuralviz.embedders import EmbedderSpec, split_options
from neuralviz.errors import NeuralvizError, SettingsError, Stopped
from neuralviz.evaluation import lab
from neuralviz.evaluation.bootstrap import FEWEST_RESAMPLES, MOST_RESAMPLES
from neuralviz.evaluation.data import Thresholds
from neuralviz.evaluation.events import Progress
from neuralviz.evaluation.measures import check_measures
from neuralviz.evaluation.plan import (
    EXPERIMENTS,
    EvaluationPlan,
    MeasureSettings,
    experiment_rows,
    method_rows,
)
from neuralviz.evaluation.probing_tasks import TASKS
from neuralviz.evaluation.results import ARROWS, Results
from neuralviz.headlines.evaluation import describe_verdict
from neuralviz.reading.source import Source
from neuralviz.reading.vectors import read_vectors
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.importing import FILE, import_by_text, imported_specs
from neuralviz.store.vectors import text_keys
from neuralviz.store.writing import check_folder, write_text
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.evaluation.data import Measure
    from neuralviz.evaluation.events import Cell, Compared, Event
    from neuralviz.evaluation.plan import Row
    from neuralviz.models.shared import Loaders

SOME_FAILED = 1
MANY_TUNED = 300  # micro-tuned texts; more take minutes
DEFAULT_METHODS = ("neural", "mean", "sbert-wk")
LEGEND = "↑ higher is better, ↓ lower is better; the best values are bold."
MeasureName = Literal[
    "correlations", "pairs", "triplets", "neighbours", "uniformity", "paraphrases", "probe", "all"
]


commands = typer.Typer(add_completion=False)


@commands.command()
def evaluate(
    data: Annotated[
        list[str],
        typer.Option(
            help=(
                "Data set: a table with the columns sentence1, sentence2 and score; text "
                "and group; text and label; or original, generated, varies, value, fixed1 "
                "and fixed2. Also the name of a sample data file, or "
                "hf:ID[:CONFIG[:SPLIT]] for a data set on the Hugging Face Hub. Repeatable."
            ),
        ),
    ],
    method: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Embedding method, or several concatenated, such as neural+mean. "
                f"Repeatable. {OWN_SETTINGS_HELP} Also file:PATH, a Parquet file with the columns "
                "`text` and `vector`. `neuralviz methods` lists all methods. Default: "
                f"{', '.join(DEFAULT_METHODS)}."
            ),
        ),
    ] = None,
    experiment: Annotated[
        list[str] | None,
        typer.Option(
            help=("Run a predefined experiment instead of --method. Repeatable. --list lists them.")
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        options_option({"precision": "exact"}),
    ] = None,
    model: MethodsModel = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Measure: correlations, pairs, triplets, neighbours, uniformity, "
                "paraphrases, probe or all. Repeatable. Default: every measure the data set "
                "supports but probe, which takes longer."
            ),
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Probing task made from the texts of any data set or file: "
                f"{', '.join(TASKS)}. Repeatable. The measure is then probe."
            ),
        ),
    ] = None,
    role: RoleOption = None,
    header: HeaderOption = None,
    no_header: NoHeaderOption = False,
    similar: Annotated[
        float | None,
        typer.Option(
            help=(
                "Pairs with this score or higher count as similar. "
                "Default: 80% of the scale of the scores: 4 from 0 to 5."
            )
        ),
    ] = None,
    dissimilar: Annotated[
        float | None,
        typer.Option(
            help=(
                "Pairs with this score or lower count as dissimilar. "
                "Default: 40% of the scale of the scores: 2 from 0 to 5."
            )
        ),
    ] = None,
    neighbours: Annotated[
        int, typer.Option(min=1, help=("Number of neighbours that vote on a label."))
    ] = 10,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first N rows.")] = None,
    resamples: Annotated[
        int,
        typer.Option(
            metavar=f"0|{FEWEST_RESAMPLES}…{MOST_RESAMPLES}",
            help="Number of bootstrap resamples for the intervals; 0 for no intervals.",
        ),
    ] = 1000,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help=("Output folder for report.html, results.json and results.csv.")
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print only the results, as JSON.")
    ] = False,
    _list: Annotated[
        bool,
        typer.Option(
            "--list",
            is_eager=True,
            callback=lambda is_requested: _list_experiments(is_requested),
            help="List the predefined experiments and exit.",
        ),
    ] = False,
) -> None:
    """Evaluate embeddings on labelled data: correlations, triplets, pairs, neighbours, probes.

    Embeddings are saved: run the same command again to resume.
    """
    if method and experiment:
        raise SettingsError("Use either --method or --experiment, not both.")
    measures = _measures(measure or [])
    settings = MeasureSettings(measures, k=neighbours, resamples=resamples)
    if output is not None:
        check_folder(output)
    typed = split_options(option or [])
    loaders = cached_loaders()
    files = [name for name in method or () if name.startswith(FILE)]
    rows = () if files else _rows(method, experiment, typed, model, loaders)
    thresholds = Thresholds(similar, dissimilar)
    line = header_line(header, no_header=no_header)
    sets = read_sets(data, split_roles(role), thresholds, limit, task or [], line)
    if files:
        texts = list(dict.fromkeys(text for data_set in sets for text in data_set.texts))
        imported = {name: _find_imported(name, texts) for name in files}
        rows = method_rows(method or (), typed, model, imported)
    for data_set in sets:
        check_measures(data_set, settings)
        print_message(f"{data_set.name}: {data_set.describe()}.")
    _run(EvaluationPlan(tuple(sets), rows, settings), loaders, output, as_json)


def _list_experiments(is_requested: bool) -> None:
    if not is_requested:
        return
    for experiment in EXPERIMENTS.values():
        typer.echo(f"{experiment.name:<16}  {experiment.line}")
    raise typer.Exit


def _measures(names: Sequence[str]) -> tuple[Measure | Literal["all"], ...]:
    """Measures by name; ``all`` alone when all are wanted.

    Raises:
        SettingsError: there is none of a name.
    """
    choices = get_args(MeasureName)
    for name in names:
        if name not in choices:
            raise SettingsError(
                f"Unknown measure “{name[:40]}”. Choose from: {', '.join(choices)}."
            )
    return ("all",) if "all" in names else tuple(dict.fromkeys(names))  # type: ignore[arg-type]


def _rows(
    methods: Sequence[str] | None,
    experiments: Sequence[str] | None,
    typed: dict[str, str],
    model: str | None,
    loaders: Loaders,
) -> tuple[Row, ...]:
    if not experiments:
        return method_rows(methods or DEFAULT_METHODS, typed, model)

    def head_layers(model_id: str) -> Sequence[str]:
        return loaders["masked"](model_id).head_layers

    def n_blocks(model_id: str) -> int:
        return loaders["text"](model_id).n_blocks

    return experiment_rows(experiments, typed, model, head_layers, n_blocks)


def _find_imported(name: str, texts: Sequence[str]) -> EmbedderSpec:
    """The method of vectors from ``file:PATH``, or imported for a saved corpus as ``file: NAME``.

    Args:
        name: as typed, ``file:PATH`` or ``file: NAME``.
        texts: each needs a vector.

    Raises:
        NeuralvizError: there are none of this name, or not for all texts.
    """
    path = Path(name.removeprefix(FILE).strip()).expanduser()
    if path.is_file():
        try:
            read = read_vectors(Source.from_path(path))
        except OSError as error:
            raise NeuralvizError(f"Could not read {path}: {error.strerror or error}.") from error
        imported = import_by_text(lab.kept_vectors(), read, texts)
        print_message(f"{path.name}: {imported.matched}")
        return EmbedderSpec.from_json(imported.kept.spec)
    specs = imported_specs(CorpusStore().vectors, text_keys(texts))
    if f"{FILE} {path}" not in specs:
        raise NeuralvizError(
            f"There is no file “{str(path)[:80]}”, and no vectors of this name were imported for "
            "a saved corpus with all texts of the data."
        )
    return specs[f"{FILE} {path}"]


def _run(plan: EvaluationPlan, loaders: Loaders, output: Path | None, as_json: bool) -> None:
    """Fill the table; when interrupted, write what is finished."""
    if plan.n_tuned > MANY_TUNED:
        print_message(
            "Micro-tuning may take several minutes. Press Ctrl-C to stop, and run the same "
            "command again to resume."
        )
    results = Results(plan)
    stopped = False
    with progress_bars() as bars, print_precision_warnings():
        try:
            with closing(lab.evaluate(plan, loaders=loaders)) as events:
                for event in _draw_progress(events, plan, bars):
                    results = results.having(event)
        except (KeyboardInterrupt, Stopped):
            stopped = True
    for number, data in enumerate(plan.data):
        for sentence in results.sentences(number):
            print_message(f"{data.name}, {sentence}")
        if left_out := results.left_out(number):
            print_message(f"{data.name}: {left_out}")
    if output is not None and results.cells:
        _write(results, output)
    if as_json:
        typer.echo(json.dumps(results.as_json(), ensure_ascii=False, indent=2, allow_nan=False))
    else:
        _show(results)
    if stopped:
        print_message(
            f"Stopped after {len(results.cells)} of {many(plan.n_cells, 'result')}. "
            "Embeddings are saved; run the same command again to resume."
        )
        raise typer.Exit(INTERRUPTED)
    if output is not None:
        print_message(f"Wrote report.html, results.csv and results.json to {output}.")
    if results.any_failed:
        raise typer.Exit(SOME_FAILED)


def _draw_progress(
    events: Iterator[Event], plan: EvaluationPlan, bars: Any
) -> Iterator[Cell | Compared]:
    """The finished cells; progress is drawn on a terminal."""
    task, place = None, None
    for event in events:
        if not isinstance(event, Progress):
            yield event
            continue
        if place != (event.data, event.row, event.at_once):
            place = (event.data, event.row, event.at_once)
            label = "Shared errors" if event.row is None else plan.rows[event.row].label
            if event.at_once:
                label += f" and {many(len(event.at_once) - 1, 'more method')} at once"
            if len(plan.data) > 1:
                label = f"{plan.data[event.data].name}: {label}"
            task = bars.add_task(label, total=event.total or None)
        bars.update(task, completed=event.done, total=event.total or None)


def _write(results: Results, folder: Path) -> None:
    from neuralviz.plots.report import report_html  # loads plotly

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NeuralvizError(f"Could not create {folder}: {error.strerror or error}.") from error
    content = json.dumps(results.as_record(), ensure_ascii=False, indent=2, allow_nan=False)
    write_text(folder / "results.json", content)
    write_text(folder / "results.csv", results.csv())
    write_text(folder / "report.html", report_html(results))


def _show(results: Results) -> None:
    """Print a table per data set and kind of measure: narrow enough for a terminal."""
    console = Console(highlight=False)
    for number, data in enumerate(results.data):
        if len(results.data) > 1:
            console.print(Text(printable(data.name), style="bold"))
        if sentence := describe_verdict(results, number):
            console.print(Text(printable(sentence)))
            console.print()
        for words in [
            *results.tables(number),
            *results.confusion_tables(number),
            *results.overlap_tables(number),
        ]:
            table = Table(box=None, pad_edge=False)
            for place, (head, better) in enumerate(zip(words.heads, words.better, strict=True)):
                column = Text(printable(f"{head} {ARROWS.get(better, '')}".strip()))
                table.add_column(column, justify="left" if place == 0 else "right")
            for line_index, line in enumerate(words.lines):
                table.add_row(
                    *(
                        Text(
                            printable(cell),
                            style="bold" if (line_index, place) in words.best else "",
                        )
                        for place, cell in enumerate(line)
                    )
                )
            console.print(table)
            console.print()
    if results.cells:
        console.print(Text(LEGEND))
