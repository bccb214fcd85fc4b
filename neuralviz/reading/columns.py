"""Tell by its cells what a table's column is: header, names, texts, nested texts."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from neuralviz.errors import TextError
from neuralviz.reading.lines import tidy
from neuralviz.reading.table import Table, describe_row, finite_number, list_columns
from neuralviz.words import many

# --- the header ----------------------------------------------------------------------------------

LOOKED_AT = 500  # rows
TEXT_COLUMNS = (
    *("text", "texts", "sentence", "sentences", "sentence1", "text1", "document", "content"),
    *("body", "abstract", "abstract note", "description", "review", "comment", "message"),
    *("tweet", "post", "passage", "paragraph", "utterance", "question", "query", "summary"),
    *("headline", "title"),
)
ID_COLUMNS = ("id", "_id", "ids", "text_id", "doc_id", "document_id", "uuid", "guid")

_OTHER_NAMES = """anchor answer author avg category channel city class cluster code column comments
conv conversation count country created date datetime day documents email embedding end feedback
field file filename folder gender gold group hypothesis idx index intent key keyword keywords kind
label labels lang language length link location messages metadata model month name notes number
original page premise prompt published rank rating ratings reply response responses reviews role
score section sent sentiment sex similarity sno source speaker split stars start status subject tag
tags target time timestamp token tokens topic topics train tweets type updated url user userid
username value values var variable vector version views week year""".split()
_PLAIN = re.compile(r"[\W_]+")
_USUAL_NAMES = {_PLAIN.sub("", name) for name in (*TEXT_COLUMNS, *ID_COLUMNS, *_OTHER_NAMES)}
_UNNAMED = re.compile(r"unnamed: ?\d+", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[A-Za-z][^\W_]*+_\w++|[a-z]++[A-Z]\w*+")  # snake_case, camelCase
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T].*)?|\d{1,2}:\d\d(:\d\d)?.*")
_NUMBER = re.compile(r"[-+]?[$€£]?\d[\d.,]*\s?[%$€£]?")
_WEB = re.compile(r"[a-z]+://\S+|\S+@\S+\.\w+")
_CODE = re.compile(r"(?=\S*\d)[\w.:-]+")
_ENDS_A_SENTENCE = re.compile(r"[.!?…。！？][\"'”’)»]*$")
_MOST_BEFORE = 30  # rows above a header
_LIKE_DATA = -3  # evidence of a cell that looks like those below
_FEW_NUMBERS = 5  # numbers of which the range says little
_FEWEST = 3  # texts that a word is compared with
_TELLING = 200  # first characters of a cell by which its kind is known


class Header(NamedTuple):
    place: int | None  # among the rows looked at; None where no row names them
    is_clear: bool = True  # whether the rows leave little doubt

    def notes(
        self,
        name: str,
        unit: str,
        numbers: Sequence[int],  # the lines, or whatever ``unit`` is, of the rows looked at
        rows: Sequence[Sequence[str]],
        first: int,  # the line from which on the file was looked at
    ) -> tuple[str, ...]:
        number, cells = numbers[self.place or 0], describe_row(rows[self.place or 0])
        place = f"{unit} {number:,}"
        if self.place is None:
            return (
                f"Read {place} of {name} as data: {cells}. If it names the columns, choose {place} "
                "as the header.",
            )
        notes: tuple[str, ...] = ()
        if number > first:
            skipped = many(number - first, unit)
            notes = (f"Skipped {skipped} before the header of {name}, {place}: {cells}.",)
        if not self.is_clear:
            notes += (
                f"Read {place} of {name} as the header: {cells}. If it is data, choose no header.",
            )
        return notes


def find_header(rows: Sequence[Sequence[str]], chosen: int | None = None) -> Header:
    """Find the row that names the columns among about `LOOKED_AT` rows, none of them blank.

    A header has usual names, or cells unlike those below: words above numbers, one word above
    sentences, a unique value above categories. Titles above it have fewer cells. If in doubt, a
    table has a header and a single column has none. ``chosen``: 0 for no header, any other number
    for the first row.
    """
    if chosen is not None:
        return Header(0 if chosen else None)
    if not rows:
        return Header(None)
    widths = Counter(_n_filled(row) for row in rows)
    width = max(widths, key=lambda n: (widths[n], n))
    evidence = _weigh_row(rows[0], rows[1:])
    below_title = _find_below_title(rows, width, evidence.total)
    if below_title is not None:
        return Header(below_title)
    title = rows[0][0]
    if width > 1 and title.strip() and _n_filled(rows[0]) == 1 and not is_usual_name(title):
        return Header(None)  # a title above rows that nothing names
    if width == 1:
        return Header(0 if evidence.total >= 2 else None)
    if len(rows) == 1 and not evidence.total:
        return Header(None)
    return Header(0 if evidence.total >= 0 else None, is_clear=evidence.is_clear)


def _find_below_title(rows: Sequence[Sequence[str]], width: int, evidence: int) -> int | None:
    """A header below rows with fewer cells, such as a title; None without one."""
    widest = _n_filled(rows[0])
    plain: int | None = None
    for place, row in enumerate(rows[1:_MOST_BEFORE], 1):
        n_filled = _n_filled(row)
        if widest < n_filled and _weigh_row(row, rows[place + 1 :]).total >= 2:
            n_known = sum(map(is_usual_name, row))
            is_named = n_known > 1 or (n_known == 1 and n_filled >= width)
            if is_named and n_known > sum(map(is_usual_name, rows[0])):
                return place
            if plain is None and n_filled >= width and (evidence < 2 or _n_filled(rows[0]) == 1):
                plain = place
        widest = max(widest, n_filled)
        if widest >= width and plain is None and n_filled >= width:
            break
    return plain


def fold_title(title: str) -> str:
    """A column's name without capitals, blanks and signs."""
    return _PLAIN.sub("", title).lower()


