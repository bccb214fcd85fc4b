"""The inputs that pages share: texts from examples, the clipboard and files, fields, tables."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import threading
import tomllib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from operator import attrgetter
from typing import Any, Literal, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from neuralviz.errors import NeuralvizError
from neuralviz.evaluation.data import guess_columns, guess_kind
from neuralviz.files import prune, write_bytes_beside
from neuralviz.paths import home, sample_data
from neuralviz.reading.pairs import (
    OPTIONAL,
    ROLES,
    Kind,
    ScoredPairs,
    find_role_columns,
    list_missing,
    read_pairs,
)
from neuralviz.reading.source import TABLES, WITHOUT_NAMES, Source
from neuralviz.reading.table import Table
from neuralviz.reading.tables import read_table
from neuralviz.reading.texts import Mode, ReadTexts, join_pasted, read_texts, split_pasted
from neuralviz.ui.address import RUN, digest_of, forget_loss, is_lost, mark_lost, read_new, write
from neuralviz.ui.choices import choose_one
from neuralviz.ui.limits import (
    character_limit,
    describe_destination,
    describe_limits,
    n_within_limits,
    row_limit,
)
from neuralviz.ui.page import ASSETS, USER_SOURCES, plain, show_error, show_on_stage
from neuralviz.words import many

# example texts by page and name
ALL_EXAMPLES: dict[str, Any] = tomllib.loads((ASSETS / "examples.toml").read_text("utf-8"))
TEXT_ENDINGS = ["txt", "md", *(ending[1:] for ending in TABLES)]
SOURCES = ("Example", *USER_SOURCES)  # of texts
FEW_TEXTS = 5
EXAMPLE_HEIGHT = 109  # px, four lines; more texts than a few are scrolled
SHOWN_TEXTS = 40
VIEW = "view"  # query parameter: the id of a view
N_TEXTS = "n-texts"  # in a view of pasted texts: how many there were before they were cut

KEPT_VIEWS = 50_000  # of texts, files and selections
SAVES_BETWEEN = 200  # small views, before old ones are deleted again
KEPT_BYTES = 1 << 30  # of all views; those opened longest ago are deleted first
KEPT_DAYS = 365  # since a view was last opened
LARGEST_FILE = 1 << 26  # bytes; of a larger file only the texts are saved
_VIEW_ID = re.compile(r"[A-Za-z0-9_-]{12}")
_saves = count()
_making_key = threading.Lock()  # two sessions may need the first key together
DETECTED = "detect automatically"
_LINES = 20
_CHOICES: dict[str, int | None] = {
    DETECTED: None,
    "none": 0,
    **{f"line {number}": number for number in range(1, _LINES + 1)},
}
_MODES: dict[Mode, str] = {
    "line": "One text per line",
    "blank line": "Blank line between texts",
    "one": "A single text",
}

# how caches tell files apart
BY_DIGEST: dict[str | type[Any], Callable[[Any], Any]] = {Source: lambda source: source.digest}

_read = st.cache_data(max_entries=8, ttl=600, show_spinner="Reading …", hash_funcs=BY_DIGEST)(
    read_texts
)


def ask_texts(
    key: str,  # shared by pages that share the texts
    examples: Mapping[str, Sequence[str] | ReadTexts],  # by the name they are offered under
    max_texts: int = 1000,
    *,
    height: int = 140,  # px of the field
) -> ReadTexts:
    """Ask for texts: an example (the first at the start), pasted ones, or a file.

    A ``view`` in the address restores them. Blanks, control characters and texts
    beyond ``max_texts`` are left out, which the page says.
    """
    of_source = f"{key}-source"
    st.session_state.setdefault(of_source, SOURCES[0])
    if (linked := read_new(of_source)) is not None:
        st.session_state[of_source] = linked if linked in SOURCES else SOURCES[0]
    view = open_upload(key)  # which decides the source, where there is one
    if view == NO_VIEW and is_lost(key):
        st.session_state[of_source] = SOURCES[0]
    elif view is not None and view != NO_VIEW and view.file is None:
        _restore_pasted(key, view)
    source = st.segmented_control(
        "Texts", SOURCES, required=True, key=of_source, persist_state="session"
    )
    write({of_source: source if source in USER_SOURCES else ""})
    if source == "Paste":
        read = ask_pasted(key, height=height, label_visibility="collapsed", persist_state="session")
        notes = [f"{many(len(read.texts), 'text')}." if read.texts else "No text yet."]
    elif source == "Upload":
        read = _ask_upload(key)
        file: Source | None = st.session_state.get(f"{key}-kept")
        notes = (
            [f"{many(len(read.texts), 'text')} from {file.name}."] if file and read.texts else []
        )
    else:
        read, notes = _show_example(key, examples), []
    n_texts, n_allowed = len(read.texts), n_within_limits(read.texts)
    n_used = min(n_allowed, max_texts)
    linked, n_linked = st.session_state.get(f"{key}-linked", ("", 0))
    if source == "Paste" and linked == st.session_state[f"{key}-pasted"]:
        n_texts = n_linked  # the link holds the first of them
    st.session_state[f"{key}-n"] = n_texts
    notes += read.notes
    if n_used < n_texts:
        limit_note = [describe_limits()] if n_allowed < max_texts else []
        notes += [*limit_note, f"Using the first {n_used:,} of {n_texts:,} texts."]
    # One paragraph, and for pasted texts always: one that came as the field is left would push a
    # button away that is being pressed, and the press would be lost. A long one moves it by a line.
    if notes:
        st.caption(plain(" ".join(notes)))
    return read.first(n_used)


def _restore_pasted(key: str, view: View) -> None:
    st.session_state[f"{key}-source"] = "Paste"
    pasted, st.session_state[f"{key}-mode"] = join_pasted(list(view.texts))
    n_texts = int(dict(view.choices).get(N_TEXTS, len(view.texts)))
    st.session_state[f"{key}-pasted"], st.session_state[f"{key}-linked"] = pasted, (pasted, n_texts)


def put_texts_in_address(key: str, texts: Sequence[str]) -> None:
    """Save an input's texts and their file, so that the address restores them."""
    if st.session_state.get(f"{key}-source") == "Upload":
        put_upload_in_address(key, texts)
        return
    n_texts = st.session_state.get(f"{key}-n", len(texts))
    cut = ((N_TEXTS, str(n_texts)),) if n_texts > len(texts) else ()
    put_in_address(key, View(tuple(texts), choices=cut))


