"""The rules of the house as functions: each takes a project's folder and gives what breaks it.

A project is a folder with ``neuralviz/``, ``pages/`` and ``app.py``; none of them has to be there,
so that a test can plant a violation in a folder with two files. A violation is a sentence that
begins with the file it is in.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

Rule = Callable[[Path], list[str]]

# Each room may import itself and the rooms below it.
ROOMS: tuple[frozenset[str], ...] = tuple(
    map(
        frozenset,
        (
            {"ui"},
            {"cli"},
            {"plots"},
            {"jobs"},
            {"cluster"},
            {"evaluation"},
            {"training"},
            {"maps"},
            {"store"},
            {"reading"},
            {"embedders"},
            {"layers"},
            {"micro_tuning"},
            {"models"},
            {
                "arrays",
                "words",
                "errors",
                "paths",
                "lazy",
                "lazy_names",
                "locks",
                "native_libraries",
                "server_settings",
            },
        ),
    )
)
ENTRIES = frozenset({"__init__", "__main__"})
"""Faces of the package, which may import everything and which nobody imports for what it does."""

MAX_FILE_LINES = 400
MAX_PAGE_LINES = 60
MAX_FUNCTION_LEVEL_IMPORTS = 61

_DRAWING = frozenset({"altair", "matplotlib", "plotly", "seaborn"})
_FIGURES = frozenset({"alt", "altair", "go", "matplotlib", "plotly", "plt", "px"})
# What runs the functions it is given on a thread or in a process of its own.
_RUNNERS = frozenset(
    {
        "Process",
        "Thread",
        "Timer",
        "apply_async",
        "remote",
        "run_in_executor",
        "after_loading",
        "submit",
        "soon",
        "to_thread",
    }
)


@dataclass(frozen=True)
class Import:
    """A module or a name of a module that a file imports.

    Attributes:
        name: full name, as ``neuralviz.models.loading`` or ``neuralviz.models.load_model``.
        bound: the name that the statement makes in the file; empty if it makes none.
        means: full name of what ``bound`` is.
        line: of the statement.
        when: ``loaded`` with the file, ``called`` in a function, or ``typing`` for checkers alone.
    """

    name: str
    bound: str
    means: str
    line: int
    when: str


@dataclass(frozen=True)
class File:
    """A parsed file of a project.

    Attributes:
        path: relative to the project, with ``/``.
        module: full name; that of the package for ``__init__.py``.
        lines: how many it has.
        tree: its syntax tree.
    """

    path: str
    module: str
    lines: int
    tree: ast.Module = field(repr=False)

    @property
    def room(self) -> str | None:
        """``models`` of ``neuralviz/models/loading.py``; None outside the package."""
        parts = self.path.removesuffix(".py").split("/")
        return parts[1] if parts[0] == "neuralviz" else None

    @property
    def is_shown(self) -> bool:
        """Whether it may call Streamlit: ``app.py``, a page, or of ``neuralviz/ui``."""
        return self.path == "app.py" or self.path.startswith(("pages/", "neuralviz/ui/"))

    def imports(self) -> Iterator[Import]:
        """Everything it imports, wherever in it."""
        package = self.module.split(".")
        if not self.path.endswith("__init__.py"):
            package = package[:-1]
        for node, when in _statements(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    binding = (alias.asname, alias.name) if alias.asname else (top, top)
                    yield Import(alias.name, *binding, node.lineno, when)
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) + 1 - node.level] if node.level else []
                module = ".".join([*base, *([node.module] if node.module else [])])
                for alias in node.names:
                    name = f"{module}.{alias.name}"
                    yield Import(name, alias.asname or alias.name, name, node.lineno, when)
            elif isinstance(node, ast.Call) and _last_name(node.func) == "import_module":
                for name in node.args[:1]:
                    if isinstance(name, ast.Constant) and isinstance(name.value, str):
                        yield Import(name.value, "", "", node.lineno, when)


def _statements(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """All nodes, each with when it is run."""
    todo: list[tuple[ast.AST, str]] = [(tree, "loaded")]
    while todo:
        node, when = todo.pop()
        yield node, when
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            todo += [(child, "called") for child in ast.iter_child_nodes(node)]
        elif isinstance(node, ast.If) and _last_name(node.test) == "TYPE_CHECKING":
            todo += [(child, "typing") for child in node.body]
            todo += [(child, when) for child in node.orelse]
        else:
            todo += [(child, when) for child in ast.iter_child_nodes(node)]


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def files_of(root: Path, *folders: str) -> list[File]:
    """The Python files of a project's folders, all that ship unless some are named."""
    folders = folders or ("neuralviz", "pages")
    paths = [path for folder in folders for path in (root / folder).rglob("*.py")]
    found = sorted([*paths, *root.glob("*.py")])
    return [_parsed(root, path, path.stat().st_mtime_ns) for path in found]


