"""What separates the fields of delimited text, and which of its first lines names the columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise

from neuralviz.errors import TextError
from neuralviz.reading.cells import finite_number
from neuralviz.reading.delimited_records import LINES_OF_TABS, cut_fields, divide_records
from neuralviz.reading.headers import (
    ID_COLUMNS,
    LOOKED_AT,
    Header,
    find_header,
    header_notes,
    is_usual_name,
)
from neuralviz.reading.not_data import check_is_delimited
from neuralviz.reading.table import check_width, column_names, name_columns
from neuralviz.words import many

ONE_COLUMN = "\x1f"  # the separator of a table of one column, in which commas are text
ADVICE = "Put the text in quotation marks and double any quotation mark inside it."
_SAMPLE = 1 << 18  # characters by which separator and header are told
_REGULAR = 0.8  # share of rows that have as many fields as most
_SEPARATOR_LINE = re.compile(r'"?sep=(\\t|[!#-/:-@[-`{-~\t ])"?[,;\t|]*', re.IGNORECASE)
_ENCLOSED = re.compile('"[^"]*+(?:""[^"]*+)*+"')
_DASHES = re.compile(r"\s*(?=[^|]*\|)\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*+\|?\s*")  # of Markdown
_BAR = re.compile(r"(?<!\\)\|")
_MOST_BEFORE = 30  # lines above a Markdown table
_COMMENT = ("#", "%", "//")


@dataclass(frozen=True, eq=False)
class Layout:
    """How the lines of a file are to be read.

    Attributes:
        separator: between fields; `ONE_COLUMN` or `LINES_OF_TABS` where a line is one.
        columns: names of the columns.
        lines: with their numbers; those below the header.
        header: its line; 0 for none.
        notes: what is to be said of the header.
    """

    separator: str
    columns: tuple[str, ...]
    lines: Iterator[tuple[int, str]]
    header: int
    notes: tuple[str, ...]

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.columns)


@dataclass(frozen=True, eq=False)
class _Candidate:
    """The first rows as one separator divides them.

    Attributes:
        separator: between fields.
        numbers: the line in which each row begins.
        n_lines: that each row has.
        rows: their fields, empty ones at the end left out.
        widths: how many fields each row has, empty ones too.
        header: the row that names the columns.
        is_spaced: whether a blank follows each separator, before quotation marks too.
    """

    separator: str
    numbers: Sequence[int]
    n_lines: Sequence[int]
    rows: Sequence[Sequence[str]]
    widths: Sequence[int]
    header: Header
    is_spaced: bool = False

    @property
    def titles(self) -> Sequence[str]:
        """The fields of the header; none without one."""
        return () if self.header.place is None else self.rows[self.header.place]

    @property
    def suits(self) -> bool:
        """Whether these rows are likely to be divided so, and not at marks of their sentences."""
        if max(map(len, self.rows)) < 2 or len(self.titles) == 1:
            return False
        if len(self.titles) > 1 and self.header.is_clear:
            if any(map(is_usual_name, self.titles)):
                return True
            if len(self.rows) > 1 and not self._is_prose:
                return True
        n_fields, n_rows = self.usual_width
        return n_fields > 1 and n_rows >= _REGULAR * len(self.rows) and not self._is_prose

    @property
    def quality(self) -> tuple[int, float, bool, bool, int]:
        """How well the separator divides the rows; the largest is the best of those that suit."""
        n_known = sum(map(is_usual_name, self.titles)) if len(self.titles) > 1 else 0
        n_fields, n_rows = self.usual_width
        later = [cell for row in self.rows for cell in row[1:] if cell]
        begins_blank = any(cell[0] == " " for cell in later)
        in_numbers = self.separator == "," and all(cell[0].isdigit() for cell in later)
        return min(n_known, 2), n_rows / len(self.rows), not begins_blank, not in_numbers, n_fields

    @property
    def usual_width(self) -> tuple[int, int]:
        """How many fields most rows have, and how many rows these are."""
        widths = Counter(map(len, self.rows))
        return max(widths.items(), key=lambda item: item[::-1])

    @property
    def _is_prose(self) -> bool:
        """Whether a blank follows each separator, as in a sentence, and no column is of numbers."""
        later = [cell for row in self.rows for cell in row[1:] if cell]
        if self.separator == "\t":
            return False
        if not self.is_spaced and any(cell[0] != " " for cell in later):
            return False
        columns = list(zip(*self.rows, strict=False))
        return not any(
            all(finite_number(cell) is not None for cell in column) for column in columns
        )


def find_layout(name: str, lines: Iterator[tuple[int, str]], header: int | None) -> Layout | None:
    """The separator and the header of a file, told by its first lines; None where all are blank.

    Args:
        name: of the file.
        lines: with their numbers, from the first.
        header: the line that names the columns, 0 for none; None to find it.

    Raises:
        TextError: the header cannot be read, or the lines are no table.
    """
    lines, markdown_header, comments = _read_markdown(name, lines)
    is_chosen, header = header is not None, markdown_header if header is None else header
    first_line = next(
        ((number, line) for number, line in lines if line and not line.isspace()), None
    )
    if first_line is None:
        return None
    start, separators = first_line[0], "\t;|,"
    directive = _SEPARATOR_LINE.fullmatch(first_line[1])
    if directive is not None:
        separators = directive[1].replace("\\t", "\t")
    elif markdown_header:
        separators = "|"
    rest = lines if directive is not None else chain([first_line], lines)
    if header:
        start, rest = header, ((number, line) for number, line in rest if number >= header)
    sample = _take_sample(rest)
    if not sample or (header and sample[0][0] != header):
        if header:
            raise TextError(f"{name} has nothing in line {header:,} that could name its columns.")
        return None
    start = sample[0][0] if directive is not None else start
    check_is_delimited(name, [line for _, line in sample])
    is_whole = len(sample) < LOOKED_AT and sum(len(line) for _, line in sample) <= _SAMPLE

    def candidates_of(lines: Sequence[tuple[int, str]]) -> list[_Candidate]:
        candidates = [
            _divide_rows(lines, separator, header, is_whole=is_whole) for separator in separators
        ]
        return [candidate for candidate in candidates if candidate is not None]

    n_comments = 0 if header is not None else _count_comments(sample)
    if n_comments:
        (row_number, title), rows_below = sample[n_comments - 1], sample[n_comments:]
        titled = [(row_number, title.lstrip("#").lstrip()), *rows_below]
        named = [
            candidate
            for candidate in candidates_of(titled)
            if title[0:1] == "#" and _names_columns(candidate)
        ]
        plain = [
            candidate
            for candidate in candidates_of(rows_below)
            if candidate.suits or _names_columns(candidate)
        ]
        if named:
            rows_below, plain, n_comments = titled, named, n_comments - 1
        if plain:
            n_skipped = _count_before_rows(sample[:n_comments], max(plain, key=lambda c: c.quality))
            sample = rows_below if n_skipped == n_comments else sample[n_skipped:]
            if n_skipped:
                start = sample[0][0]
                comments = (f"Skipped {many(n_skipped, 'comment line')} at the head of {name}.",)
    suitable = candidates_of(sample)
    if directive is None and not markdown_header:
        suitable = [candidate for candidate in suitable if candidate.suits]
    best = max(suitable, key=lambda candidate: candidate.quality, default=None)
    one_column = LINES_OF_TABS if name.lower().endswith(".tsv") else ONE_COLUMN
    best = best or _divide_rows(sample, one_column, header, is_whole=is_whole)
    if best is None:
        raise TextError(
            f"Could not read {name} as a table: unmatched quotation mark in the row that starts "
            f"at line {sample[0][0]:,}. {ADVICE}"
        )
    separator, place = best.separator, best.header.place
    row = best.titles or best.rows[0]
    width = max(map(len, best.rows)) if place is None else best.widths[place]
    check_width(name, width)
    filled = [*row, *[""] * (width - len(row))]
    if place is not None and _rows_are_numbered(best, width):
        filled, width = ["", *filled], width + 1
    columns = name_columns(width) if place is None else column_names(filled)
    row_number = best.numbers[place or 0]
    below_header = row_number if place is None else row_number + best.n_lines[place]
    notes = header_notes(
        name,
        "line",
        0 if place is None else row_number,
        start if place is not None else row_number,
        row,
        is_clear=best.header.is_clear,
        is_chosen=is_chosen or bool(markdown_header),
    )
    body = ((number, line) for number, line in chain(sample, rest) if number >= below_header)
    if best.is_spaced:
        body = ((number, _close_up(line, separator)) for number, line in body)
    if separator == one_column:
        body = ((number, line.replace(separator, " ")) for number, line in body)
    return Layout(separator, columns, body, 0 if place is None else row_number, comments + notes)


def _rows_are_numbered(candidate: _Candidate, width: int) -> bool:
    """Whether rows have a number that the header has no name for, as R writes them."""
    place = candidate.header.place or 0
    first = [row[0] for row in candidate.rows[place + 1 :]]
    is_wider = all(n == width + 1 for n in candidate.widths[place + 1 :])
    has_numbers = candidate.titles[0].strip().lower() in ID_COLUMNS
    return is_wider and not has_numbers and first == [str(n) for n in range(1, len(first) + 1)]


def _take_sample(lines: Iterator[tuple[int, str]]) -> list[tuple[int, str]]:
    """Some of the lines, from the first that is not blank."""
    sample: list[tuple[int, str]] = []
    size = 0
    for number, line in lines:
        if sample or (line and not line.isspace()):
            sample.append((number, line))
            size += len(line)
        if size > _SAMPLE or len(sample) == LOOKED_AT:
            break
    return sample


def _divide_rows(
    lines: Sequence[tuple[int, str]], separator: str, header: int | None, *, is_whole: bool
) -> _Candidate | None:
    """The first rows as a separator divides them; None where the first one cannot be read."""
    is_spaced = _is_spaced([line for _, line in lines], separator)
    if is_spaced:
        lines = [(number, _close_up(line, separator)) for number, line in lines]
    counts = Counter(line.count(separator) + 1 for _, line in lines if separator in line)
    width = max(counts, key=lambda n: (counts[n], n), default=1)
    unmatched: list[int] = []
    records = list(divide_records(iter(lines), separator, width, unmatched, []))
    if unmatched and unmatched[0] == lines[0][0]:
        return None
    if unmatched and not is_whole:  # it may be closed in a line that is not looked at
        records = [record for record in records if record[0] < unmatched[0]]
    cut = [cut_fields(record, separator) for _, record in records]
    kept = [place for place, row in enumerate(cut) if any(map(str.strip, row))]
    if not kept:
        return None
    rows = [_strip_empty_end(cut[place]) for place in kept]
    if header is None and unmatched and len(rows) == 1:
        header = records[kept[0]][0]  # what is below it cannot be read
    return _Candidate(
        separator,
        [records[place][0] for place in kept],
        [records[place][1].count("\n") + 1 for place in kept],
        rows,
        [len(cut[place]) for place in kept],
        find_header(rows) if header is None else Header(0 if header else None),
        is_spaced,
    )


def _is_spaced(lines: Sequence[str], separator: str) -> bool:
    """Whether a blank follows each separator in the first rows, and a quotation mark a blank."""
    if separator not in ",;|" or not any(f'{separator} "' in line for line in lines):
        return False
    bare = [_ENCLOSED.sub('""', line) for line in lines]
    return all(line.count(separator) == line.count(f"{separator} ") for line in bare)


def _close_up(line: str, separator: str) -> str:
    """A line without the blanks between a separator and a quotation mark that opens a field."""
    if f'{separator} "' not in line and not line.startswith(" "):
        return line
    return re.sub(
        rf'(?P<before>^|{re.escape(separator)}) *(?P<field>"[^"]*+(?:""[^"]*+)*+") *'
        rf'(?={re.escape(separator)}|$)|"[^"]*+"',
        lambda match: match[0] if match["field"] is None else match["before"] + match["field"],
        line,
    )


def _read_markdown(
    name: str, lines: Iterator[tuple[int, str]]
) -> tuple[Iterator[tuple[int, str]], int | None, tuple[str, ...]]:
    """The rows of a Markdown table as delimited text, the line of its header, and notes.

    Lines of another kind come back as they are, with None for the header.
    """
    first = list(islice(lines, _MOST_BEFORE))
    for place, ((number, line), (_, next_line)) in enumerate(pairwise(first)):
        if "|" in line and _DASHES.fullmatch(next_line):
            rows = (
                (row_number, _enclose_cells(row))
                for row_number, row in chain(first[place:], lines)
                if not _DASHES.fullmatch(row)
            )
            notes = (f"Skipped {many(place, 'line')} before the table in {name}.",) if place else ()
            return rows, number, notes
    return chain(first, lines), None, ()


def _enclose_cells(line: str) -> str:
    """A row of Markdown with each cell in quotation marks."""
    inner = line.strip().removeprefix("|")
    cells = _BAR.split(inner.removesuffix("|") if not inner.endswith("\\|") else inner)
    written = (cell.strip().replace("\\|", "|").replace('"', '""') for cell in cells)
    return "|".join(f'"{cell}"' for cell in written) if line.strip() else ""


def _strip_empty_end(row: Sequence[str]) -> Sequence[str]:
    n_fields = len(row)
    while n_fields > 1 and not row[n_fields - 1].strip():
        n_fields -= 1
    return row[:n_fields]


def _count_comments(lines: Sequence[tuple[int, str]]) -> int:
    """How many of the first lines begin as comments do; none where all of them do."""
    for n, (_, line) in enumerate(lines):
        if line and not line.isspace() and not line.startswith(_COMMENT):
            return n
    return 0


def _count_before_rows(lines: Sequence[tuple[int, str]], rows_below: _Candidate) -> int:
    """How many of the lines that look like comments come before one that is a row as those below.

    Above names of columns there are no rows.
    """
    if _names_columns(rows_below):
        return len(lines)
    for n, (_, line) in enumerate(lines):
        fields = _strip_empty_end(cut_fields(line, rows_below.separator))
        if line.strip() and len(fields) == rows_below.usual_width[0]:
            return n
    return len(lines)


def _names_columns(candidate: _Candidate) -> bool:
    """Whether the first row is a header beyond doubt, by names that are usual."""
    names, header = candidate.titles, candidate.header
    n_known = sum(map(is_usual_name, names))
    return header.place == 0 and header.is_clear and n_known >= min(len(names), 2)
