"""Read CSV, TSV and other delimited text; an unreadable row costs one line, and is named."""

from __future__ import annotations

import csv
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, dropwhile, pairwise, takewhile
from typing import IO, NamedTuple

from neuralviz.errors import TextError
from neuralviz.reading.source import MAX_LINE, Line, TextLines, is_json
from neuralviz.reading.table import (
    ID_COLUMNS,
    LOOKED_AT,
    MAX_CHARACTERS,
    Header,
    Table,
    check_width,
    column_names,
    find_header,
    finite_number,
    is_usual_name,
    name_columns,
    restore_formula,
    strip_empty_end,
)
from neuralviz.words import many, name_lines

AT_ONCE = 1 << 22  # characters of a block
ONE_COLUMN = "\x1f"  # the separator of a table of one column, in which commas are text
_ADVICE = "Put the text in quotation marks and double any quotation mark inside it."
_SAMPLE = 1 << 18  # characters by which separator and header are told
_REGULAR = 0.8  # share of rows that have as many fields as most
_DIRECTIVE = re.compile(r'"?sep=(\\t|[!#-/:-@[-`{-~\t ])"?[,;\t|]*', re.IGNORECASE)
_ENCLOSED = re.compile('"[^"]*+(?:""[^"]*+)*+"')
_DASHES = re.compile(r"\s*(?=[^|]*\|)\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*+\|?\s*")  # of Markdown
_MOST_BEFORE = 30  # lines above a Markdown table
_COMMENT = ("#", "%", "//")
_WRITTEN = ("id", "text")  # the first columns of what `neuralviz.store.writing` writes
csv.field_size_limit(MAX_LINE)  # characters in which a closing quotation mark is looked for


# --- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dialect:
    separator: str  # between fields
    are_marks_text: bool = False  # where they do not enclose a field, as between tabs

    def split_quoted(self, lines: Iterator[str], blanks: str = ",;|") -> list[str] | None:
        """The fields of the first row; None if its quotation marks do not match."""
        skips = self.separator in blanks  # those before a mark
        rows = csv.reader(lines, delimiter=self.separator, skipinitialspace=skips, strict=True)
        try:
            return next(rows)
        except csv.Error:
            return None


class Record(NamedTuple):
    line: int  # in which it begins
    fields: list[str] | None  # none of a blank line; None where its quotation marks do not match
    end: int  # the line below it


def divide_records(lines: Iterator[Line], dialect: Dialect, width: int) -> Iterator[Record]:
    """The rows, including blank ones; a row may span lines."""
    # where quotation marks may be text, lines are joined only if the row then has ``width`` fields
    # and they have not by themselves
    again: deque[Line] = deque()
    while line := again.popleft() if again else next(lines, None):
        number, text = line
        if '"' not in text:
            yield Record(number, text.split(dialect.separator) if text else [], number + 1)
            continue
        row_lines: list[str] = []
        fields = dialect.split_quoted(iter((text,)))
        if fields is None:  # perhaps a later line closes the mark

            def take_texts(text: str = text, row_lines: list[str] = row_lines) -> Iterator[str]:
                yield text + "\n"
                while line := again.popleft() if again else next(lines, None):
                    row_lines.append(line[1])
                    yield line[1] + "\n"

            fields = dialect.split_quoted(take_texts())
        texts = [text, *row_lines]
        are_text = dialect.are_marks_text and not _fit_row(fields, width, texts, dialect.separator)
        if fields is None or are_text:
            again.extendleft(reversed([*enumerate(row_lines, number + 1)]))
            del texts[1:]
            fields = dialect.split_quoted(iter((text,)), blanks="")  # marks behind blanks are text
        if are_text:
            fields = [
                field[1:-1].replace('""', '"') if _ENCLOSED.fullmatch(field) else field
                for field in text.split(dialect.separator)
            ]
        yield Record(number, fields, number + len(texts))


def _fit_row(
    fields: Sequence[str] | None, width: int, lines: Sequence[str], separator: str
) -> bool:
    """Whether fields form a row, though the marks could be text in separate rows."""
    if fields is None:
        return False
    are_all_rows = all(line.count(separator) + 1 == width for line in lines)
    if len(lines) == 1:
        return len(fields) == width or not are_all_rows
    return len(fields) == width and not are_all_rows