@cache
def _parsed(root: Path, path: Path, _changed: int) -> File:
    text = path.read_text("utf-8")
    relative = path.relative_to(root)
    parts = relative.with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
    return File(relative.as_posix(), module, len(text.splitlines()), ast.parse(text, str(path)))


def package_files(root: Path) -> list[File]:
    """The files of ``neuralviz/``."""
    return [file for file in files_of(root) if file.room is not None]


def _rooms(root: Path) -> set[str]:
    return {file.room for file in package_files(root) if file.room is not None}


def _room_of(name: str, rooms: set[str]) -> str | None:
    """The room of a full name; None outside the package and for names of the package itself."""
    parts = name.split(".")
    return parts[1] if parts[0] == "neuralviz" and len(parts) > 1 and parts[1] in rooms else None


def _height(room: str) -> int | None:
    """How many rooms lie above."""
    return next((index for index, level in enumerate(ROOMS) if room in level), None)


def every_room_has_its_place(root: Path) -> list[str]:
    """Each folder and each module of ``neuralviz/`` is in ``ROOMS``."""
    placed = ENTRIES.union(*ROOMS)
    return [f"neuralviz/{room} has no place in ROOMS" for room in sorted(_rooms(root) - placed)]


def imports_point_down(root: Path) -> list[str]:
    """A room imports itself and rooms below it, also for type checkers and inside functions."""
    rooms, found = _rooms(root), []
    for file in package_files(root):
        height = _height(file.room or "")
        if file.room in ENTRIES or height is None:
            continue
        for one in file.imports():
            room = _room_of(one.name, rooms)
            other = None if room is None else _height(room)
            if room in ENTRIES or (other is not None and other < height):
                found.append(f"{file.path}:{one.line} imports {one.name}, which lies above it")
    return found


def the_package_is_imported_for_its_version_alone(root: Path) -> list[str]:
    """No file goes round the order of the rooms by what ``neuralviz/__init__.py`` offers."""
    rooms, found = _rooms(root), []
    for file in package_files(root):
        if file.room in ENTRIES:
            continue
        for one in file.imports():
            parts = one.name.split(".")
            if parts[0] != "neuralviz" or _room_of(one.name, rooms):
                continue
            if parts != ["neuralviz", "__version__"]:
                found.append(f"{file.path}:{one.line} imports {one.name} from the package itself")
    return found


def no_circles_within_a_room(root: Path) -> list[str]:
    """Files that import each other as they are loaded: none of them can be read first."""
    files = {file.module: file for file in package_files(root)}
    graph: dict[str, set[str]] = {name: set() for name in files}
    for name, file in files.items():
        for one in file.imports():
            module = one.name if one.name in files else one.name.rpartition(".")[0]
            if one.when == "loaded" and module in files and module != name:
                graph[name].add(module)
    circles = [sorted(circle) for circle in _circles(graph)]
    return [f"{files[names[0]].path} is in a circle: {', '.join(names)}" for names in circles]