def match_names(columns: Sequence[str], names: Iterable[str]) -> list[str]:
    """The columns with some names, ignoring capitals, in the order of the names."""
    by_name = {title.strip().lower(): title for title in reversed(columns)}
    return [by_name[name] for name in names if name in by_name]


def is_usual_name(title: str) -> bool:
    """Whether this is a usual name, perhaps with a number: ``Text``, ``sentence 2``."""
    name = fold_title(title)
    return (
        name in _USUAL_NAMES
        or name.rstrip("0123456789") in _USUAL_NAMES
        or bool(_UNNAMED.fullmatch(title))
    )


def _n_filled(row: Sequence[str]) -> int:
    return sum(bool(cell.strip()) for cell in row)


def names_columns(rows: Sequence[Sequence[str]]) -> bool:
    return _weigh_row(rows[0], rows[1:]).is_clear


class Evidence(NamedTuple):
    """Evidence that a row names the columns of the rows below it."""

    total: int  # below 0 where more speaks against it
    is_clear: bool  # whether it is enough, and no cell looks like data of its column


def _weigh_row(row: Sequence[str], rows_below: Sequence[Sequence[str]]) -> Evidence:
    other_rows = [other_row for other_row in rows_below if list(other_row) != list(row)]
    scores = []
    for place, title in enumerate(row):
        cells = [other_row[place].strip() for other_row in other_rows if place < len(other_row)]
        scores.append(_weigh_column(title.strip(), list(filter(None, cells)), place))
    total = sum(scores)
    return Evidence(total, total >= 2 and _LIKE_DATA not in scores)


def _weigh_column(title: str, cells: Sequence[str], place: int) -> int:
    """Evidence from one column; 0 if none."""
    if not title:
        return 1 if place == 0 and cells else 0  # above numbers of rows
    kind = _classify_cell(title)
    if kind == "words" and title in cells:
        return -2
    kinds = Counter(map(_classify_cell, cells))
    usual, n_usual = kinds.most_common(1)[0] if cells else ("words", 0)
    if is_usual_name(title):
        return 3 if usual == "words" else 6
    if not cells:
        return 0
    if n_usual < _ALIKE * len(cells):
        return 2 if _IDENTIFIER.fullmatch(title) else 0
    if usual != "words":
        if kind == usual:
            return _LIKE_DATA if kind != "number" or _is_near(title, cells) else 0
        return 2 if kind in ("words", "code") else 0
    if kind != "words":
        return 3 if title == str(place) else 2 * (kind == "code" and _is_longer(cells, title))
    return _weigh_words(title, cells)


def _weigh_words(title: str, cells: Sequence[str]) -> int:
    if _is_sentence(title):
        n_questions = sum(cell.endswith("?") for cell in cells)
        if title.endswith("?") and len(cells) >= _FEWEST and n_questions < 0.1 * len(cells):
            return 1  # a question above answers
        if sum(map(_is_sentence, cells)) >= 0.3 * len(cells):
            return _LIKE_DATA
        return int(len(title) > 2 * max(map(len, cells)))
    if _IDENTIFIER.fullmatch(title) and not any(map(_IDENTIFIER.fullmatch, cells)):
        return 2
    if _is_longer(cells, title):
        return 2
    n_different = len(set(cells))
    return int(len(cells) >= 4 and n_different <= len(cells) / 2)


