"""The rows of delimited text, which may have several lines, and their fields."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from functools import cache

MAX_RECORD = 1 << 24  # characters up to which a closing quotation mark is looked for
LINES_OF_TABS = "\x1e"  # the separator of a table of one column whose others would be between tabs


def divide_records(
    lines: Iterator[tuple[int, str]],
    separator: str,
    width: int,
    unmatched: list[int],
    odd_marks: list[int],
) -> Iterator[tuple[int, str]]:
    """The rows that are not blank, with the line each begins in; a row may have several lines.

    A line whose quotation marks match in no way is put on ``unmatched``, and the next line begins a
    row of its own: what is lost to a quotation mark that is never closed is one line. Between tabs,
    marks that do not enclose a field are characters, so nothing is lost, and lines are joined only
    to a row of the right number of fields; ``odd_marks`` gets lines whose marks may have been meant
    to enclose several lines, each of which is read as a row.
    """
    next_field = re.escape(separator)
    inside = '[^"]*+(?:""[^"]*+)*+'
    field = f'(?:"{inside}"|[^"{next_field}][^{next_field}]*+|)'
    whole = re.compile(f"{field}(?:{next_field}{field})*+")
    opening = re.compile(f'(?:{field}{next_field})*+"{inside}')
    within = re.compile(f'{inside}(?:"{next_field}(?:{field}{next_field})*+"{inside})?')
    closing_line = re.compile(f'{inside}"(?:{next_field}{field})*+')
    again: deque[tuple[int, str]] = deque()
    has_tabs = separator in ("\t", LINES_OF_TABS)

    def take() -> tuple[int, str] | None:
        return again.popleft() if again else next(lines, None)

    while (item := take()) is not None:
        number, line = item
        if '"' not in line:
            if line and not line.isspace():
                yield item
            continue
        is_row = has_tabs and line.count(separator) + 1 == width
        if whole.fullmatch(line) and (not is_row or len(cut_fields(line, separator)) == width):
            yield item
            continue
        joined_lines: list[tuple[int, str]] = []
        closed = False
        size = len(line) if opening.fullmatch(line) else MAX_RECORD
        while not closed and size < MAX_RECORD and (following := take()) is not None:
            joined_lines.append(following)
            size += len(following[1]) + 1
            closed = closing_line.fullmatch(following[1]) is not None
            if not closed and not within.fullmatch(following[1]):
                break
        record = "\n".join([line, *(text for _, text in joined_lines)])
        if closed and has_tabs:
            n_fields = len(cut_fields(record, separator))
            closed = n_fields == width
            are_rows = is_row and all(
                text.count(separator) + 1 == width for _, text in joined_lines
            )
            if n_fields < width or (closed and are_rows):
                odd_marks.append(number)
                closed = False
        if closed:
            yield number, record
            continue
        again.extendleft(reversed(joined_lines))
        if has_tabs:
            yield number, _enclose_marks(line, separator, width)
        else:
            unmatched.append(number)


def cut_fields(record: str, separator: str) -> list[str]:
    """The fields of a record that is sound."""
    if '"' not in record:
        return record.split(separator)
    fields, position = [], 0
    pattern = _field_pattern(separator)
    while position <= len(record):
        match = pattern.match(record, position)
        if match is None:  # a mark that closes too early
            return record.split(separator)
        quoted, plain = match.groups()
        fields.append(plain if quoted is None else quoted.replace('""', '"'))
        position = match.end() + 1
    return fields


@cache
def _field_pattern(separator: str) -> re.Pattern[str]:
    """A field up to the next separator: what is in quotation marks, or as it stands."""
    after = re.escape(separator)
    return re.compile(f'(?:"([^"]*+(?:""[^"]*+)*+)"|([^{after}]*+))(?={after}|\\Z)')


def _enclose_marks(line: str, separator: str, width: int) -> str:
    """A line between whose tabs quotation marks are characters where they enclose no field."""
    fields = line.split(separator)
    if len(fields) != width:
        fields = [match[0] for match in re.finditer(_field_pattern(separator), line)]
    enclosed = re.compile('"[^"]*+(?:""[^"]*+)*+"')
    return separator.join(
        '"' + field.replace('"', '""') + '"'
        if field.startswith('"') and not enclosed.fullmatch(field)
        else field
        for field in fields
    )
