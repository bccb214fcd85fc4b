"""Rows of an evaluation: methods, and declared experiments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from neuralviz.embedders.specs import (
    JOIN,
    METHODS,
    EmbedderSpec,
    embedder_spec,
    embedder_specs,
    method_labels,
)
from neuralviz.errors import SettingsError, check_choice
from neuralviz.layers.settings import PARTS
from neuralviz.micro_tuning.settings import DEFAULT_BLUEPRINTS, PRECISIONS
from neuralviz.models import BUNDLED
from neuralviz.models.shared import LOADERS

NOTHING_IMPORTED: Mapping[str, EmbedderSpec] = MappingProxyType({})
ABLATION_EPOCHS = "5"  # as in the paper's ablations
AS_PUBLISHED = {"precision", "tolerance"}  # options that may differ from the paper's


@dataclass(frozen=True)
class Row:
    """A way to embed, as a row of a table; labels and keys are unique."""

    label: str
    spec: EmbedderSpec
    key: str  # by which scripts find it
    published: str = ""  # the name that the paper's tables have for it

    @property
    def model(self) -> str:
        if self.spec.is_imported:
            return "imported vectors"
        return self.spec.model_id or " + ".join(part.model_id for part in self.spec.parts)


def method_rows(
    methods: Sequence[str],
    typed: Mapping[str, str] | None = None,
    model_id: str | None = None,
    imported: Mapping[str, EmbedderSpec] = NOTHING_IMPORTED,
) -> tuple[Row, ...]:
    """A row per method, as in `embedder_specs`, or per imported file; SettingsError if invalid."""
    embedded = [name for name in methods if name not in imported]
    if methods and not embedded and (typed or model_id):
        raise SettingsError("Imported vectors have no options and no model. Remove these settings.")
    model_specs = iter(embedder_specs(embedded, typed, model_id))
    specs = [imported.get(name) or next(model_specs) for name in methods]
    if len(set(specs)) < len(specs):
        raise SettingsError("A file of imported vectors is named twice. Name it once.")
    return spec_rows(specs)


def spec_rows(specs: Sequence[EmbedderSpec]) -> tuple[Row, ...]:
    labels = method_labels(specs)
    names = [spec.label if spec.is_imported else spec.method for spec in specs]
    rows = []
    for label, name, spec in zip(labels, names, specs, strict=True):
        is_as_published = {option for option, _ in spec.options} <= AS_PUBLISHED
        key = name if names.count(name) == 1 else label
        rows.append(Row(label, spec, key, spec.method if is_as_published else ""))
    return tuple(rows)


def experiment_rows(
    names: str | Sequence[str], typed: Mapping[str, str], model_id: str | None
) -> tuple[Row, ...]:
    """Distinct rows of `EXPERIMENTS`; SettingsError for an unknown name or unusable option."""
    maker = RowMaker(typed, model_id)
    tables: dict[str, tuple[Row, ...]] = {}
    for name in [names] if isinstance(names, str) else names:
        check_choice("experiment", name, EXPERIMENTS)
        tables[name] = tuple(EXPERIMENTS[name].make_rows(maker))
    for option in typed:
        if option not in maker.used:
            raise SettingsError(
                f"No method in the experiment {', '.join(tables)} has an option “{option[:40]}”."
            )
    return _join_tables(tables)


def find_swept_options(rows: Sequence[Row]) -> dict[str, tuple[float, ...]]:
    """One or two numeric options that alone differ between rows, and their values; else empty."""
    # drawn as lines and grids, so every combination must be there
    specs = [row.spec for row in rows]
    methods = {(spec.method, spec.model_id) for spec in specs}
    if len(rows) < 3 or len(methods) > 1 or specs[0].parts:
        return {}
    options = [spec.all_options for spec in specs]
    values: dict[str, tuple[float, ...]] = {}
    for name in options[0]:
        texts = [str(row_options.get(name)) for row_options in options]
        if len(set(texts)) > 1:
            try:
                values[name] = tuple(float(text.strip("(,)")) for text in texts)
            except ValueError:
                return {}
    n_combined = math.prod(len(set(numbers)) for numbers in values.values())
    together = set(zip(*values.values(), strict=True))
    return values if len(values) in (1, 2) and n_combined == len(together) == len(rows) else {}


def _join_tables(tables: Mapping[str, Sequence[Row]]) -> tuple[Row, ...]:
    """The distinct rows of experiments; equal labels get the experiment's name."""
    joined: list[Row] = []
    for name, rows in tables.items():
        for row in rows:
            if any(row.spec == earlier.spec for earlier in joined):
                continue
            if any(row.label == earlier.label or row.key == earlier.key for earlier in joined):
                row = replace(row, label=f"{row.label} ({name})", key=f"{row.key} ({name})")
            joined.append(row)
    return tuple(joined)


# --- declared experiments -------------------------------------------------------------------------


@dataclass(frozen=True)
class RowMaker:
    typed: Mapping[str, str]  # options of every row whose method has them
    model_id: str | None  # None: each method's own
    used: set[str] = field(default_factory=set)  # typed options that a method has

    def make(self, label: str, method: str, published: str = "", **fixed: str) -> Row:
        """A row with its table's fixed options, and the typed ones that its method has."""
        options = {}
        for option, value in self.typed.items():
            prefix, dot, name = option.rpartition(".")
            takers = [part for part in method.split(JOIN) if part == prefix or not dot]
            declared = {option.name for taker in takers for option in METHODS[taker].options}
            if name not in declared:
                continue
            if name in fixed:
                raise SettingsError(f"The experiment sets the option “{name}” itself. Remove it.")
            options[option] = value
            self.used.add(option)
        spec = embedder_spec(method, options | fixed, self.model_id)
        # The label says already what the row sets, such as the epochs.
        label += f", {spec.precision}" * spec.learns
        changed = {option.rpartition(".")[2] for option in options} - AS_PUBLISHED
        return Row(label, spec, label.replace(", exact", ""), "" if changed else published)

    def of_masked(self) -> RowMaker:
        """The same for the bundled model, unless another is asked for."""
        return replace(self, model_id=self.model_id or BUNDLED)