def _show_example(key: str, examples: Mapping[str, Sequence[str] | ReadTexts]) -> ReadTexts:
    name = choose_one(
        st.pills,
        "Example",
        list(examples),
        key=f"{key}-example",
        label_visibility="collapsed",
        persist_state="session",
        wrap=True,
    )
    example = examples[name]
    read = example if isinstance(example, ReadTexts) else ReadTexts(tuple(example))
    numbered = [f"{number}. {text}" for number, text in enumerate(read.texts, 1)]
    height: int | Literal["content"] = EXAMPLE_HEIGHT if len(numbered) > FEW_TEXTS else "content"
    with st.container(height=height, border=False):
        st.text("\n".join(numbered[:SHOWN_TEXTS]) if len(numbered) > 1 else read.texts[0])
    if len(numbered) > FEW_TEXTS:
        scope = "them all" if len(numbered) <= SHOWN_TEXTS else f"the first {SHOWN_TEXTS}"
        st.caption(f"{len(numbered):,} texts. Scroll to read {scope}.")
    return read


def ask_pasted(key: str, modes: Sequence[Mode] = tuple(_MODES), **settings: Any) -> ReadTexts:
    """Ask for pasted texts and how they are separated; ``settings`` are the field's."""
    mode = _ask_mode(f"{key}-mode", modes)
    pasted = st.text_area(
        "Your texts", placeholder="Type or paste your texts here", key=f"{key}-pasted", **settings
    )
    return split_pasted(pasted, mode)


