"""The command that measures embeddings on labelled data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from neuralviz.cli import options
from neuralviz.cli.console import (
    make_folder,
    print_line,
    print_message,
    print_notes,
    print_table,
    run_task,
    status,
    stop,
)
from neuralviz.embedders import EmbedderSpec, split_options
from neuralviz.errors import NeuralvizError, SettingsError, check_choice
from neuralviz.evaluation.bootstrap import FEWEST_RESAMPLES, MOST_RESAMPLES
from neuralviz.evaluation.data import (
    MAX_ROWS,
    PREFIX,
    DataSet,
    Measure,
    Thresholds,
    load_hub_data,
    make_data,
)
from neuralviz.evaluation.measures import check_measures, kept_vectors
from neuralviz.evaluation.probing_tasks import TASKS, probing_task
from neuralviz.evaluation.results import ARROWS, EvaluationPlan, MeasureSettings, Results
from neuralviz.evaluation.rows import EXPERIMENTS, Row, experiment_rows, method_rows
from neuralviz.headlines import plain_headline
from neuralviz.headlines.evaluation import describe_verdict
from neuralviz.jobs.evaluating import Evaluate
from neuralviz.paths import sample_data
from neuralviz.reading.source import Source
from neuralviz.reading.tables import read_table
from neuralviz.reading.texts import read_texts
from neuralviz.reading.vectors import read_vectors
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.importing import FILE, import_by_text, imported_specs
from neuralviz.store.vectors import text_keys
from neuralviz.store.writing import check_folder, write_text
from neuralviz.words import many

SOME_FAILED = 1
DEFAULT_METHODS = ("neural", "mean", "sbert-wk")
LEGEND = "↑ higher is better, ↓ lower is better; the best values are bold."
MEASURES = (*get_args(Measure), "all")
BOUNDS = {
    "similar": "Pairs with this score or higher count as similar. Default: 80% of the scale of the "
    "scores: 4 from 0 to 5.",
    "dissimilar": "Pairs with this score or lower count as dissimilar. Default: 40% of the scale "
    "of the scores: 2 from 0 to 5.",
}

commands = typer.Typer(add_completion=False)


def _list_experiments(is_requested: bool) -> None:
    if is_requested:
        for name, experiment in EXPERIMENTS.items():
            typer.echo(f"{name:<16}  {experiment.line}")
        raise typer.Exit


@commands.command()
@options.take_options(thresholds=options.setting_options(Thresholds, BOUNDS))
def evaluate(
    data: Annotated[
        list[str],
        typer.Option(
            help="Data set: a table with the columns sentence1, sentence2 and score; text "
            "and group; text and label; or original, generated, varies, value, fixed1 "
            "and fixed2. Also the name of a sample data file, or "
            "hf:ID[:CONFIG[:SPLIT]] for a data set on the Hugging Face Hub. Repeatable."
        ),
    ],
    method: Annotated[
        list[str] | None,
        options.declare_methods(
            ", ".join(DEFAULT_METHODS),
            "Also file:PATH, a Parquet file with the columns `text` and `vector`. ",
        ),
    ] = None,
    experiment: Annotated[
        list[str] | None,
        typer.Option(
            help="Run a predefined experiment instead of --method. Repeatable. --list lists them."
        ),
    ] = None,
    option: Annotated[list[str] | None, options.declare_options({"precision": "exact"})] = None,
    model: options.MethodsModel = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Measure: {', '.join(MEASURES[:-1])} or all. Repeatable. Default: every measure "
            "the data set supports but probe and read-back, which take longer."
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="Probing task made from the texts of any data set or file: "
            f"{', '.join(TASKS)}. Repeatable. The measure is then probe."
        ),
    ] = None,
    role: options.RoleOption = None,
    header: options.HeaderOption = None,
    no_header: options.NoHeaderOption = False,
    *,
    thresholds: dict[str, float | None],
    neighbours: Annotated[
        int, typer.Option(min=1, help="Number of neighbours that vote on a label.")
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
            "--output", "-o", help="Output folder for report.html, results.json and results.csv."
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
            callback=_list_experiments,
            help="List the predefined experiments and exit.",
        ),
    ] = False,
) -> None:
    """Evaluate embeddings on labelled data: correlations, triplets, pairs, neighbours, probes.

    Embeddings are saved: run the same command again to resume.
    """
    if method and experiment:
        raise SettingsError("Use either --method or --experiment, not both.")
    for name in measure or []:
        check_choice("measure", name, MEASURES)
    for name in task or []:
        check_choice("task", name, TASKS)
    if not all(bound is None or math.isfinite(bound) for bound in thresholds.values()):
        raise SettingsError("--similar and --dissimilar must be numbers.")
    measures: Any = ("all",) if "all" in (measure or ()) else tuple(dict.fromkeys(measure or ()))
    settings = MeasureSettings(measures, k=neighbours, resamples=resamples)
    if output is not None:
        check_folder(output)
    typed = split_options(option or [])
    methods = method or DEFAULT_METHODS
    files = [name for name in methods if name.startswith(FILE)]
    rows: tuple[Row, ...] = ()
    if experiment:
        rows = experiment_rows(experiment, typed, model)
    elif not files:
        rows = method_rows(methods, typed, model)
    reader = _DataReader(
        options.split_roles(role),
        Thresholds(**thresholds),
        limit or MAX_ROWS,
        options.header_line(header, no_header),
    )
    sets = reader.read(data, task or ())
    if files:
        texts = list(dict.fromkeys(text for data_set in sets for text in data_set.texts))
        rows = method_rows(
            methods, typed, model, {name: _find_imported(name, texts) for name in files}
        )
    for data_set in sets:
        check_measures(data_set, settings)
        print_message(f"{data_set.name}: {data_set.describe()}.")
    _run(EvaluationPlan(tuple(sets), rows, settings), output, as_json)


def _find_imported(name: str, texts: Sequence[str]) -> EmbedderSpec:
    """The spec of vectors from ``file:PATH``, or imported for a corpus as ``file: NAME``."""
    path = Path(name.removeprefix(FILE).strip()).expanduser()
    if path.is_file():
        imported = import_by_text(kept_vectors(), read_vectors(Source.from_path(path)), texts)
        print_message(f"{path.name}: {imported.matched}")
        return EmbedderSpec.from_json(imported.kept.spec)
    specs = imported_specs(CorpusStore().vectors, lambda: text_keys(texts))
    if f"{FILE} {path}" not in specs:
        raise NeuralvizError(
            f"There is no file “{str(path)[:80]}”, and no vectors of this name were imported for "
            "a saved corpus with all texts of the data."
        )
    return specs[f"{FILE} {path}"]


def _run(plan: EvaluationPlan, output: Path | None, as_json: bool) -> None:
    state, is_stopped = run_task(Evaluate.for_current_models(plan))
    results = state.results
    for number, data in enumerate(plan.data):
        for sentence in results.sentences(number):
            print_message(f"{data.name}, {sentence}")
    if output is not None and results.cells:
        _write(results, output)
    if as_json:
        typer.echo(json.dumps(results.as_json(), ensure_ascii=False, indent=2, allow_nan=False))
    else:
        _show(results)
    if is_stopped:
        raise stop(
            f"Stopped after {len(results.cells)} of {many(plan.n_cells, 'result')}. "
            "Embeddings are saved; run the same command again to resume."
        )
    if output is not None:
        print_message(f"Wrote report.html, results.csv and results.json to {output}.")
    if results.any_failed:
        raise typer.Exit(SOME_FAILED)


def _write(results: Results, folder: Path) -> None:
    from neuralviz.plots.report import report_html  # loads plotly

    make_folder(folder)
    content = json.dumps(results.as_record(), ensure_ascii=False, indent=2, allow_nan=False)
    write_text(folder / "results.json", content)
    write_text(folder / "results.csv", results.csv())
    write_text(folder / "report.html", report_html(results))


def _show(results: Results) -> None:
    for number, data in enumerate(results.data):
        if len(results.data) > 1:
            print_line(data.name, "bold")
        if sentence := describe_verdict(results, number):
            print_line(plain_headline(sentence))
            print_line()
        for table in [
            *results.tables(number),
            *results.confusion_tables(number),
            *results.overlap_tables(number),
        ]:
            arrows = [ARROWS.get(better, "") for better in table.better]
            heads = [f"{head} {a}".strip() for head, a in zip(table.heads, arrows, strict=True)]
            print_table(heads, table.lines, bold=table.best)
            print_line()
    if results.cells:
        print_line(LEGEND)


# --- data sets -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _DataReader:
    """Reads data sets from files, sample data and the Hub; prints what was left out."""

    roles: Mapping[str, str]
    thresholds: Thresholds
    max_rows: int
    header: int | None

    def read(self, names: Sequence[str], tasks: Sequence[str]) -> list[DataSet]:
        """The data sets, or probing tasks from the texts of each, under distinct names."""
        if tasks and (extra_roles := set(self.roles) - {"text"}):
            raise SettingsError(
                "A task is made from the texts alone. "
                f"Remove the role {', '.join(sorted(extra_roles))}."
            )
        read_one = self._read_texts if tasks else self._read_set
        contents = {name: read_one(name) for name in names}
        titles = {title for title, _ in contents.values()}
        sets: list[DataSet] = []
        for name, (title, content) in contents.items():
            title = title if len(titles) == len(contents) else name
            if isinstance(content, DataSet):
                sets.append(replace(content, name=title))
            else:
                sets += [probing_task(task, title, content) for task in dict.fromkeys(tasks)]
        for data_set in sets:
            print_notes(data_set.notes)
        return sets

    def _read_set(self, name: str) -> tuple[str, DataSet]:
        if name.startswith(PREFIX):
            data = self._load_from_hub(name)
        else:
            path = _find_file(name)
            table = read_table(Source.from_path(path, self.header), max_rows=self.max_rows)
            print_notes([table.describe_header(path.name)])
            data = make_data(path.name, table, self.roles, thresholds=self.thresholds)
        return data.name, data

    def _read_texts(self, name: str) -> tuple[str, Sequence[str]]:
        if name.startswith(PREFIX):
            data = self._load_from_hub(name)
            return data.name, data.texts
        path, column = _find_file(name), self.roles.get("text")
        source = Source.from_path(path, self.header)
        read = read_texts(source, column, max_texts=self.max_rows)
        print_notes([read.header_note, *read.notes])
        if read.column is not None and len(read.columns) > 1 and column is None:
            print_message(f"{path.name}: the texts are those of the column “{read.column[:40]}”.")
        return path.name, read.texts

    def _load_from_hub(self, name: str) -> DataSet:
        with status(f"Loading {name} …"):
            return load_hub_data(
                name, self.roles, thresholds=self.thresholds, max_rows=self.max_rows
            )


def _find_file(name: str) -> Path:
    path = Path(name)
    sample = sample_data() / path.name
    return sample if not path.exists() and path.name == name and sample.is_file() else path
