"""Delimited text: CSV, TSV, and whatever else a first line parts its fields by.

A broken row is named by its line and left out, and the others are kept. That decides who reads
delimited text. DuckDB counts rows where it should name lines (of a text with line breaks it knows
one), drops without a word all that follows a quotation mark which is never closed, and refuses
files that mix ends of lines. pyarrow hands over the rows that have too many or too few fields, but
takes an open quotation mark to the next one wherever it stands. So ``_records`` finds where a row
begins and ends, and whether its quotation marks match; ``pyarrow.csv`` splits rows into fields.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, compress
from typing import IO, Any

import pyarrow as pa
from pyarrow import csv

from neuralviz.errors import TextError
from neuralviz.reading.cells import finite_number
from neuralviz.reading.headers import (
    ID_COLUMNS,
    LOOKED_AT,
    Header,
    find_header,
    header_notes,
    is_known,
)
from neuralviz.reading.lines import TextLines
from neuralviz.reading.not_data import check_is_delimited
from neuralviz.reading.table import (
    MAX_CHARACTERS,
    MAX_COLUMNS,
    Table,
    check_width,
    column_names,
    name_columns,
)
from neuralviz.words import many, name_lines

MAX_RECORD = 1 << 24  # characters up to which a closing quotation mark is looked for

_ONE_COLUMN = "\x1f"  # the separator of a table of one column, in which commas are text
AT_ONCE = 1 << 22  # characters of delimited text that are split at once
_SAMPLE = 1 << 18  # characters by which separator and header are told
_REGULAR = 0.8  # share of rows that have as many fields as most
_SEPARATOR_LINE = re.compile(r'"?sep=(\\t|[!#-/:-@[-`{-~\t ])"?[,;\t|]*', re.IGNORECASE)
_COMMENT = ("#", "%", "//")
_ADVICE = "Put the text in quotation marks and double any quotation mark inside it."


def read_delimited(
    name: str,
    file: IO[bytes],
    max_rows: int | None,
    header: int | None = None,
    at_once: int = AT_ONCE,
) -> Table:
    """The rows and their columns; see `neuralviz.reading.tables.read_table`."""
    lines = TextLines(name, file)
    with closing(iter(lines)) as numbered:
        layout = _find_layout(name, numbered, header)
        if layout is None:
            return Table((), (), (), lines.notes)
        table = _read_records(name, layout, max_rows, at_once)
    return replace(table, notes=lines.notes + table.notes)


def delimited_blocks(
    name: str, file: IO[bytes], header: int | None = None, at_once: int = AT_ONCE
) -> Iterator[Table]:
    """The same piece by piece, so many characters at once; broken rows are named piece by piece.

    Raises:
        TextError: as it is read: the file is not text, or the first row cannot be read.
    """
    lines = TextLines(name, file)
    with closing(iter(lines)) as numbered:
        layout = _find_layout(name, numbered, header)
        if layout is not None:
            unmatched: list[int] = []
            odd_marks: list[int] = []
            columns, separator = layout.columns, layout.separator
            records = _records(layout.lines, separator, layout.width, unmatched, odd_marks)
            notes = layout.notes
            for batch in _batches(records, None, at_once):
                fields, at, wrong = _fields(
                    [record for _, record in batch], len(columns), separator
                )
                values = tuple([one[: MAX_CHARACTERS + 1] for one in column] for column in fields)
                places = [batch[place][0] for place in wrong]
                notes += _skipped(unmatched, places, odd_marks, separator)
                lines_of_rows = [batch[place][0] for place in at]
                yield Table(columns, values, lines_of_rows, notes, header=layout.header)
                unmatched.clear()
                odd_marks.clear()
                notes = ()
            if notes or unmatched or odd_marks:
                nothing = tuple(() for _ in columns)
                notes += _skipped(unmatched, [], odd_marks, separator)
                yield Table(columns, nothing, (), notes)
    yield Table((), (), (), lines.notes)


@dataclass(frozen=True, eq=False)
class _Layout:
    """How the lines of a file are to be read.

    Attributes:
        separator: between fields; `_ONE_COLUMN` where a line is one.
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
    """

    separator: str
    numbers: Sequence[int]
    n_lines: Sequence[int]
    rows: Sequence[Sequence[str]]
    widths: Sequence[int]
    header: Header

    @property
    def titles(self) -> Sequence[str]:
        """The fields of the header; none without one."""
        return () if self.header.place is None else self.rows[self.header.place]

    @property
    def suits(self) -> bool:
        """Whether these rows are likely to be divided so, and not at marks of their sentences."""
        if max(map(len, self.rows)) < 2:
            return False
        if len(self.titles) > 1 and self.header.is_clear:
            if any(map(is_known, self.titles)):
                return True
            if len(self.rows) > 1 and not self._is_prose:
                return True
        n_fields, n_rows = self._usual_width
        return n_fields > 1 and n_rows >= _REGULAR * len(self.rows) and not self._is_prose

    @property
    def quality(self) -> tuple[int, float, bool, bool, int]:
        """How well the separator divides the rows; the largest is the best of those that suit."""
        n_known = sum(map(is_known, self.titles)) if len(self.titles) > 1 else 0
        n_fields, n_rows = self._usual_width
        later = [cell for row in self.rows for cell in row[1:] if cell]
        begins_blank = any(cell[0] == " " for cell in later)
        in_numbers = self.separator == "," and all(cell[0].isdigit() for cell in later)
        return min(n_known, 2), n_rows / len(self.rows), not begins_blank, not in_numbers, n_fields

    @property
    def _usual_width(self) -> tuple[int, int]:
        """How many fields most rows have, and how many rows these are."""
        widths = Counter(map(len, self.rows))
        return max(widths.items(), key=lambda item: item[::-1])

    @property
    def _is_prose(self) -> bool:
        """Whether a blank follows each separator, as in a sentence, and no column is of numbers."""
        later = [cell for row in self.rows for cell in row[1:] if cell]
        if self.separator == "\t" or any(cell[0] != " " for cell in later):
            return False
        columns = list(zip(*self.rows, strict=False))
        return not any(all(finite_number(cell) is not None for cell in one) for one in columns)


def _find_layout(name: str, lines: Iterator[tuple[int, str]], header: int | None) -> _Layout | None:
    """The separator and the header of a file, told by its first lines; None where all are blank.

    Args:
        name: of the file.
        lines: with their numbers, from the first.
        header: the line that names the columns, 0 for none; None to find it.

    Raises:
        TextError: the header cannot be read, or the lines are no table.
    """
    found = next(((at, line) for at, line in lines if line and not line.isspace()), None)
    if found is None:
        return None
    start, separators = found[0], "\t;|,"
    directive = _SEPARATOR_LINE.fullmatch(found[1])
    if directive is not None:
        separators = directive[1].replace("\\t", "\t")
    rest = lines if directive is not None else chain([found], lines)
    if header:
        start, rest = header, ((at, line) for at, line in rest if at >= header)
    sample = _first_lines(rest)
    if not sample or (header and sample[0][0] != header):
        if header:
            raise TextError(f"{name} has nothing in line {header:,} that could name its columns.")
        return None
    start = sample[0][0] if directive is not None else start
    check_is_delimited(name, [line for _, line in sample])
    is_whole = len(sample) < LOOKED_AT and sum(len(line) for _, line in sample) <= _SAMPLE

    def candidates_of(lines: Sequence[tuple[int, str]]) -> list[_Candidate]:
        each = [_candidate(lines, one, header, is_whole=is_whole) for one in separators]
        return [one for one in each if one is not None]

    comments: tuple[str, ...] = ()
    n_comments = 0 if header is not None else _n_comments(sample)
    if n_comments:
        titles = _uncommented(sample[n_comments - 1])
        below = sample[n_comments:]
        named = [one for one in candidates_of([titles, *below]) if _names_columns(one)]
        plain = [one for one in candidates_of(below) if one.suits or _names_columns(one)]
        if named:
            sample, n_comments = [titles, *below], n_comments - 1
        elif plain:
            sample = below
        if (named or plain) and n_comments:
            start = sample[0][0]
            comments = (f"Skipped {many(n_comments, 'comment line')} at the head of {name}.",)
    suitable = candidates_of(sample)
    if directive is None:
        suitable = [one for one in suitable if one.suits]
    best = max(suitable, key=lambda one: one.quality, default=None)
    best = best or _candidate(sample, _ONE_COLUMN, header, is_whole=is_whole)
    if best is None:
        raise TextError(
            f"Could not read {name} as a table: unmatched quotation mark in the row that starts "
            f"at line {sample[0][0]:,}. {_ADVICE}"
        )
    separator, place = best.separator, best.header.place
    row = best.titles or best.rows[0]
    width = max(map(len, best.rows)) if place is None else best.widths[place]
    check_width(name, width)
    filled = [*row, *[""] * (width - len(row))]
    if place is not None and _rows_are_numbered(best, width):
        filled, width = ["", *filled], width + 1
    columns = name_columns(width) if place is None else column_names(filled)
    at = best.numbers[place or 0]
    below_header = at if place is None else at + best.n_lines[place]
    notes = header_notes(
        name,
        "line",
        0 if place is None else at,
        start if place is not None else at,
        row,
        is_clear=best.header.is_clear,
        is_chosen=header is not None,
    )
    body = ((number, line) for number, line in chain(sample, rest) if number >= below_header)
    if separator == _ONE_COLUMN:
        body = ((number, line.replace(separator, " ")) for number, line in body)
    return _Layout(separator, columns, body, 0 if place is None else at, comments + notes)


def _rows_are_numbered(candidate: _Candidate, width: int) -> bool:
    """Whether rows have a number that the header has no name for, as R writes them."""
    place = candidate.header.place or 0
    first = [row[0] for row in candidate.rows[place + 1 :]]
    is_wider = all(n == width + 1 for n in candidate.widths[place + 1 :])
    has_numbers = candidate.titles[0].strip().lower() in ID_COLUMNS
    return is_wider and not has_numbers and first == [str(n) for n in range(1, len(first) + 1)]


def _first_lines(lines: Iterator[tuple[int, str]]) -> list[tuple[int, str]]:
    """Some of the lines, from the first that is not blank."""
    sample: list[tuple[int, str]] = []
    size = 0
    for at, line in lines:
        if sample or (line and not line.isspace()):
            sample.append((at, line))
            size += len(line)
        if size > _SAMPLE or len(sample) == LOOKED_AT:
            break
    return sample


def _candidate(
    lines: Sequence[tuple[int, str]], separator: str, header: int | None, *, is_whole: bool
) -> _Candidate | None:
    """The first rows as a separator divides them; None where the first one cannot be read.

    Args:
        lines: the first of them with something in it.
        separator: between fields.
        header: its line, 0 for none; None to find it.
        is_whole: whether the file has no more lines.
    """
    counts = Counter(line.count(separator) + 1 for _, line in lines if separator in line)
    width = max(counts, key=lambda n: (counts[n], n), default=1)
    unmatched: list[int] = []
    records = list(_records(iter(lines), separator, width, unmatched, []))
    if unmatched and unmatched[0] == lines[0][0]:
        return None
    if unmatched and not is_whole:  # it may be closed in a line that is not looked at
        records = [record for record in records if record[0] < unmatched[0]]
    cut = [_cut(record, separator) for _, record in records]
    kept = [place for place, row in enumerate(cut) if any(map(str.strip, row))]
    if not kept:
        return None
    rows = [_without_empty_end(cut[place]) for place in kept]
    return _Candidate(
        separator,
        [records[place][0] for place in kept],
        [records[place][1].count("\n") + 1 for place in kept],
        rows,
        [len(cut[place]) for place in kept],
        find_header(rows) if header is None else Header(0 if header else None),
    )


def _without_empty_end(row: Sequence[str]) -> Sequence[str]:
    n_fields = len(row)
    while n_fields > 1 and not row[n_fields - 1].strip():
        n_fields -= 1
    return row[:n_fields]


def _n_comments(lines: Sequence[tuple[int, str]]) -> int:
    """How many of the first lines begin as comments do; none where all of them do."""
    for n, (_, line) in enumerate(lines):
        if line and not line.isspace() and not line.startswith(_COMMENT):
            return n
    return 0


def _uncommented(line: tuple[int, str]) -> tuple[int, str]:
    return line[0], line[1].lstrip("#%/").lstrip()


def _names_columns(candidate: _Candidate) -> bool:
    """Whether the first row is a header beyond doubt, by names that are usual."""
    names = candidate.titles
    return candidate.header.place == 0 and any(map(is_known, names)) and len(names) > 0


def _skipped(
    unmatched: list[int], too_long: list[int], odd_marks: list[int], separator: str
) -> tuple[str, ...]:
    """Sentences on rows that were left out or are in doubt, by the lines in which they begin."""
    notes = []
    if unmatched:
        notes.append(
            f"Skipped {many(len(unmatched), 'row')} with an unmatched quotation mark ("
            f"{name_lines(unmatched)}). {_ADVICE}"
        )
    if too_long:
        notes.append(
            f"Skipped {many(len(too_long), 'row')} with more fields than the header ("
            f"{name_lines(too_long)}). {_advice(separator)}"
        )
    if odd_marks:
        notes.append(
            f"Read quotation marks at the beginning of a field as text in "
            f"{many(len(odd_marks), 'row')}, not as enclosing several lines "
            f"({name_lines(odd_marks)})."
        )
    return tuple(notes)


def _advice(separator: str) -> str:
    return f"Put texts that contain “{separator}” in quotation marks."


def _read_records(name: str, layout: _Layout, max_rows: int | None, at_once: int) -> Table:
    """The table in the lines below a header.

    Raises:
        TextError: no row can be used for its quotation marks or the number of its fields.
    """
    unmatched: list[int] = []
    odd_marks: list[int] = []
    columns, separator = layout.columns, layout.separator
    records = _records(layout.lines, separator, layout.width, unmatched, odd_marks)
    broken = f"Could not read {name} as a table:"
    table: tuple[list[str], ...] = tuple([] for _ in columns)
    kept: list[int] = []
    too_long: list[int] = []
    for batch in _batches(records, None if max_rows is None else max_rows + 1, at_once):
        fields, at, wrong = _fields([record for _, record in batch], len(columns), separator)
        for values, column in zip(table, fields, strict=True):
            values += [value[: MAX_CHARACTERS + 1] for value in column]
        kept += [batch[place][0] for place in at]
        too_long += [batch[place][0] for place in wrong]
        if max_rows is not None and len(kept) > max_rows:
            break
    if too_long and not kept:
        raise TextError(f"{broken} its rows have more fields than its header. {_advice(separator)}")
    if unmatched and not kept:
        raise TextError(
            f"{broken} {many(len(unmatched), 'row')} with an unmatched quotation mark ("
            f"{name_lines(unmatched)}). {_ADVICE}"
        )
    notes = layout.notes + _skipped(unmatched, too_long, odd_marks, separator)
    return Table(columns, table, kept, notes, header=layout.header)


def _records(
    lines: Iterator[tuple[int, str]],
    separator: str,
    width: int,
    unmatched: list[int],
    odd_marks: list[int],
) -> Iterator[tuple[int, str]]:
    """The rows that are not blank, with the line each begins in; a row may have several lines.

    A line whose quotation marks match in no way is put on ``unmatched``, and the next line begins a
    row of its own: what is lost to a quotation mark that is never closed is one line. Between tabs,
    marks that do not enclose a field are characters, so nothing is lost; ``odd_marks`` gets lines
    whose marks may have been meant to enclose the ends of lines, each of which is a whole row.
    """
    next_field = re.escape(separator)
    inside = '[^"]*+(?:""[^"]*+)*+'
    field = f'(?:"{inside}"|[^"{next_field}][^{next_field}]*+|)'
    whole = re.compile(f"{field}(?:{next_field}{field})*+")
    opening = re.compile(f'(?:{field}{next_field})*+"{inside}')
    within = re.compile(f'{inside}(?:"{next_field}(?:{field}{next_field})*+"{inside})?')
    closing_line = re.compile(f'{inside}"(?:{next_field}{field})*+')
    again: deque[tuple[int, str]] = deque()
    has_tabs = separator == "\t"

    def take() -> tuple[int, str] | None:
        return again.popleft() if again else next(lines, None)

    while (item := take()) is not None:
        number, line = item
        if '"' not in line:
            if line and not line.isspace():
                yield item
            continue
        is_row = has_tabs and line.count("\t") + 1 == width
        if whole.fullmatch(line) and (not is_row or len(_cut(line, separator)) == width):
            yield item
            continue
        more: list[tuple[int, str]] = []
        closed = False
        size = len(line) if opening.fullmatch(line) else MAX_RECORD
        while not closed and size < MAX_RECORD and (following := take()) is not None:
            more.append(following)
            size += len(following[1]) + 1
            closed = closing_line.fullmatch(following[1]) is not None
            if not closed and not within.fullmatch(following[1]):
                break
        record = "\n".join([line, *(text for _, text in more)])
        if closed and has_tabs:
            closed = len(_cut(record, separator)) <= width
            if is_row and all(text.count("\t") + 1 == width for _, text in more):
                odd_marks += [number] * closed
                closed = False
        if closed:
            yield number, record
            continue
        again.extendleft(reversed(more))
        if has_tabs:
            yield number, _with_marks_enclosed(line, width)
        else:
            unmatched.append(number)


def _cut(record: str, separator: str) -> list[str]:
    """The fields of a record that is sound."""
    fields, at = [], 0
    pattern = _field_pattern(separator)
    while at <= len(record):
        match = pattern.match(record, at)
        if match is None:  # a mark that closes too early
            return record.split(separator)
        quoted, plain = match.groups()
        fields.append(plain if quoted is None else quoted.replace('""', '"'))
        at = match.end() + 1
    return fields


@cache
def _field_pattern(separator: str) -> re.Pattern[str]:
    """A field up to the next separator: what is in quotation marks, or as it stands."""
    after = re.escape(separator)
    return re.compile(f'(?:"([^"]*+(?:""[^"]*+)*+)"|([^{after}]*+))(?={after}|\\Z)')


def _with_marks_enclosed(line: str, width: int) -> str:
    """A line between whose tabs quotation marks are characters where they enclose no field."""
    fields = line.split("\t")
    if len(fields) != width:
        fields = [match[0] for match in re.finditer(_field_pattern("\t"), line)]
    enclosed = re.compile('"[^"]*+(?:""[^"]*+)*+"')
    return "\t".join(
        '"' + field.replace('"', '""') + '"'
        if field.startswith('"') and not enclosed.fullmatch(field)
        else field
        for field in fields
    )


def _batches(
    records: Iterable[tuple[int, str]], first: int | None, at_once: int
) -> Iterator[list[tuple[int, str]]]:
    """Records in portions that are split at once; the first few early, if few are wanted."""
    batch: list[tuple[int, str]] = []
    size, wanted = 0, first
    for record in records:
        batch.append(record)
        size += len(record[1])
        if size > at_once or len(batch) == wanted:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _fields(
    records: Sequence[str], width: int, separator: str
) -> tuple[list[list[str]], list[int], list[int]]:
    """Records as columns, the places of those that are in them, and of those with too many fields.

    Fields that are missing at the end are empty; empty ones beyond the last column are no fields.
    Blank rows are in neither list.
    """
    odd: dict[int, int] = {}  # how many fields, by place
    table = _split(records, separator, width, odd)
    places = [place for place in range(len(records)) if place not in odd]
    wrong: list[int] = []
    if odd:
        mended: dict[int, str] = {}
        for place, n_fields in odd.items():
            record = records[place]
            if n_fields < width:
                mended[place] = record + separator * (width - n_fields)
            else:
                cut, *beyond = record.rsplit(separator, n_fields - width)
                if any(map(str.strip, beyond)):
                    wrong.append(place)
                else:
                    mended[place] = cut
        if mended:
            added = _split([*mended.values()], separator, width)
            table = [old + new for old, new in zip(table, added, strict=True)]
            places += mended
        order = sorted(range(len(places)), key=places.__getitem__)
        table = [[values[at] for at in order] for values in table]
        places = [places[at] for at in order]
    filled = [any(map(str.strip, row)) for row in zip(*table, strict=True)]
    if not all(filled):
        table = [list(compress(values, filled)) for values in table]
        places = list(compress(places, filled))
    return table, places, wrong


def _split(
    records: Sequence[str],
    separator: str,
    width: int | None = None,
    odd: dict[int, int] | None = None,
) -> list[list[str]]:
    """The columns of records that are sound.

    Those that have not ``width`` fields are left out and their places and numbers of fields put
    into ``odd``; without a width, that of the first record counts.
    """

    def skip(row: Any) -> str:
        if odd is not None:
            odd[row.number - 1] = row.actual_columns
        return "skip"

    # The mark at the head is taken off, and not one that the first text begins with.
    data = ("\ufeff" + "\n".join(records) + "\n").encode()
    names = [f"f{place}" for place in range(MAX_COLUMNS + 1 if width is None else width)]
    table = csv.read_csv(
        pa.BufferReader(data),
        csv.ReadOptions(
            use_threads=False,  # else rows have no numbers
            block_size=len(data) + 1,
            column_names=None if width is None else names,
            autogenerate_column_names=width is None,
        ),
        csv.ParseOptions(
            delimiter=separator,
            newlines_in_values=True,
            ignore_empty_lines=False,
            invalid_row_handler=skip,
        ),
        csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=False,
        ),
    )
    return [column.to_pylist() for column in table.columns]