def _ask_mode(key: str, modes: Sequence[Mode] = tuple(_MODES)) -> Mode:
    return st.radio(
        "How texts are separated",
        modes,
        format_func=_MODES.get,
        horizontal=True,
        label_visibility="collapsed",
        key=key,
        persist_state="session",
    )


def _ask_upload(key: str) -> ReadTexts:
    help_ = f"Plain text, or a table with a column of texts. {describe_destination()}"
    source = upload_file(key, label="File", type=TEXT_ENDINGS, help=help_)
    if source is None:
        return ReadTexts(())
    try:
        return ask_texts_of_file(key, source)
    except NeuralvizError as error:
        show_error(error)
        return ReadTexts(())


def ask_texts_of_file(key: str, source: Source, *, with_ids: bool = False) -> ReadTexts:
    """Ask how a file's texts are separated, or for header and columns; return the texts."""
    if not source.is_table:
        return _read(source, mode=_ask_mode(f"{key}-file-mode"))
    column_box, *id_box, header_box = st.columns(3 if with_ids else 2)
    source = choose_header(source, f"{key}-header-{source.name}", header_box)
    read = _read(source)
    columns = list(read.columns)
    if len(columns) > 1:
        place, column_key = columns.index(cast("str", read.column)), f"{key}-column-{source.name}"
        column = column_box.selectbox("Text column", columns, place, key=column_key)
        ids = [
            box.selectbox("ID column", [DETECTED, *columns], key=f"{key}-ids-{source.name}")
            for box in id_box
        ]
        read = _read(source, column, id_column=next((i for i in ids if i != DETECTED), None))
    note = read.header_note
    return replace(read, notes=(note, *read.notes)) if note else read


# --- fields side by side -------------------------------------------------------------------------


def ask_text_fields(
    page: str,  # begins the fields' keys: ``page-label`` in lower case
    fields: Mapping[str, str],  # label to initial text
    examples: Mapping[str, Mapping[str, str]] | None = None,  # by name: texts by widget key
    *,
    height: int = 68,
) -> list[str]:
    """A text area for each field, side by side; typed text outlives a visit to another page."""
    keys = [f"{page}-{label}".lower() for label in fields]
    if (view := open_view(page)) is not None:
        texts_of_view = view.texts or tuple(fields.values())
        st.session_state.update(zip(keys, texts_of_view, strict=False))
    for key, text in zip(keys, fields.values(), strict=True):
        st.session_state.setdefault(key, text)
    if examples:
        _show_examples(page, examples, keys)
    texts = []
    with show_on_stage(page):
        for column, key, label in zip(st.columns(len(keys)), keys, fields, strict=True):
            text = column.text_area(
                label,
                height=height,
                max_chars=character_limit(len(keys)),
                key=key,
                on_change=_keep_texts,
                args=(page, keys),
                persist_state="session",
            )
            texts.append(text)
    return texts


def _show_examples(page: str, examples: Mapping[str, Mapping[str, str]], keys: list[str]) -> None:
    """Examples that fill a page's widgets; the one that they hold is marked."""
    key = f"{page}-example"
    st.session_state[key] = None
    for name, values in examples.items():
        if all(st.session_state.get(widget_key) == value for widget_key, value in values.items()):
            st.session_state[key] = name

    def open_example() -> None:
        name = st.session_state[key]
        if name is not None:  # None after a second click on the same example
            st.session_state.update(examples[name])
            _keep_texts(page, keys)

    st.pills(
        "Example",
        list(examples),
        key=key,
        on_change=open_example,
        label_visibility="collapsed",
        wrap=True,
    )


def _keep_texts(page: str, keys: list[str]) -> None:
    """Save the fields' texts and put their id into the address."""
    texts = tuple(st.session_state.get(key, "") for key in keys)
    put_in_address(page, View(texts))


# --- tables --------------------------------------------------------------------------------------