def _circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Groups of nodes that reach each other, by their reach."""
    reach = {}
    for start in graph:
        seen: set[str] = set()
        todo = [start]
        while todo:
            new = graph[todo.pop()] - seen
            seen |= new
            todo += new
        reach[start] = seen
    groups = {
        frozenset(other for other in reach[node] if node in reach[other])
        for node in graph
        if node in reach[node]
    }
    return sorted(map(set, groups), key=min)


def only_the_app_imports_streamlit(root: Path) -> list[str]:
    """``app.py``, ``pages/`` and ``neuralviz/ui/``."""
    return [
        f"{file.path}:{one.line} imports {one.name}"
        for file in files_of(root)
        if not file.is_shown
        for one in file.imports()
        if one.name.split(".")[0] == "streamlit"
    ]


def pages_import_only_ui(root: Path) -> list[str]:
    """Of the package, ``app.py`` and pages import ``neuralviz.ui`` alone."""
    return [
        f"{file.path}:{one.line} imports {one.name}, not of neuralviz.ui"
        for file in files_of(root)
        if file.path == "app.py" or file.path.startswith("pages/")
        for one in file.imports()
        if one.name.split(".")[0] in ("neuralviz", "pages")
        and one.name.split(".")[:2] != ["neuralviz", "ui"]
    ]


def pages_are_short(root: Path) -> list[str]:
    """A page is a title, an explanation and a call."""
    return [
        f"{file.path} has {file.lines} lines, more than {MAX_PAGE_LINES}"
        for file in files_of(root)
        if file.path.startswith("pages/") and file.lines > MAX_PAGE_LINES
    ]


def files_are_short(root: Path) -> list[str]:
    """A long file of the package is named, with a reason, in ``CONTRIBUTING.md``."""
    contributing = root / "CONTRIBUTING.md"
    named = contributing.read_text("utf-8") if contributing.is_file() else ""
    return [
        f"{file.path} has {file.lines} lines, more than {MAX_FILE_LINES}"
        for file in package_files(root)
        if file.lines > MAX_FILE_LINES and file.path not in named
    ]


def few_imports_are_inside_functions(root: Path) -> list[str]:
    """Only what is slow to load is imported where it is used."""
    statements = {
        (file.path, one.line)
        for file in files_of(root)
        for one in file.imports()
        if one.when == "called"
    }
    n = len(statements)
    if n <= MAX_FUNCTION_LEVEL_IMPORTS:
        return []
    most = {path: sum(other == path for other, _ in statements) for path, _ in statements}
    worst = sorted(most, key=lambda path: (-most[path], path))[:10]
    listed = ", ".join(f"{path} {most[path]}" for path in worst)
    return [f"{n} imports are inside functions, more than {MAX_FUNCTION_LEVEL_IMPORTS}: {listed}"]


def only_plots_build_figures(root: Path) -> list[str]:
    """Nobody else calls plotly, or another library that draws."""
    found = []
    for file in files_of(root):
        if file.path.startswith("neuralviz/plots/"):
            continue
        drawn = {one.bound for one in file.imports() if one.name.split(".")[0] in _DRAWING}
        for call in _calls(file.tree):
            name = ast.unparse(call.func).split(".")[0]
            if name in _FIGURES | drawn:
                found.append(f"{file.path}:{call.lineno} calls {ast.unparse(call.func)}")
    return found


def the_core_draws_nothing(root: Path) -> list[str]:
    """Rooms below ``plots`` import no library that draws."""
    below = frozenset().union(*ROOMS[ROOMS.index(frozenset({"plots"})) + 1 :])
    return [
        f"{file.path}:{one.line} imports {one.name}"
        for file in package_files(root)
        if file.room in below
        for one in file.imports()
        if one.name.split(".")[0] in _DRAWING
    ]


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def nothing_unsafe_is_written(root: Path) -> list[str]:
    """Nothing is unpickled, run from a string, or shown as HTML that a user could have written."""
    never = {"pickle.load", "pickle.loads", "joblib.load", "eval", "exec"}
    only = {
        "trust_remote_code": "False",
        "unsafe_allow_html": "False",
        "allow_pickle": "False",
        "shell": "False",
    }
    found = []
    folders = ("neuralviz", "pages", "bundled_model", "benchmarks", "scripts", "tests")
    for file in files_of(root, *folders):
        is_test = file.path.startswith("tests/")
        for call in _calls(file.tree):
            function = ast.unparse(call.func)
            given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
            where = f"{file.path}:{call.lineno}"
            if function in never and not (is_test and function in ("eval", "exec")):
                found.append(f"{where} calls {function}")
            found += [
                f"{where} sets {name}={given[name]}"
                for name, allowed in only.items()
                if given.get(name, allowed) != allowed
            ]
            if function == "torch.load" and given.get("weights_only") != "True":
                found.append(f"{where} calls torch.load without weights_only=True")
    return found


# --- what runs on a worker ---------------------------------------------------------------------

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class _Shown:
    """The functions of ``app.py``, ``pages/`` and ``neuralviz/ui/``, and what their names mean.

    Rooms below cannot import these, so that a worker reaches Streamlit only by functions from here
    that it was handed, or that those name.
    """

    def __init__(self, root: Path) -> None:
        self.files = {file.module: file for file in files_of(root) if file.is_shown}
        self.imported = {
            module: {one.bound: one.means for one in file.imports() if one.bound}
            for module, file in self.files.items()
        }
        self.home: dict[ast.AST, str] = {}  # of a function: its module
        self.inside: dict[ast.AST, ast.AST | None] = {}  # the function or class around it
        self.named: dict[tuple[str, ast.AST | None], dict[str, ast.AST]] = {}
        self.methods: dict[str, list[ast.AST]] = {}
        for module, file in self.files.items():
            self._read(module, file.tree, None)

    def _read(self, module: str, node: ast.AST, around: ast.AST | None) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _Function | ast.ClassDef):
                self.home[child], self.inside[child] = module, around
                if not isinstance(child, ast.Lambda):
                    self.named.setdefault((module, around), {})[child.name] = child
                    if isinstance(around, ast.ClassDef):
                        self.methods.setdefault(child.name, []).append(child)
                self._read(module, child, child)
            else:
                if isinstance(child, ast.Assign) and isinstance(child.value, ast.Lambda):
                    for target in child.targets:
                        if isinstance(target, ast.Name):
                            self.named.setdefault((module, around), {})[target.id] = child.value
                self._read(module, child, around)

    def of_name(self, name: str, module: str, around: ast.AST | None) -> list[ast.AST]:
        """The functions that a bare name means inside a function."""
        while True:
            found = self.named.get((module, around), {}).get(name)
            if found is not None and not (
                isinstance(around, ast.ClassDef) and isinstance(found, _Function)
            ):
                return self._entered(found)
            if around is None:
                break
            around = self.inside[around]
        return self.of_full_name(self.imported[module].get(name, ""))

    def of_full_name(self, name: str, hops: int = 5) -> list[ast.AST]:
        """The function of a name like ``neuralviz.ui.texts.read``, wherever it comes from."""
        module, _, last = name.rpartition(".")
        if module not in self.files or not hops:
            return []
        found = self.named.get((module, None), {}).get(last)
        if found is not None:
            return self._entered(found)
        return self.of_full_name(self.imported[module].get(last, ""), hops - 1)

    def of_attribute(self, node: ast.Attribute, module: str) -> list[ast.AST]:
        """The function of a module, or all methods that have this name: objects have no types."""
        full = ast.unparse(node)
        start, _, rest = full.partition(".")
        name = self.imported[module].get(start)
        if name is not None and rest:
            found = self.of_full_name(f"{name}.{rest}")
            if found or name.split(".")[0] != "neuralviz":
                return found
        return self.methods.get(node.attr, [])

    @staticmethod
    def _entered(node: ast.AST) -> list[ast.AST]:
        """A function itself; of a class the methods that run without being named."""
        if not isinstance(node, ast.ClassDef):
            return [node]
        return [
            child
            for child in node.body
            if isinstance(child, ast.FunctionDef) and child.name.startswith("__")
        ]

    def meant(self, node: ast.AST, module: str, around: ast.AST | None) -> list[ast.AST]:
        """The functions that an expression names, wherever in it."""
        found: list[ast.AST] = []
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                found += self.of_name(part.id, module, around)
            elif isinstance(part, ast.Attribute):
                found += self.of_attribute(part, module)
            elif isinstance(part, ast.Lambda) and part in self.home:
                found.append(part)
        return found

    def handed_over(self) -> Iterator[tuple[ast.AST, str]]:
        """Functions that are given to a thread, a process or a queue, and where."""
        for module, file in self.files.items():
            for call, around in _calls_with_function(file.tree):
                if not self._is_runner(call.func, module):
                    continue
                where = f"{file.path}:{call.lineno}"
                for value in _given(call):
                    for function in self.run_later(value, module, around):
                        yield function, where
        for node in self.home:  # a job's own methods run where the job runs
            if isinstance(node, ast.ClassDef) and any(
                self.imported[self.home[node]]
                .get(ast.unparse(base).split("[")[0], "")
                .startswith("neuralviz.jobs.")
                for base in node.bases
            ):
                where = f"{self.files[self.home[node]].path}:{node.lineno}"
                yield from ((child, where) for child in node.body if isinstance(child, _Function))

    def run_later(self, value: ast.AST, module: str, around: ast.AST | None) -> list[ast.AST]:
        """The functions in a value that is handed over; what is called here and now is not."""
        if isinstance(value, ast.Lambda):
            return [value]
        if isinstance(value, ast.Name | ast.Attribute):
            return self.meant(value, module, around)
        if not isinstance(value, ast.Call):
            parts = ast.iter_child_nodes(value)
            return [one for part in parts for one in self.run_later(part, module, around)]
        found = [one for given in _given(value) for one in self.run_later(given, module, around)]
        for maker in self.meant(value.func, module, around):  # what it gives back runs there
            is_class = isinstance(self.inside[maker], ast.ClassDef)
            found += [one for one in ast.walk(maker) if isinstance(one, _Function)][not is_class :]
        return found

    def _is_runner(self, function: ast.AST, module: str) -> bool:
        start = ast.unparse(function).partition(".")[0]
        name = self.imported[module].get(start, "")
        return _last_name(function) in _RUNNERS or name.startswith("neuralviz.jobs.")

    def streamlit_in(self, function: ast.AST) -> list[str]:
        """What a function uses of Streamlit; ``streamlit.runtime`` may be asked from anywhere."""
        module = self.home[function]
        used = []
        for node in ast.walk(function):
            if isinstance(node, ast.Name):
                name = self.imported[module].get(node.id, "")
                if name.split(".")[0] == "streamlit" and not name.startswith("streamlit.runtime"):
                    used.append(node.id)
        return used


def _given(call: ast.Call) -> list[ast.AST]:
    """The values that a call is given, by place and by name."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _calls_with_function(tree: ast.AST) -> Iterator[tuple[ast.Call, ast.AST | None]]:
    """All calls, each with the function or class around it."""
    todo: list[tuple[ast.AST, ast.AST | None]] = [(tree, None)]
    while todo:
        node, around = todo.pop()
        if isinstance(node, ast.Call):
            yield node, around
        within = node if isinstance(node, _Function | ast.ClassDef) else around
        todo += [(child, within) for child in ast.iter_child_nodes(node)]