def _is_longer(cells: Sequence[str], title: str) -> bool:
    """Whether a one-word title stands above texts that all have several words."""
    if len(title.split()) > 1 or len(cells) < _FEWEST:
        return False
    wide = any(character >= "\u2e80" for character in title)  # no blanks between words
    least = 3 * len(title) if wide else len(title)
    return all(len(cell) > least and (wide or len(cell.split()) > 2) for cell in cells)


def _is_sentence(text: str) -> bool:
    return len(text.split()) > 6 or bool(_ENDS_A_SENTENCE.search(text))


def _is_near(title: str, cells: Sequence[str]) -> bool:
    """Whether a number fits its column, unlike, say, a year above shares."""
    numbers = [number for cell in cells if (number := finite_number(cell)) is not None]
    mine = finite_number(title)
    if mine is None or not numbers:
        return True
    low, high = min(numbers), max(numbers)
    reach = (2 if len(numbers) > _FEW_NUMBERS else 20) * max(high - low, abs(high), 1)
    return low - reach <= mine <= high + reach


def _classify_cell(cell: str) -> str:
    cell = cell[:_TELLING]
    if _DATE.fullmatch(cell):
        return "date"
    if _NUMBER.fullmatch(cell) or finite_number(cell) is not None:
        return "number"
    if _WEB.fullmatch(cell):
        return "web"
    return "code" if _CODE.fullmatch(cell) else "words"


# --- the column of texts -------------------------------------------------------------------------

_SAMPLE = 2000  # values of a column, about
_PHRASE = 1.5  # words of a value, on average, from which a column reads as texts
_TEXT_NAMES = ("text", "texts", "sentence")  # names that mean texts, even of a single word
_SENTENCE = 3  # words from which it does without doubt
_LETTER = re.compile(r"[^\W\d_]")
_WITHOUT_BLANKS = re.compile("[\u0e00-\u109f\u1780-\u17ff\u2e80-\uabff\uf900-\ufaff]")


def guess_column(file_name: str, table: Table) -> str:
    """The column of texts: most like sentences, then the most usual name, then the longest.

    A usual name above numbers or categories counts only if no other column has sentences.
    `TextError` if no column has words or a usual name, or all are constant.
    """
    samples = dict(zip(table.columns, map(_take_sample, table.values), strict=True))
    rates = {title: rate_texts(values) for title, values in samples.items()}
    named = match_names(table.columns, TEXT_COLUMNS)
    if not any(rates.values()):
        filled = [title for title in named if samples[title] or not len(table)]
        if filled or not len(table):
            return next(iter(filled), table.columns[0])
        _refuse_columns(file_name, table, "no words in")
    for title in named:
        means_texts = title.strip().lower() in _TEXT_NAMES and not _is_repeated(samples[title])
        if rates[title] >= (1 if means_texts else 2):
            return title
    sentences = [title for title in table.columns if rates[title] == 3]
    words = [title for title in named if rates[title]]
    if words and not sentences:
        return words[0]
    best = max(rates.values()) if sentences else 1
    likely = [title for title in table.columns if rates[title] >= best]
    if len(table.columns) > 1 and len(table) > 2:  # the same in every row is a mark of the format
        likely = [title for title in likely if len(set(samples[title])) > 1]
    if not likely:
        _refuse_columns(file_name, table, "the same words in every row of")
    return max(likely, key=lambda title: sum(map(len, map(_extract_text, samples[title]))))


def _refuse_columns(file_name: str, table: Table, reason: str) -> NoReturn:
    sentence = (
        f"{file_name} has no column with texts: {reason} {list_columns(table.columns)}. If one of "
        "them contains the texts, rename it to “text”."
    )
    raise TextError(" ".join([sentence, *table.notes]))


def rate_texts(values: Sequence[str]) -> int:
    """How text-like values are: 0 no words, 1 words or categories, 2 phrases, 3 sentences."""
    filled = [value for value in values if value.strip()]
    n_words = [_count_words(_extract_text(value)) for value in filled]
    if not any(n_words):
        return 0
    mean = 0 if _is_repeated(filled) else sum(n_words) / len(filled)
    return 1 + (mean >= _PHRASE) + (mean >= _SENTENCE)


def _is_repeated(filled: Sequence[str]) -> bool:
    return len(filled) >= 4 and 2 * len(set(filled)) <= len(filled)