MAX_ROWS = 20_000
ONLY_PAIRS: dict[Kind, str] = {"pairs": "Scored pairs"}
KINDS: dict[Kind, str] = {
    **ONLY_PAIRS,
    "groups": "Texts in groups",
    "labels": "Texts with labels",
    "paraphrases": "Controlled paraphrases",
}
ROLE_NAMES = {
    "text1": "First text",
    "text2": "Second text",
    "score": "Score",
    "text": "Text",
    "group": "Group",
    "role": "Role",
    "label": "Label",
    "original": "Original",
    "generated": "Generated",
    "varies": "Quality that varies",
    "value": "Value of that quality",
    "fixed1": "First fixed value",
    "fixed2": "Second fixed value",
}
_EXAMPLE_PAIRS = Source.from_path(sample_data() / "scored_pairs.csv")
_cache = partial(st.cache_data, max_entries=8, show_spinner=False, hash_funcs=BY_DIGEST)
read_uploaded, _read_pairs = _cache()(read_table), _cache()(read_pairs)


def choose_pairs(key: str) -> ScoredPairs | None:
    """Ask for the example's pairs or those of a table; None, with a message."""
    open_upload(key)
    source = choose_one(
        st.segmented_control,
        "Pairs",
        ["Example", "Upload"],
        key=f"{key}-source",
        persist_state="session",
    )
    table: tuple[Source, dict[str, str]] | None = _EXAMPLE_PAIRS, {}
    rows = MAX_ROWS
    try:
        if source == "Upload":
            rows = row_limit(MAX_ROWS, texts_in_row=2)
            table = upload_table(key, "sentence1, sentence2 and score", rows, ONLY_PAIRS)
        if table is None:
            return None
        pairs = _read_pairs(*table, max_rows=rows)
    except NeuralvizError as error:
        show_error(error)
        return None
    counted = f"{many(len(pairs), 'pair')} from {table[0].name}."
    st.caption(plain(" ".join([counted, *pairs.notes])))
    return pairs


def upload_table(
    key: str,
    columns: str,  # the expected columns, in words
    max_rows: int,  # the most that are read
    kinds: Mapping[Kind, str] = KINDS,  # that the table may hold, and their names
) -> tuple[Source, dict[str, str]] | None:
    """Ask for a table and the column of each role; None, with a message, while one is missing."""
    # The uploader takes any type: reading says what a file is not.
    source = upload_file(key, label="Table", label_visibility="collapsed")
    if source is None:
        st.caption(
            f"Upload a table (CSV, TSV, JSONL, JSON, Parquet, Arrow or XLSX) with the columns "
            f"{columns}. Columns with other names are guessed; you can correct them. "
            f"{describe_destination()}"
        )
        return None
    source = choose_header(source, f"{key}-header-{source.name}")
    table = read_uploaded(source, max_rows=max_rows)
    if header_note := table.describe_header(source.name):
        st.caption(plain(header_note))
    roles = _choose_columns(key, source.name, table, kinds)
    return None if roles is None else (source, roles)


def open_upload(key: str) -> View | None:
    """Fill the widgets with the file of an opened link and the choices for it; return its view."""
    view = open_view(key)
    if view is not None and view.file is not None:
        st.session_state[f"{key}-source"] = "Upload"
        st.session_state[f"{key}-kept"] = view.file
        st.session_state.update(view.choices)
    return view


def put_upload_in_address(key: str, texts: Sequence[str] = ()) -> None:
    """Let the address restore an uploaded file, the texts in it, and the choices for it."""
    file: Source | None = st.session_state.get(f"{key}-kept")
    if st.session_state.get(f"{key}-source") != "Upload" or file is None:
        return
    begin = tuple(f"{key}-{setting}-" for setting in ("kind", "role", "header", "column", "file"))
    choices = [
        (str(name), value)
        for name, value in st.session_state.items()
        if str(name).startswith(begin) and isinstance(value, str)
    ]
    before = st.session_state.get(f"{key}-view")
    put_in_address(key, View(tuple(texts), file, tuple(choices)))
    is_new = st.session_state.get(f"{key}-view") != before
    if is_new and isinstance(file.content, bytes) and len(file.content) > LARGEST_FILE:
        st.toast("This file is too large to be saved, so the link does not include it.")