def workers_never_call_streamlit(root: Path) -> list[str]:
    """Neither what is handed to a worker, nor anything that it names."""
    return [
        f"{path} hands over {' → '.join(chain)}, which calls {used}"
        for path, chain, used in _reached(root)
        if used
    ]


def worker_functions(root: Path) -> set[str]:
    """Names of all functions that may run on a worker."""
    return {chain[-1] for _, chain, _ in _reached(root)}


def _reached(root: Path) -> Iterator[tuple[str, tuple[str, ...], str]]:
    shown = _Shown(root)
    todo = [(function, where, (_name_of(function),)) for function, where in shown.handed_over()]
    seen: set[ast.AST] = set()
    while todo:
        function, where, chain = todo.pop()
        if function in seen or function not in shown.home:
            continue
        seen.add(function)
        yield where, chain, ", ".join(sorted(set(shown.streamlit_in(function))))
        for child in shown.meant(function, shown.home[function], function):
            todo.append((child, where, (*chain, _name_of(child))))


def _name_of(function: ast.AST) -> str:
    return getattr(function, "name", "a lambda")


RULES: tuple[Rule, ...] = (
    every_room_has_its_place,
    imports_point_down,
    the_package_is_imported_for_its_version_alone,
    no_circles_within_a_room,
    only_the_app_imports_streamlit,
    pages_import_only_ui,
    pages_are_short,
    files_are_short,
    few_imports_are_inside_functions,
    only_plots_build_figures,
    the_core_draws_nothing,
    nothing_unsafe_is_written,
    workers_never_call_streamlit,
)
