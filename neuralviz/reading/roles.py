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
    lacking: list[list[str]] = []
    for kind, names_by_role in ROLES.items():
        if not set(roles) <= set(names_by_role):
            continue
        chosen = find_role_columns(kind, columns, roles)
        lacking.append([role for role in names_by_role if role not in (*OPTIONAL, *chosen)])
        if not lacking[-1]:
            return kind, chosen
    if roles and lacking:
        raise TextError(
            f"{name} also needs a column for {' or '.join(map(' and '.join, lacking))}. Its "
            f"columns are: {_list_columns(columns)}. Assign a column to {lacking[0][0]}."
        )
    raise TextError(
        f"{name} is not a data set. It needs one of these sets of columns: sentence1, sentence2 "
        "and score; text and group; text and label; or original, generated, varies, value, "
        f"fixed1 and fixed2. Its columns are: {_list_columns(columns)}. Assign columns to the "
        "roles of one of them; scored pairs have the roles text1, text2 and score."
    )


def check_roles(name: str, columns: Sequence[str], roles: Mapping[str, str]) -> None:
    """Refuse roles that there are not, or whose columns a table does not have.

    Raises:
        SettingsError: a declared role or its column does not exist.
    """
    all_roles = {role for names_by_role in ROLES.values() for role in names_by_role}
    assigned = set()
    for role, title in roles.items():
        if role not in all_roles:
            raise SettingsError(
                f"Unknown role “{role[:40]}”. Choose from: {', '.join(sorted(all_roles))}."
            )
        if not title.strip():
            if role in OPTIONAL:
                continue
            raise SettingsError(f"The role {role} needs a column.")
        column = _find_column(title, columns)
        if column in assigned:
            raise SettingsError(f"The column “{column[:40]}” has two roles. Give it one.")
        assigned.add(column)
        if not column:
            raise SettingsError(
                f"{name} has no column “{title[:40]}” for the role {role}. Its columns are: "
                f"{_list_columns(columns)}."
            )


def pair_columns(
    name: str,
    columns: Sequence[str],
    roles: Mapping[str, str],
    needed: Iterable[str] = ("text1", "text2"),
) -> tuple[str, str, str | None]:
    """The columns of two texts and of their score, which may be missing.

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
                f"{name} needs a column for {role}. Its columns are: {_list_columns(columns)}. "
                f"Assign a column to {role}."
            )
    return chosen["text1"], chosen["text2"], chosen.get("score")


def find_role_columns(
    kind: Kind, columns: Sequence[str], roles: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The column of each role of a kind that has one: the declared one, or one by its name."""
    declared = {role: _find_column(title, columns) for role, title in (roles or {}).items()}
    free = [column for column in columns if column not in declared.values()]
    chosen = {
        role: declared[role]
        if role in declared
        else next(filter(None, (_find_column(title, free) for title in names)), "")
        for role, names in ROLES[kind].items()
    }
    return {role: column for role, column in chosen.items() if column}


def _find_column(title: str, columns: Sequence[str]) -> str:
    """The column of a name, or one that differs by capitals or signs; empty if there is none."""
    if title in columns:
        return title
    for fold in (str.casefold, fold_title):
        folded = fold(title.strip())
        column = next((known for known in columns if folded and fold(known.strip()) == folded), "")
        if column:
            return column
    return ""


def _list_columns(columns: Sequence[str]) -> str:
    listed = ", ".join(f"“{column[:40]}”" for column in columns[:12]) or "none"
    return listed + " …" * (len(columns) > 12)