# --- separator and header ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Division:
    """The first rows as one separator divides them."""

    dialect: Dialect  # with the separator
    records: Sequence[Record]  # that have a cell which is not blank
    rows: Sequence[Sequence[str]]  # their fields, empty ones at the end left out
    is_spaced: bool  # whether a blank follows each separator, as in sentences
    header: Header  # the row that names the columns

    @property
    def titles(self) -> Sequence[str]:
        return () if self.header.place is None else self.rows[self.header.place]

    @property
    def header_line(self) -> int:
        return 0 if self.header.place is None else self.records[self.header.place].line

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Column names: the header's, even if empty, or as many as the longest row needs."""
        place = self.header.place
        if place is None:
            return name_columns(max(map(len, self.rows)))
        titles = self.records[place].fields or []
        below = [record.fields or [""] for record in self.records[place + 1 :]]
        numbers = [str(number) for number in range(1, len(below) + 1)]
        has_id = titles[0].strip().lower() in ID_COLUMNS
        is_wider = below and not has_id and all(len(fields) == len(titles) + 1 for fields in below)
        if is_wider and [fields[0] for fields in below] == numbers:  # as R writes them
            titles = ["", *titles]
        return column_names(titles)

    @property
    def n_known(self) -> int:
        return sum(map(is_usual_name, self.titles))

    @property
    def names_columns(self) -> bool:
        is_first = self.header.place == 0 and self.header.is_clear
        return is_first and self.n_known >= min(len(self.titles), 2)

    @property
    def suits(self) -> bool:
        """Whether the separator is likely to divide rows, not the sentences in them."""
        if max(map(len, self.rows)) < 2 or len(self.titles) == 1:
            return False
        if self.titles and self.header.is_clear:
            if self.n_known:
                return True
            rows_below = self.rows[(self.header.place or 0) + 1 :]
            is_divided = any(len(row) > 1 for row in rows_below)  # else at commas of one text above
            if not self._is_prose and (
                is_divided or (self.dialect.separator == "\t" and rows_below)
            ):
                return True
        n_fields, n_rows = self.usual_width
        return n_fields > 1 and n_rows >= _REGULAR * len(self.rows) and not self._is_prose

    @property
    def quality(self) -> tuple[int, float, bool, bool, int]:
        """How well the separator divides the rows; compare those that suit."""
        n_known = self.n_known if len(self.titles) > 1 else 0
        n_fields, n_rows = self.usual_width
        later = [cell for row in self.rows for cell in row[1:] if cell]
        in_numbers = self.dialect.separator == "," and all(cell[0].isdigit() for cell in later)
        n_alike = n_rows / len(self.rows)
        return min(n_known, 2), n_alike, not self.is_spaced, not in_numbers, n_fields

    @property
    def usual_width(self) -> tuple[int, int]:
        """The most frequent number of fields, and how many rows have it."""
        widths = Counter(map(len, self.rows))
        return max(widths.items(), key=lambda item: item[::-1])

    @property
    def _is_prose(self) -> bool:
        """Whether blanks follow all separators, as in sentences, and no column is numeric."""
        if not self.is_spaced:
            return False
        columns = zip(*self.rows, strict=False)
        return not any(
            all(finite_number(cell) is not None for cell in column) for column in columns
        )


# the division of the first rows, the lines below the header, and notes on the header
Layout = tuple[_Division, Iterator[Line], tuple[str, ...]]


