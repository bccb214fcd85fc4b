"""The widgets for an uploaded table: the file, the line of its header, what its columns are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.evaluation.tables import guess_columns, guess_kind
from neuralviz.reading.pairs import (
    OPTIONAL,
    ROLES,
    Kind,
    ScoredPairs,
    find_role_columns,
    list_missing,
    read_pairs,
)
from neuralviz.reading.source import Source
from neuralviz.reading.table import Table
from neuralviz.reading.tables import read_table
from neuralviz.ui.choices import BY_DIGEST, choose_header, choose_one, upload_file
from neuralviz.ui.limits import describe_destination, row_limit
from neuralviz.ui.links import LARGEST_FILE, View, open_view, put_in_address
from neuralviz.ui.page import plain, show_error

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
_cache = partial(st.cache_data, max_entries=8, show_spinner=False, hash_funcs=BY_DIGEST)
read_uploaded = _cache()(read_table)


def choose_pairs(
    key: str, example: Callable[[], tuple[str, ScoredPairs]]
) -> tuple[str, ScoredPairs, bool] | None:
    """Ask for pairs: a name, the pairs, and whether they are the example's; None without pairs."""
    open_upload(key)
    source = choose_one(
        st.segmented_control,
        "Pairs",
        ["Example", "Upload"],
        default="Example",
        key=f"{key}-source",
        persist_state="session",
    )
    try:
        if source == "Example":
            return (*example(), True)
        rows = row_limit(MAX_ROWS, texts_in_row=2)
        upload = upload_table(key, "sentence1, sentence2 and score", rows, ONLY_PAIRS)
        return upload and (upload[0].name, _read_pairs(*upload, rows), False)
    except NeuralvizError as error:
        show_error(error)
        return None


@_cache()
def _read_pairs(source: Source, roles: dict[str, str], max_rows: int) -> ScoredPairs:
    return read_pairs(source, roles, max_rows=max_rows)


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


def open_upload(key: str) -> None:
    """Fill the widgets with the table of an opened link and the roles of its columns."""
    view = open_view(key)
    if view is not None and view.file is not None:
        st.session_state[f"{key}-source"] = "Upload"
        st.session_state[f"{key}-kept"] = view.file
        st.session_state.update(view.choices)


def put_upload_in_address(key: str) -> None:
    """Let the address restore an uploaded table and the roles of its columns."""
    if st.session_state.get(f"{key}-source") != "Upload" or f"{key}-kept" not in st.session_state:
        return
    begin = tuple(f"{key}-{setting}-" for setting in ("kind", "role", "header"))
    choices = [
        (str(name), value)
        for name, value in st.session_state.items()
        if str(name).startswith(begin) and isinstance(value, str)
    ]
    file: Source = st.session_state[f"{key}-kept"]
    before = st.session_state.get(f"{key}-view")
    put_in_address(key, View((), file, tuple(choices)))
    is_new = st.session_state.get(f"{key}-view") != before
    if is_new and isinstance(file.content, bytes) and len(file.content) > LARGEST_FILE:
        st.toast("This table is too large to be saved, so the link does not include it.")


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