def _choose_columns(
    key: str, name: str, table: Table, kinds: Mapping[Kind, str]
) -> dict[str, str] | None:
    """Ask for the column of each role; None while a required role has none."""
    columns = table.columns
    if not columns:
        return {}  # reading says why
    kind = guess_kind(table, kinds)
    guessed = guess_columns(kind, table)
    is_clear = not list_missing(kind, guessed)
    if is_clear and guessed != find_role_columns(kind, columns):
        guesses = ", ".join(
            f"{ROLE_NAMES[role].lower()}: {column}" for role, column in guessed.items()
        )
        st.caption(plain(f"Columns guessed from their content ({guesses}). Correct them below."))
    columns_digest = hashlib.sha256(repr(columns).encode()).hexdigest()[:12]  # of these columns
    with st.expander("Columns", expanded=not is_clear, key=f"{key}-columns-{columns_digest}"):
        if not is_clear:
            st.caption(plain(f"Could not recognise the columns of {name}. Assign them below."))
        if len(kinds) > 1:
            of_kind = f"{key}-kind-{columns_digest}"
            st.session_state.setdefault(of_kind, kind)
            kind = st.selectbox(
                "The table contains",
                list(kinds),
                format_func=kinds.__getitem__,
                key=of_kind,
                persist_state="session",
            )
        guessed = guess_columns(kind, table)
        row = st.container(horizontal=True)
        roles = {}
        for role in ROLES[kind]:
            options = ("", *columns) if role in OPTIONAL else columns
            column = guessed.get(role, "")
            of_role = f"{key}-role-{columns_digest}-{kind}-{role}"
            st.session_state.setdefault(of_role, column if column in options else None)
            roles[role] = row.selectbox(
                ROLE_NAMES[role],
                options,
                index=0 if column in options else None,  # without one, it can be emptied
                format_func=lambda column: column or "none",
                key=of_role,
                persist_state="session",
                placeholder="Choose a column",
            )
        if missing := [ROLE_NAMES[role] for role in list_missing(kind, roles)]:
            st.caption(f"Choose columns for these roles: {', '.join(missing)}.")
            return None
    return {role: column or "" for role, column in roles.items()}


# --- files ---------------------------------------------------------------------------------------


def upload_file(key: str, **settings: Any) -> Source | None:
    """Ask for a file, which the session keeps under ``KEY-kept``."""
    file = st.file_uploader(key=f"{key}-file", **settings)
    if file is not None:
        st.session_state[f"{key}-kept"] = Source(file.name, file.getvalue())
    return st.session_state.get(f"{key}-kept")


def choose_header(source: Source, key: str, place: DeltaGenerator | None = None) -> Source:
    """Ask for the header's line, where the file's format does not tell; return the file with it."""
    if source.ending not in WITHOUT_NAMES:
        return source
    chosen = (place or st).selectbox(
        "Header",
        list(_CHOICES),
        key=key,
        help="The line with the names of the columns; in a workbook, the row.",
    )
    return replace(source, header=_CHOICES.get(chosen))


# --- views: inputs that links bring back ----------------------------------------------------------


@dataclass(frozen=True)
class View:
    """Texts, and the file they were read from."""

    texts: tuple[str, ...] = ()  # as they are used
    file: Source | None = None
    choices: tuple[tuple[str, str], ...] = ()  # how the file was read, such as the texts' column


NO_VIEW = View()  # an example, or what the fields have at first


