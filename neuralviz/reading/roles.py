"""Which column of a table is what: the roles that columns have in each kind of labelled data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from neuralviz.errors import SettingsError, TextError
from neuralviz.reading.headers import fold_title

Kind = Literal["pairs", "groups", "labels", "paraphrases"]
ROLES: dict[Kind, Mapping[str, tuple[str, ...]]] = {
    "paraphrases": {
        "original": ("original",),
        "generated": ("generated",),
        "varies": ("varies",),
        "value": ("value",),
        "fixed1": ("fixed1",),
        "fixed2": ("fixed2",),
    },
    "pairs": {
        "text1": ("sentence1", "text1", "a", "sentence A", "question1", "#1 String"),
        "text2": ("sentence2", "text2", "b", "sentence B", "question2", "#2 String"),
        "score": (
            *("score", "similarity", "similarity score", "relatedness score", "is_duplicate"),
            "quality",
        ),
    },
    "groups": {"text": ("text",), "group": ("group",), "role": ("role",)},
    "labels": {"text": ("text",), "label": ("label", "topic", "class", "category")},
}
"""By kind of data, its roles and the names of columns that are taken for them."""

OPTIONAL = ("role",)


def find_roles(
    name: str, columns: Sequence[str], roles: Mapping[str, str]
) -> tuple[Kind, dict[str, str]]:
    """The kind of data that columns make, and the column of each of its roles.

    Args:
        name: of the file, for messages.
        columns: of the table.
        roles: role to column, declared; no column for an optional role that is not to be used.

    Raises:
        TextError: they make none.
        SettingsError: a declared role or its column does not exist.
    """
    check_roles(name, columns, roles)
    for kind, of_kind in ROLES.items():
        chosen = find_role_columns(kind, columns, roles)
        needed = [role for role in of_kind if role not in OPTIONAL]
        if all(role in chosen for role in needed) and set(roles) <= set(of_kind):
            return kind, chosen
    lacking = [
        [
            role
            for role in of_kind
            if role not in (*OPTIONAL, *find_role_columns(kind, columns, roles))
        ]
        for kind, of_kind in ROLES.items()
        if roles and set(roles) <= set(of_kind)
    ]
    if lacking:
        raise TextError(
            f"{name} also needs a column for {' or '.join(map(' and '.join, lacking))}. Its "
            f"columns are: {_listed(columns)}. Assign a column to {lacking[0][0]}."
        )
    raise TextError(
        f"{name} is not a data set. It needs one of these sets of columns: sentence1, sentence2 "
        "and score; text and group; text and label; or original, generated, varies, value, "
        f"fixed1 and fixed2. Its columns are: {_listed(columns)}. Assign columns to the roles of "
        "one of them; scored pairs have the roles text1, text2 and score."
    )


def check_roles(name: str, columns: Sequence[str], roles: Mapping[str, str]) -> None:
    """Refuse roles that there are not, or whose columns a table does not have.

    Args:
        name: of the file, for messages.
        columns: of the table.
        roles: role to column, declared.

    Raises:
        SettingsError: a declared role or its column does not exist.
    """
    all_roles = {role for of_kind in ROLES.values() for role in of_kind}
    assigned = set()
    for role, column in roles.items():
        if role not in all_roles:
            raise SettingsError(
                f"Unknown role “{role[:40]}”. Choose from: {', '.join(sorted(all_roles))}."
            )
        if not column.strip():
            if role in OPTIONAL:
                continue
            raise SettingsError(f"The role {role} needs a column.")
        found_column = _named(column, columns)
        if found_column in assigned:
            raise SettingsError(f"The column “{found_column[:40]}” has two roles. Give it one.")
        assigned.add(found_column)
        if not found_column:
            raise SettingsError(
                f"{name} has no column “{column[:40]}” for the role {role}. Its columns are: "
                f"{_listed(columns)}."
            )


def pair_columns(
    name: str,
    columns: Sequence[str],
    roles: Mapping[str, str],
    needed: Iterable[str] = ("text1", "text2"),
) -> tuple[str, str, str | None]:
    """The columns of two texts and of their score, which may be missing.

    Args:
        name: of the file, for messages.
        columns: of the table.
        roles: role to column, declared.
        needed: roles that must have a column.

    Raises:
        SettingsError: a declared role or its column does not exist, or a needed one has none.
    """
    check_roles(name, columns, roles)
    if unknown_roles := set(roles) - set(ROLES["pairs"]):
        raise SettingsError(
            f"Pairs have no role {', '.join(sorted(unknown_roles))}. Choose from: "
            f"{', '.join(ROLES['pairs'])}."
        )
    chosen = find_role_columns("pairs", columns, roles)
    for role in needed:
        if role not in chosen:
            raise SettingsError(
                f"{name} needs a column for {role}. Its columns are: {_listed(columns)}. "
                f"Assign a column to {role}."
            )
    return chosen["text1"], chosen["text2"], chosen.get("score")


def find_role_columns(
    kind: Kind, columns: Sequence[str], roles: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The column of each role of a kind, the declared one or one by its name; some may have none.

    Args:
        kind: of data.
        columns: of a table.
        roles: role to column, declared.
    """
    declared = {role: _named(column, columns) for role, column in (roles or {}).items()}
    free = [column for column in columns if column not in declared.values()]
    chosen = {}
    for role, names in ROLES[kind].items():
        column = declared.get(role)
        if column is None:
            column = next(filter(None, (_named(name, free) for name in names)), "")
        if column:
            chosen[role] = column
    return chosen


def _named(name: str, columns: Sequence[str]) -> str:
    """The column of a name, or one that differs by capitals or signs; empty if there is none."""
    if name in columns:
        return name
    for fold in (lambda title: title.strip().lower(), fold_title):
        folded = fold(name)
        column = next((column for column in columns if folded and fold(column) == folded), "")
        if column:
            return column
    return ""


def _listed(columns: Sequence[str]) -> str:
    listed = ", ".join(f"“{column[:40]}”" for column in columns[:12]) or "none"
    return listed + " …" * (len(columns) > 12)
