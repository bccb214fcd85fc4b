"""The rows in what a JSON file holds, by the shapes that programs give to tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from neuralviz.errors import TextError
from neuralviz.reading.headers import is_known
from neuralviz.reading.table import column_names
from neuralviz.reading.text_columns import rate_texts
from neuralviz.words import free_name, joined, many

SPLITS = (
    *("train", "training", "dev", "development", "validation", "valid", "val", "eval"),
    *("test", "testing"),
)
_OF_A_FRAME = {"columns", "index", "data", "name", "index_names", "column_names"}  # of pandas
_NAMED = 6  # lists in a message


def find_rows(name: str, content: Any) -> tuple[Iterable[Any], tuple[str, ...]]:
    """The rows in what a JSON file holds, and sentences on what was made of its lists.

    A list holds its rows. An object may be a data frame of pandas (``orient`` split, columns,
    index or table), articles of SQuAD, splits such as train and test, columns of equal length, the
    texts of each label, or one such list beside other values.

    Args:
        name: of the file.
        content: what it holds.

    Raises:
        TextError: it holds no table, or one that can be read in several ways.
    """
    if isinstance(content, list):
        return content, ()
    parts = content if isinstance(content, dict) else {}
    lists = {key: value for key, value in parts.items() if isinstance(value, list)}
    splits = {
        key: value
        for key, value in parts.items()
        if key.lower() in SPLITS and isinstance(value, list | dict)
    }
    if len(splits) > 1 and lists.keys() <= splits.keys():
        return _join_splits(name, splits)
    if {"columns", "data"} <= parts.keys() <= _OF_A_FRAME:
        return _split_frame(name, parts), ()
    if parts and all(isinstance(value, dict) and value for value in parts.values()):
        return _frame_of_objects(name, parts), ()
    of_objects = [rows for rows in lists.values() if any(isinstance(row, dict) for row in rows)]
    if len(of_objects) == 1:
        return _questions(name, of_objects[0])
    if of_objects or not lists:
        _refuse(name, content)
    if len(lists) == 1:
        key, values = next(iter(lists.items()))
        return ({key: value} for value in values), ()
    if len(lists) < len(parts):
        _refuse(name, content)
    return _columns_or_labels(name, lists)


def _join_splits(name: str, splits: Mapping[str, Any]) -> tuple[list[Any], tuple[str, ...]]:
    """The rows of all splits; a column says which, where more than one has rows."""
    found = {split: find_rows(name, value) for split, value in splits.items() if value}
    found = {split: (list(rows), notes) for split, (rows, notes) in found.items()}
    if any(isinstance(row, list) for rows, _ in found.values() for row in rows):
        _refuse(name, splits)
    of_splits = {
        split: [row if isinstance(row, dict) else {"text": row} for row in rows]
        for split, (rows, _) in found.items()
    }
    counts = joined([f"“{split}” ({len(of_splits.get(split, ())):,})" for split in splits])
    rows = [row for rows in of_splits.values() for row in rows]
    notes = tuple(note for _, notes in found.values() for note in notes)
    if len(of_splits) < 2:
        return rows, (f"{name} has the splits {counts}.", *notes)
    title = free_name("split", {str(key) for row in rows for key in row})
    rows = [{**row, title: split} for split, some in of_splits.items() for row in some]
    note = f"{name} has the splits {counts}. All are read; the column “{title}” says which."
    return rows, (note, *notes)


def _split_frame(name: str, frame: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a data frame that pandas wrote with the orient *split* or *tight*."""
    columns, data = frame["columns"], frame["data"]
    are_lists = isinstance(columns, list) and isinstance(data, list)
    if not are_lists or any(not isinstance(row, list) or len(row) != len(columns) for row in data):
        _refuse(name, frame)
    titles = column_names(
        " ".join(map(str, title)) if isinstance(title, list) else str(title) for title in columns
    )
    return [dict(zip(titles, row, strict=True)) for row in data]