def save_view(view: View) -> str:
    """Save a view and return its id, which nobody can guess; old views are deleted."""
    identity = [view.texts, view.file and [view.file.name, view.file.digest], view.choices]
    digest = hashlib.blake2b(json.dumps(identity).encode(), key=_secret(), digest_size=9)
    view_id = urlsafe_b64encode(digest.digest()).decode()
    folder = home() / "views"
    record: dict[str, Any] = {"texts": view.texts, "choices": view.choices}
    file = view.file
    if file is not None and isinstance(file.content, bytes) and len(file.content) <= LARGEST_FILE:
        record["file"] = file.name
        write_bytes_beside(folder / f"{view_id}.file", file.content)
    write_bytes_beside(folder / f"{view_id}.json", json.dumps(record).encode())
    if "file" in record or next(_saves) % SAVES_BETWEEN == 0:
        unit = attrgetter("stem")
        prune(folder, n_bytes=KEPT_BYTES, days=KEPT_DAYS, max_units=KEPT_VIEWS, unit=unit)
    return view_id


def _secret() -> bytes:
    """32 bytes that only this machine knows."""
    path = home() / "views.key"
    with _making_key:
        if not path.exists():
            write_bytes_beside(path, secrets.token_bytes(32))
            path.chmod(0o600)
    return path.read_bytes()


def load_view(view_id: str) -> View | None:
    """The view saved under ``view_id``; None when there is none or the id is not valid."""
    if not _VIEW_ID.fullmatch(view_id):
        return None
    path = home() / "views" / f"{view_id}.json"
    try:
        record = json.loads(path.read_text("utf-8"))
        texts = tuple(record["texts"])
        choices = tuple((str(name), str(value)) for name, value in record["choices"])
        file = None
        if "file" in record:
            content = path.with_suffix(".file")
            file = Source(str(record["file"]), content.read_bytes())
            content.touch()
        path.touch()
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return View(texts, file, choices) if all(isinstance(text, str) for text in texts) else None


def put_in_address(key: str, view: View) -> None:
    """Save a page's inputs and name them in the address."""
    kept, view_id = st.session_state.get(f"{key}-own-view", (None, None))
    if kept != view:
        try:
            view_id = save_view(view)
        except OSError:
            st.toast("The texts could not be saved, so the link does not include them.")
            return
    forget_loss(key)
    st.session_state[f"{key}-own-view"] = (view, view_id)
    st.session_state[f"{key}-view"] = view_id
    if st.query_params.get(VIEW) != view_id:
        write({VIEW: view_id, RUN: ""})


def remember_texts(name: str, fields: Mapping[str, str], data: object = "") -> None:
    """Keep what is typed in some fields, by key, under an id that the address has as ``name``.

    ``fields`` gives the texts at first, which other ``data`` bring back.
    """
    linked, digest = read_new(name), digest_of(repr(data))
    view = load_view(linked) if linked else None
    if view is not None or linked == "" or st.session_state.get(f"{name}-of") != digest:
        texts = view.texts if view is not None else fields.values()
        st.session_state.update(zip(fields, texts, strict=False))
    if linked and view is None:
        mark_lost(name)
    if is_lost(name):
        st.warning("What was typed in this link is not saved here any more.")
    st.session_state[f"{name}-of"] = digest
    for key, text in fields.items():
        st.session_state.setdefault(key, text)
    typed = tuple(st.session_state[key] or "" for key in fields)
    kept, view_id = st.session_state.get(f"{name}-kept", (tuple(fields.values()), ""))
    if typed == tuple(fields.values()):
        view_id = ""
    elif typed != kept:
        with suppress(OSError):  # no link without a folder to keep it in
            view_id = save_view(View(typed))
    st.session_state[f"{name}-kept"] = typed, view_id
    write({name: view_id})


def open_view(key: str) -> View | None:
    """The view of an address that was just opened; None while the page has its own texts."""
    view_id, shown_id = read_new(VIEW, f"{key}-view-read"), f"{key}-view"
    view = None
    if view_id is not None:
        view = load_view(view_id) if view_id else NO_VIEW
        st.session_state[shown_id] = view_id if view else ""
        if view is None:
            mark_lost(key)
            view = NO_VIEW
    if is_lost(key):
        st.warning("The texts in this link are not saved here any more. Here is an example.")
    elif view is None:
        is_own = st.session_state.get(f"{key}-source", USER_SOURCES[0]) in USER_SOURCES
        write({VIEW: st.session_state.get(shown_id, "") if is_own else ""})
    return view