def _take_sample(values: Sequence[str]) -> list[str]:
    step = max(1, len(values) // _SAMPLE)
    filled = [value for value in values[::step] if value.strip()]
    return filled or [value for value in values if value.strip()][:_SAMPLE]


def _extract_text(value: str) -> str:
    """The text in a value; empty for lists of numbers and objects without text."""
    if value.startswith(("[", "{")):
        nested = parse_nested(value)
        if nested is not None:
            return extract_text(nested) or ""
        if _NUMBERS.fullmatch(value):
            return ""
    return value


def _count_words(text: str) -> float:
    """Words with a letter, less numbers; without blanks, two characters make a word."""
    n_wide = 0 if text.isascii() else len(_WITHOUT_BLANKS.findall(text))
    parts = text.split()
    n_words = 0
    for part in parts:
        is_number = part[0] in "+-.0123456789" and finite_number(part) is not None
        n_words += bool(_LETTER.search(part)) and not is_number
    return max(min(n_words, 1), 2 * n_words - len(parts), n_wide / 2)


# --- nested values -------------------------------------------------------------------------------

_KEYS = (*TEXT_COLUMNS, "full_text", "value", "parts", "messages")
_PYTHON = re.compile(r"\[\s*(['\"{[]|\])|\{\s*'")  # how Python prints lists and objects
_NUMPY = re.compile(r"(['\"])\s+(?=['\"])")  # how numpy prints arrays: no commas between texts
_COMMAS = re.compile(r"['\"],\s")
_LONGEST_PRINTED = 200_000  # characters of what Python printed
_SPAN = ("type", "text")  # of formatted texts, whose blanks stand in the parts


def extract_text(value: Any) -> str | None:
    """The text in a value; None if ambiguous."""
    # lists are joined: words and sentences by blanks, messages by line ends; of an object, the part
    # named like a text
    if value is None:
        return ""
    if isinstance(value, str):
        return tidy(value)
    if isinstance(value, Mapping):
        by_name = {str(key).strip().lower(): key for key in reversed(list(value))}
        texts = [extract_text(value[by_name[key]]) for key in _KEYS if key in by_name]
        return next(filter(None, texts), "" if "" in texts else None)
    if not isinstance(value, list | tuple):
        return None
    if any(isinstance(part, Mapping) for part in value):
        if all(isinstance(part, str) or _is_span(part) for part in value):
            return tidy("".join(part if isinstance(part, str) else part["text"] for part in value))
        parts = [extract_text(part) for part in value if not _is_other_medium(part)]
        return None if None in parts or not parts else "\n".join(filter(None, parts))
    parts = [extract_text(part) for part in value]
    return None if None in parts else " ".join(filter(None, parts))


def flatten_texts(name: str, values: Sequence[str]) -> tuple[Sequence[str], tuple[str, ...]]:
    """Replace nested cells (JSON or Python) of a column by their text; with notes."""
    flat: list[str] = []
    n_joined = n_unclear = 0
    for value in values:
        nested = parse_nested(value)
        text = None if nested is None else extract_text(nested)
        n_joined += text is not None
        n_unclear += nested is not None and text is None
        flat.append(value if text is None else text)
    notes: tuple[str, ...] = ()
    if n_joined:
        notes = (
            f"Took the text out of {many(n_joined, 'nested value')} in the column “{name[:40]}”: "
            "lists are joined, and of objects the text or content is read.",
        )
    if n_unclear:
        notes += (
            f"Read {many(n_unclear, 'nested value')} without a clear text in the column "
            f"“{name[:40]}” as written. Put the texts into a column of their own.",
        )
    return (flat, notes) if n_joined else (values, notes)


def parse_nested(cell: str) -> Any:
    """The list or object in a cell, as JSON, Python or numpy print it; else None."""
    if not cell.lstrip().startswith(("[", "{")):
        return None
    value = None
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        printed = cell.strip()
        if len(printed) <= _LONGEST_PRINTED and _PYTHON.match(printed):
            if _NUMPY.search(printed) and not _COMMAS.search(printed):
                printed = _NUMPY.sub(r"\1, ", printed)
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value = ast.literal_eval(printed)  # nothing is run
    return value if isinstance(value, list | dict) else None


def _is_span(part: Any) -> bool:
    """Whether this is a piece of formatted text, such as a link."""
    return isinstance(part, Mapping) and set(part) >= set(_SPAN) and isinstance(part["text"], str)


def _is_other_medium(part: Any) -> bool:
    """Whether this is an image or sound in a message."""
    return isinstance(part, Mapping) and "type" in part and not any(key in part for key in _KEYS)