def _frame_of_objects(name: str, objects: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of an object of objects, each of which is a column or a row."""
    first, *others = (list(inner) for inner in objects.values())
    is_lists = any(
        isinstance(value, list) for inner in objects.values() for value in inner.values()
    )
    alike = all(set(inner) == set(first) for inner in others)
    shared = set(first).intersection(*others)
    count_outside, count_inside = _are_counted(objects), _are_counted(first)
    if count_outside == count_inside:  # names tell which of both are columns
        count_outside, count_inside = any(map(is_known, shared)), any(map(is_known, objects))
    if is_lists or count_outside == count_inside or (count_inside and not alike) or not shared:
        _refuse(name, objects)
    if count_inside:
        return [{title: column[row] for title, column in objects.items()} for row in first]
    if _are_counted(objects):
        return [dict(row) for row in objects.values()]
    title = free_name("id", {key for row in objects.values() for key in row})
    return [{title: key, **row} for key, row in objects.items()]


def _are_counted(keys: Iterable[str]) -> bool:
    return all(key.isdecimal() for key in keys)


def _questions(name: str, articles: Sequence[Any]) -> tuple[Sequence[Any], tuple[str, ...]]:
    """A row for each question of SQuAD; rows of another kind as they are."""
    if not all(
        isinstance(article, dict) and isinstance(article.get("paragraphs"), list)
        for article in articles
    ):
        return articles, ()
    rows: list[dict[str, Any]] = []
    for article in articles:
        for paragraph in _objects_in(article["paragraphs"]):
            about = {"context": paragraph.get("context"), "title": article.get("title")}
            for question in _objects_in(paragraph.get("qas")):
                answers = _objects_in(question.get("answers"))
                answer = {"answer": answers[0].get("text"), "id": question.get("id")}
                rows.append({"question": question.get("question"), **about, **answer})
    note = (
        f"{name} has paragraphs with questions, as SQuAD has. Each question is a row, with its "
        "paragraph in the column “context” and its first answer in “answer”."
    )
    return rows, (note,)


def _objects_in(values: Any) -> list[dict[str, Any]]:
    """The objects in a list; an empty one where there are none."""
    objects = values if isinstance(values, list) else []
    return [value for value in objects if isinstance(value, dict)] or [{}]


def _columns_or_labels(
    name: str, lists: Mapping[str, list[Any]]
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The rows of several lists, which are columns, or the texts of one label each.

    Columns have one length. Where all lists have, a usual name, or a list unlike the others, tells
    columns.
    """
    has_one_length = len({len(values) for values in lists.values()}) == 1
    has_known = any(map(is_known, lists))
    are_strings = all(isinstance(value, str) for values in lists.values() for value in values)
    are_alike = are_strings and len({rate_texts(values) for values in lists.values() if values}) < 2
    if has_one_length and (has_known or not are_alike):
        columns = zip(*lists.values(), strict=True)
        return [dict(zip(lists, row, strict=True)) for row in columns], ()
    if has_one_length or has_known or not are_strings:
        _refuse(name, lists)
    rows = [{"text": text, "label": key} for key, texts in lists.items() for text in texts]
    note = (
        f"{name} has a list of texts for each label: {_describe_lists(lists)}. The names of the "
        "lists are in the column “label”."
    )
    return rows, (note,)


def _describe_lists(lists: Mapping[str, Sequence[Any]]) -> str:
    names = [f"“{key[:40]}” ({many(len(values), 'value')})" for key, values in lists.items()]
    more = len(names) - _NAMED
    return joined([*names[:_NAMED], *([f"{more:,} more"] if more > 0 else [])])


def _refuse(name: str, content: Any) -> NoReturn:
    parts = content if isinstance(content, Mapping) else {}
    lists: dict[str, Any] = {key: v for key, v in parts.items() if isinstance(v, list | dict)}
    has = f" It has {_describe_lists(lists)}." if lists else ""
    raise TextError(
        f"{name} does not contain a table that can be read in one way only.{has} Save the rows as "
        "a list of objects, one a row, with a key for each column."
    )