def find_layout(name: str, lines: Iterator[Line], header: int | None) -> Layout | None:
    """Find separator and header by the first lines; None if blank, `TextError` if no table."""
    first = next((line for line in lines if line[1].strip()), None)
    if first is None:
        return None
    directive = _DIRECTIVE.fullmatch(first[1])
    separators = directive[1].replace("\\t", "\t") if directive else "\t;|,"
    rest = lines if directive else chain([first], lines)
    if header:
        rest = dropwhile(lambda line: line[0] < header, rest)
    sample = _take_sample(rest)
    if header and (not sample or sample[0][0] != header):
        raise TextError(f"{name} has nothing in line {header:,} that could name its columns.")
    if not sample:
        return None
    _check_is_table(name, [line for _, line in sample])
    first_line = sample[0][0]
    if header is None and sample[0][1].startswith(_COMMENT):
        sample = _skip_comments(sample, separators)
    divisions = _divide(sample, separators, header)
    if not directive:
        divisions = [division for division in divisions if division.suits]
    best = max(divisions, key=lambda division: division.quality, default=None)
    if best is None:
        dialect = Dialect(ONE_COLUMN, are_marks_text=name.lower().endswith(".tsv"))
        best = _divide_rows(sample, dialect, header)
    if best is None:
        raise TextError(
            f"Could not read {name} as a table: unmatched quotation mark in the row that starts "
            f"at line {sample[0][0]:,}. {_ADVICE}"
        )
    check_width(name, len(best.columns))
    lines_read = [record.line for record in best.records]
    notes = best.header.notes(name, "line", lines_read, best.rows, first_line)
    start = best.records[0].line
    if best.header.place is not None:
        start = best.records[best.header.place].end
    body = (line for line in chain(sample, rest) if line[0] >= start)
    if best.dialect.separator == ONE_COLUMN:
        body = ((number, line.replace(ONE_COLUMN, " ")) for number, line in body)
    return best, body, notes


def _check_is_table(name: str, lines: Sequence[str]) -> None:
    has_dashes = any(
        "|" in above and _DASHES.fullmatch(line) for above, line in pairwise(lines[:_MOST_BEFORE])
    )
    if has_dashes or is_json(lines[0].strip()):
        raise TextError(
            f"{name} holds JSON or a Markdown table, not separated fields. Rename JSON to .json "
            "(.jsonl if each line is an object), or save a Markdown table as CSV."
        )


def _take_sample(lines: Iterator[Line]) -> list[Line]:
    sample: list[Line] = []
    size = 0
    for number, line in lines:
        if sample or line.strip():
            sample.append((number, line))
            size += len(line)
        if size > _SAMPLE or len(sample) == LOOKED_AT:
            break
    return sample


def _skip_comments(sample: Sequence[Line], separators: str) -> list[Line]:
    """The lines below leading comments; all lines if these look like the rows below."""
    # the comment sign before a header is removed
    comments = list(takewhile(lambda line: line[1].startswith(_COMMENT) or not line[1], sample))
    rows_below = list(sample[len(comments) :])
    number, title = comments[-1]
    if rows_below and title.startswith("#"):
        titled = [(number, title.lstrip("#").lstrip()), *rows_below]
        if any(division.names_columns for division in _divide(titled, separators)):
            return titled
    divisions = [
        division
        for division in _divide(rows_below, separators)
        if division.suits or division.names_columns
    ]
    if not divisions:
        return list(sample)
    best = max(divisions, key=lambda division: division.quality)
    if best.names_columns:
        return rows_below
    for place, (_, line) in enumerate(comments):
        fields = strip_empty_end(line.split(best.dialect.separator))
        if line.strip() and len(fields) == best.usual_width[0]:
            return list(sample[place:])
    return rows_below


def _divide(lines: Sequence[Line], separators: str, header: int | None = None) -> list[_Division]:
    divisions = (
        _divide_rows(lines, Dialect(separator, separator == "\t"), header)
        for separator in separators
    )
    return [division for division in divisions if division is not None]


def _divide_rows(lines: Sequence[Line], dialect: Dialect, header: int | None) -> _Division | None:
    """Divide the first rows by a separator; None if the first one is unreadable."""
    separator = dialect.separator
    counts = Counter(line.count(separator) + 1 for _, line in lines if separator in line)
    width = max(counts, key=lambda n: (counts[n], n), default=1)
    records = list(divide_records(iter(lines), dialect, width))
    is_sound = all(record.fields is not None for record in records)
    is_whole = len(lines) < LOOKED_AT and sum(len(line) for _, line in lines) <= _SAMPLE
    if not is_whole:  # a mark may be closed in a line that is not looked at
        records = list(takewhile(lambda record: record.fields is not None, records))
    filled = [record for record in records if any(map(str.strip, record.fields or ()))]
    if not filled or records[0].fields is None:
        return None
    rows = [strip_empty_end(record.fields or ()) for record in filled]
    if header is None and len(rows) == 1 and not is_sound:
        header = 1  # what is below it cannot be read
    is_spaced = separator != "\t" and _is_spaced([line for _, line in lines], separator)
    return _Division(dialect, filled, rows, is_spaced, find_header(rows, header))