MakeRows = Callable[[RowMaker], Iterable[Row]]


@dataclass(frozen=True)
class Experiment:
    """A declared table; ``line`` says what it compares, and where in the paper."""

    line: str
    make_rows: MakeRows


EXPERIMENTS: dict[str, Experiment] = {}


def _declare(name: str, line: str) -> Callable[[MakeRows], MakeRows]:
    def add(make_rows: MakeRows) -> MakeRows:
        EXPERIMENTS[name] = Experiment(line, make_rows)
        return make_rows

    return add


@_declare(
    "ablations",
    "Neural embeddings with one layer or one blueprint left out, after 5 and 10 epochs "
    "(Tables 5 to 12).",
)
def _ablations(maker: RowMaker) -> Iterable[Row]:
    yield maker.make("neural, 10 epochs", "neural", "neural", epochs="10")
    yield from _layers(maker)
    yield from _blueprints(maker)


@_declare("layers", "Neural embeddings with one layer of the head left out (Tables 5 to 8).")
def _layers(maker: RowMaker) -> Iterable[Row]:
    names = LOADERS["masked"](maker.model_id or BUNDLED).head_layers
    return _leave_out(maker, "L", "layers", names, ",")


@_declare("blueprints", "Neural embeddings with one blueprint left out (Tables 9 to 12).")
def _blueprints(maker: RowMaker) -> Iterable[Row]:
    return _leave_out(
        maker, "B", "blueprints", [str(blueprint) for blueprint in DEFAULT_BLUEPRINTS], ", "
    )


def _leave_out(
    maker: RowMaker, letter: str, option: str, values: Sequence[str], separator: str
) -> Iterable[Row]:
    """Five epochs with all values of an option, then with all but one."""
    whole = "neural, 5 epochs"
    yield maker.make(whole, "neural", whole, epochs=ABLATION_EPOCHS)
    for number, left_out in enumerate(values):
        label = f"neural-{letter}{number}"
        fixed = {option: separator.join(value for value in values if value != left_out)}
        yield maker.make(label, "neural", label, epochs=ABLATION_EPOCHS, **fixed)


@_declare("epochs", "Neural embeddings after 1 to 20 epochs.")
def _epochs(maker: RowMaker) -> Iterable[Row]:
    published = {5: "neural, 5 epochs", 10: "neural"}
    for n in range(1, 21):
        yield maker.make(f"neural, epochs {n}", "neural", published.get(n, ""), epochs=str(n))


@_declare("learning-rate", "Neural embeddings at different learning rates.")
def _learning_rates(maker: RowMaker) -> Iterable[Row]:
    for rate in ("0.001", "0.002", "0.005", "0.01", "0.02", "0.05"):
        published = "neural" if rate == "0.01" else ""
        yield maker.make(f"neural, learning rate {rate}", "neural", published, learning_rate=rate)


@_declare(
    "layer-by-layer", "Mean pooling of each layer of a model (with probes: SBERT-WK, Table VI)."
)
def _layer_by_layer(maker: RowMaker) -> Iterable[Row]:
    maker = maker.of_masked()
    for n in range(LOADERS["text"](str(maker.model_id)).n_blocks + 1):
        yield maker.make(f"layer {n}", "mean", layer=str(n))


@_declare("precision", "Neural embeddings at each precision.")
def _precisions(maker: RowMaker) -> Iterable[Row]:
    return [maker.make("neural", "neural", "neural", precision=name) for name in PRECISIONS]


@_declare(
    "outputs",
    "Hidden-layer outputs, plain and micro-tuned, compared with neural embeddings of the last "
    "block (Appendix G).",
)
def _outputs(maker: RowMaker) -> Iterable[Row]:
    maker, epochs = maker.of_masked(), {"epochs": ABLATION_EPOCHS}
    yield maker.make("neural", "neural", "neural, Appendix G", **epochs, layers="last_block")
    for name in ("neural-1", "cls", "avg", "cls-tuned", "avg-tuned", "cls-diff", "avg-diff"):
        fixed = epochs if METHODS[name].kind == "masked" else {}
        yield maker.make(name, name, name, **fixed)


@_declare("concatenated", "Neural embeddings concatenated with others (Appendix H).")
def _concatenated(maker: RowMaker) -> Iterable[Row]:
    for name in ("neural", "mean", "sbert-wk", "neural+mean", "neural+sbert-wk"):
        yield maker.make(name, name, name if name in ("neural", "mean") else "")


@_declare("sbert-wk-parts", "Each part of SBERT-WK alone (SBERT-WK, Table VII).")
def _sbert_wk_parts(maker: RowMaker) -> Iterable[Row]:
    for part in PARTS:
        label = "sbert-wk" if part == "all" else f"sbert-wk, {part.replace('-', ' ')}"
        yield maker.make(label, "sbert-wk", part=part)


@_declare(
    "sbert-wk-sweep", "SBERT-WK with different first layers and layer windows (SBERT-WK, Figure 3)."
)
def _sbert_wk_sweep(maker: RowMaker) -> Iterable[Row]:
    for start in range(6):
        for window in (1, 2, 3, 4):
            label = f"sbert-wk, first layer {start}, window {window}"
            fixed = {"layer_start": str(start), "window": str(window)}
            yield maker.make(label, "sbert-wk", **fixed)
