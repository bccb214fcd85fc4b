"""The rules of the house: who may import whom, and what is never written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "neuralviz"

# A package may import those of its own row and of the rows below it, itself included.
ROWS = (
    {"ui"},
    {"cli"},
    {"plots"},
    {"jobs"},
    {"evaluation"},
    {"maps"},
    {"store"},
    {"reading"},
    {"embedders"},
    {"layers"},
    {"micro_tuning"},
    {"models"},
    {"errors", "paths", "words"},
)
ROOTS = {"__main__", "__init__"}  # thin faces over everything


def sources() -> list[Path]:
    """Every Python file of the project that ships or is shown."""
    found = [*PACKAGE.rglob("*.py"), *(ROOT / "pages").glob("*.py"), *ROOT.glob("*.py")]
    return sorted(path for path in found if "__pycache__" not in path.parts)


def everything() -> list[Path]:
    folders = ("bundled_model", "benchmarks", "scripts", "tests")
    return [*sources(), *(path for name in folders for path in (ROOT / name).rglob("*.py"))]


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def imports_of(path: Path) -> Iterator[str]:
    """Full names of the modules that a file imports, wherever in it."""
    package = path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: -node.level]) if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def part_of(name: str) -> str | None:
    """``models`` of ``neuralviz.models.loading``; None outside the package."""
    parts = name.split(".")
    return parts[1] if parts[0] == "neuralviz" and len(parts) > 1 else None


def row_of(part: str) -> int | None:
    return next((index for index, row in enumerate(ROWS) if part in row), None)


def known_parts() -> set[str]:
    return {path.stem if path.suffix else path.name for path in PACKAGE.iterdir()
            if path.suffix == ".py" or (path / "__init__.py").is_file()}  # fmt: skip


def test_files_are_found() -> None:
    names = {relative(path) for path in sources()}
    assert {"neuralviz/models/loading.py", "neuralviz/micro_tuning/loop.py"} <= names


def test_every_package_has_its_place() -> None:
    placed = set().union(*ROWS, ROOTS)
    assert known_parts() <= placed, f"give {known_parts() - placed} a row in ROWS"


@pytest.mark.parametrize("path", sources(), ids=relative)
def test_imports_point_one_way(path: Path) -> None:
    if PACKAGE not in path.parents:
        return  # app.py and pages/ may use everything
    own = part_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
    if own in ROOTS:
        return
    wrong = []
    for name in imports_of(path):
        part = part_of(name)
        if part is None or part not in known_parts():
            continue
        if part in ROOTS or row_of(part) < row_of(own):
            wrong.append(name)
    assert not wrong, f"{relative(path)} imports {wrong}, which lie above it"


@pytest.mark.parametrize("path", sources(), ids=relative)
def test_only_pages_and_ui_import_streamlit(path: Path) -> None:
    name = relative(path)
    if name == "app.py" or name.startswith(("pages/", "neuralviz/ui/")):
        return
    assert not [module for module in imports_of(path) if module.split(".")[0] == "streamlit"]


@pytest.mark.parametrize("path", sources(), ids=relative)
def test_only_plots_build_figures(path: Path) -> None:
    if relative(path).startswith("neuralviz/plots/"):
        return
    built = [
        node
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[0] in ("go", "px", "plotly", "alt", "plt")
    ]
    assert not [ast.unparse(node.func) for node in built]


@pytest.mark.parametrize("part", ["models", "micro_tuning", "embedders", "layers", "evaluation"])
def test_the_core_draws_nothing(part: str) -> None:
    for path in (PACKAGE / part).rglob("*.py"):
        drawing = {"plotly", "streamlit", "matplotlib", "altair"}
        assert not drawing & {module.split(".")[0] for module in imports_of(path)}, relative(path)


def calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))


@pytest.mark.parametrize("path", everything(), ids=relative)
def test_what_is_never_written(path: Path) -> None:
    for call in calls(path):
        function = ast.unparse(call.func)
        assert function not in ("pickle.load", "pickle.loads", "joblib.load")
        assert function not in ("eval", "exec") or ROOT / "tests" in path.parents
        for keyword in call.keywords:
            value = ast.unparse(keyword.value)
            if keyword.arg == "trust_remote_code":
                assert value == "False", f"{relative(path)}:{call.lineno}"
            assert keyword.arg != "unsafe_allow_html" or value == "False", relative(path)
            assert keyword.arg != "allow_pickle" or value == "False", relative(path)
            assert keyword.arg != "shell" or value == "False", relative(path)
        if function == "torch.load":
            given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
            assert given.get("weights_only") == "True", f"{relative(path)}:{call.lineno}"


def test_workers_never_call_streamlit() -> None:
    """Neither what is handed to a thread, nor what it calls in pages and ``ui``."""
    functions: dict[str, list[ast.FunctionDef]] = {}
    handed_over: set[str] = set()
    for path in (*(ROOT / "pages").glob("*.py"), *(PACKAGE / "ui").rglob("*.py")):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(node.name, []).append(node)
        for call in calls(path):
            if ast.unparse(call.func).endswith(("threading.Timer", "threading.Thread")):
                values = (*call.args, *(keyword.value for keyword in call.keywords))
                handed_over |= {value.id for value in values if isinstance(value, ast.Name)}
    reached, todo = set(), handed_over & functions.keys()
    assert "_load_bundled" in todo
    while todo:
        name = todo.pop()
        reached.add(name)
        for function in functions[name]:
            names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            assert "st" not in names, f"{name} runs on a thread and calls Streamlit"
            todo |= (names & functions.keys()) - reached
    assert "_load_bundled" in reached