def _is_spaced(lines: Sequence[str], separator: str) -> bool:
    bare = [_ENCLOSED.sub('""', line).rstrip(f"{separator} ") for line in lines]
    return all(line.count(separator) == line.count(f"{separator} ") for line in bare)


# --- tables --------------------------------------------------------------------------------------

_FAULTS = {
    "unmatched": f"Skipped {{0}} with an unmatched quotation mark ({{1}}). {_ADVICE}",
    "too long": "Skipped {0} with more fields than the header ({1}). Put texts that contain “{2}” "
    "in quotation marks.",
}  # of rows that are left out


def read_delimited(
    name: str, file: IO[bytes], n_wanted: int | None = None, header: int | None = None
) -> Iterator[Table]:
    """Yield the rows in blocks of `AT_ONCE` characters; the last block carries the notes.

    Missing fields at the end are empty; empty ones beyond the last column are dropped. `TextError`
    if no row is usable.
    """
    lines = TextLines(name, file)
    faults: dict[str, list[int]] = {fault: [] for fault in _FAULTS}  # lines of rows
    with closing(iter(lines)) as numbered:
        layout = find_layout(name, numbered, header)
        if layout is None:
            yield Table((), (), (), lines.notes)
            return
        division, body, notes = layout
        dialect, columns = division.dialect, division.columns
        starts: list[int] = []
        rows: list[list[str]] = []
        size = n_rows = 0

        def take_block() -> Table:
            values = tuple(map(list, zip(*rows, strict=True))) if rows else ([],) * len(columns)
            return Table(columns, values, starts, header=division.header_line)

        for record in divide_records(body, dialect, len(columns)):
            row = _fill_row(record, len(columns), faults)
            if not any(map(str.strip, row)):
                continue
            rows.append(row)
            starts.append(record.line)
            size += sum(map(len, row))
            n_rows += 1
            if size > AT_ONCE or n_rows == n_wanted:
                yield take_block()
                starts, rows, size = [], [], 0
            if n_rows == n_wanted:
                break
    sentences = tuple(
        sentence.format(many(len(places), "row"), name_lines(places), dialect.separator)
        for sentence, places in zip(_FAULTS.values(), faults.values(), strict=True)
        if places
    )
    if sentences and not n_rows:
        raise TextError(f"Could not read {name} as a table. {' '.join(sentences)}")
    yield replace(take_block(), notes=lines.notes + notes + sentences)


def _fill_row(record: Record, width: int, faults: Mapping[str, list[int]]) -> list[str]:
    row = record.fields
    if row is None:
        faults["unmatched"].append(record.line)
        return []
    if any(map(str.strip, row[width:])):
        faults["too long"].append(record.line)
        return []
    if len(row) != width:
        row = [*row[:width], *[""] * (width - len(row))]
    if max(map(len, row)) > MAX_CHARACTERS:
        row = [field[: MAX_CHARACTERS + 1] for field in row]
    return row


def restore_cells(table: Table) -> Table:
    """Undo `escape_formula` in a table written by neuralviz, known by columns id and text."""
    is_delimited = table.unit == "line" and table.header is not None
    if not is_delimited or table.columns[:2] != _WRITTEN:
        return table
    written = [list(cells) for cells in (table.columns, *table.values)]
    restored = [[restore_formula(cell) for cell in cells] for cells in written]
    titles, *values = [[cell for cell in cells if cell is not None] for cells in restored]
    if restored == written or any(None in cells for cells in restored):
        return table
    note = "Removed the apostrophes before cells that a spreadsheet would run."
    return replace(table, columns=tuple(titles), values=tuple(values), notes=(*table.notes, note))
