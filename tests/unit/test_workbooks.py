"""Excel workbooks: those that ask for more than a machine has, and what is read of the others."""

from __future__ import annotations

import io
import zipfile
from datetime import date, datetime, timedelta
from datetime import time as clock
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from neuralviz.errors import TextError
from neuralviz.reading import tables
from neuralviz.reading.source import Source
from neuralviz.reading.tables import read_excel, read_table
from neuralviz.reading.texts import read_texts
from tests.support.table_files import rows_of
from tests.support.waiting import run_python

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
TYPES = "[Content_Types].xml"
SHARED_STRINGS = (
    '<Override PartName="/xl/sharedStrings.xml" ContentType="application/'
    'vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/>'
)
READ = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))  # the rest of the machine stays
from neuralviz.errors import TextError
from neuralviz.reading.source import Source
from neuralviz.reading.tables import read_table
for path in sys.argv[1:]:
    try:
        table = read_table(Source("t.xlsx", Path(path)))
    except TextError as error:
        print(error, flush=True)
    else:
        print(table.columns, [list(one) for one in table.values], list(table.lines), flush=True)
"""


def cell(name: str, text: str) -> str:
    return f'<c r="{name}" t="inlineStr"><is><t>{text}</t></is></c>'


def sheet(*rows: str, before: str = "") -> str:
    filled = "".join(rows)
    return f'<worksheet xmlns="{MAIN}">{before}<sheetData>{filled}</sheetData></worksheet>'


def row(number: int, *cells: str) -> str:
    return f'<row r="{number}">{"".join(cells)}</row>'


def workbook(*sheets: str, **parts: str) -> bytes:
    """A workbook of the XML of its sheets, and other parts by their names in ``xl/``."""
    book, file, packed = openpyxl.Workbook(), io.BytesIO(), io.BytesIO()
    for _ in sheets[1:]:
        book.create_sheet()
    book.save(file)
    contents = {f"xl/worksheets/sheet{n}.xml": xml for n, xml in enumerate(sheets, 1)}
    contents |= {f"xl/{name}.xml": xml for name, xml in parts.items()}
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        if "sharedStrings" in parts:
            types = old.read(TYPES).decode()
            contents[TYPES] = types.replace("</Types>", f"{SHARED_STRINGS}</Types>")
        for name in dict.fromkeys([*old.namelist(), *contents]):
            new.writestr(name, contents[name] if name in contents else old.read(name))
    return packed.getvalue()


def shared(*strings: str) -> str:
    items = "".join(f"<si><t>{text}</t></si>" for text in strings)
    return f'<sst xmlns="{MAIN}">{items}</sst>'


HEAD, BODY = row(1, cell("A1", "text")), row(2, cell("A2", "One"))
LAST = row(1_048_576, cell("XFD1048576", "far"))
COPIES = [
    row(number, *[f'<c r="{letter}{number}" t="s"><v>0</v></c>' for letter in "ABCDEFGH"])
    for number in range(1, 9000)
]
ONE = "('text',) [['One']] [2]"
FAR = "has a cell in row 1,048,576 and column 16,384. Delete stray cells far from the table"
DAMAGED = "damaged, or not an Excel workbook (.xlsx)"
BEYOND = sheet(HEAD, BODY, row(4_000_000_000, *["<c><v>1</v></c>"] * 9))
LOW = sheet(row(900_000, cell("ZZ900000", "text")), row(900_001, cell("ZZ900001", "One")))


def cases() -> list[tuple[bytes, str]]:
    """Workbooks and what comes of them; made when asked for, since some are large."""
    return [
        (workbook(sheet(HEAD, BODY, LAST)), f"The sheet “Sheet” of t.xlsx {FAR}, or save it as"),
        (workbook(sheet(*COPIES), sharedStrings=shared("a" * 30_000)), "more than 1,073,741,824"),
        (workbook(sheet(HEAD, row(2, cell("1A", "One")))), DAMAGED),
        # what is sound
        (workbook(BEYOND), ONE),  # no program shows the cells of such a row
        (workbook(sheet(HEAD, BODY, before='<dimension ref="A1:XFD1048576"/>')), ONE),
        (workbook(sheet(HEAD, BODY, row(1_048_576, '<c r="XFD1048576" s="0"/>'))), ONE),
        (workbook(LOW), "('text',) [['One']] [900001]"),
    ]


@pytest.mark.slow
def test_no_workbook_ends_the_process(tmp_path: Path) -> None:
    all_cases = cases()
    paths = [tmp_path / f"{number}.xlsx" for number in range(len(all_cases))]
    for path, (content, _) in zip(paths, all_cases, strict=True):
        path.write_bytes(content)
    done = run_python(READ, *paths)
    lines = done.stdout.splitlines()
    for (_, says), line in zip(all_cases, lines, strict=False):
        assert says in line
    assert len(lines) == len(all_cases), f"case {len(lines)} ended it: {done.stderr[-1000:]}"


def claimed_size() -> bytes:
    """A workbook that says that a part is small."""
    content = workbook(sheet(HEAD, BODY + " " * 100_000))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
    return content.replace(size.to_bytes(4, "little"), (100).to_bytes(4, "little"))


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 50}">' for i in range(1, 9))
BOMB = f'<!DOCTYPE a [<!ENTITY l0 "{"ha" * 500}">{LAUGHS}]>'
OUTSIDE = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]>'


@pytest.mark.parametrize(
    "content",
    [
        claimed_size(),
        workbook(OUTSIDE + sheet(HEAD, row(2, cell("A2", "One &b;")))),
        workbook(BOMB + sheet(HEAD, row(2, cell("A2", "&l8;")))),
    ],
    ids=["more than it says", "fetches", "multiplies"],
)
def test_a_workbook_that_is_not_what_it_says_is_refused(content: bytes) -> None:
    with pytest.raises(TextError, match="is damaged, or not"):
        read_excel("t.xlsx", io.BytesIO(content), None)


def test_a_workbook_may_not_unpack_to_more_than_is_allowed(monkeypatch) -> None:
    content = workbook(sheet(HEAD, BODY))
    assert len(read_excel("t.xlsx", io.BytesIO(content))) == 1
    monkeypatch.setattr(tables, "MAX_UNPACKED", 100)
    with pytest.raises(TextError, match=r"larger than 100 bytes when unpacked. Save it as CSV"):
        read_excel("t.xlsx", io.BytesIO(content))


# --- what they hold ------------------------------------------------------------------------------


def make_book(*rows: list[Any]) -> openpyxl.Workbook:
    book = openpyxl.Workbook()
    for cells in rows:
        book.active.append(cells)
    return book


def save(book: openpyxl.Workbook) -> Source:
    file = io.BytesIO()
    book.save(file)
    return Source("t.xlsx", file.getvalue())


def test_the_first_sheet_with_cells_is_read() -> None:
    book = openpyxl.Workbook()
    sheet = book.create_sheet("texts")
    book.create_sheet("more")["A1"] = "not this"
    cells = {
        3: ("id", "text", None, "when", "n"),
        4: (1, "One", True, date(2024, 5, 1), 2.50),
        6: (2.0, "=cmd", None, datetime(2024, 5, 1, 12, 30), "two"),
        7: ("a", 5, None, clock(9, 5), 1e6),
    }
    for number, values in cells.items():
        for place, value in enumerate(values, 2):
            cell = sheet.cell(number, place, value)
            if isinstance(value, str):
                cell.data_type = "s"
    table = read_table(save(book))
    assert table.columns == ("id", "text", "column 3", "when", "n")
    assert rows_of(table) == [
        ("1", "One", "true", "2024-05-01", "2.5"),
        ("2", "=cmd", "", "2024-05-01 12:30:00", "two"),
        ("a", "5", "", "09:05:00", "1000000"),
    ]
    assert (table.lines, table.unit) == ([4, 6, 7], "row")
    assert table.notes == ("t.xlsx has 3 sheets. Only “texts” was read.",)


def test_a_cell_merged_over_rows_is_the_value_of_each() -> None:
    rows = [["Rooms"], ["label", "text", "n"], ["good", "Warm.", 1], [None, "Dry.", 2]]
    rows += [[], [None, "Clean."], ["bad", "Cold."], [None, "Wet.", 3]]
    book = make_book(*rows)
    for reference in ("A1:C1", "A3:A6", "C6:C7"):
        book.active.merge_cells(reference)
    table = read_table(save(book))
    assert (table.columns, table.header) == (("label", "text", "n"), 2)
    assert table.column("label") == ["good", "good", "good", "bad", ""]
    assert table.column("n") == ["1", "2", "", "", "3"]
    assert "Filled merged cells with their value (rows 4, 6)." in table.notes


def test_durations_and_dates_of_a_workbook() -> None:
    lengths = [
        (timedelta(hours=24), "24:00:00"),
        (timedelta(minutes=5, seconds=3), "00:05:03"),
        (timedelta(days=400), "9600:00:00"),
        (timedelta(hours=1, milliseconds=500), "01:00:00.5"),
    ]
    rows = [["A film.", value, datetime(2024, 5, 1, 12, 30)] for value, _ in lengths]
    book = make_book(["text", "length", "when"], *rows, ["A film.", "unknown", date(1900, 1, 1)])
    table = read_table(save(book))
    assert table.column("length") == [*(text for _, text in lengths), "unknown"]
    assert table.column("when") == [*["2024-05-01 12:30:00"] * 4, "1900-01-01"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("[mm]:ss", "30:00:00"),
        ("d.m.yy h:mm", "1900-01-01 06:00:00"),
        *((code, "1.25") for code in ("0%", '"hours" 0.0', "[Red]0.00", "0.00\\s", "General", "@")),
    ],
)
def test_formats_tell_durations_dates_and_numbers(code: str, text: str) -> None:
    book = make_book(["text", "value"], ["One", 1.25])
    book.active["B2"].number_format = code
    assert read_table(save(book)).column("value") == [text]


def test_formulas_without_results_are_named() -> None:
    book = make_book(["text", "n"], ["One", "=LEN(A2)"], ["Two", 3])
    read = read_texts(save(book))
    assert (read.texts, read.labels["n"]) == (("One", "Two"), ("", "3"))
    assert "No result is stored for 1 formula of t.xlsx (row 2). Open the" in read.notes[0]
    beyond = read_texts(save(make_book(["text"], ["a b c"], ["d e f", "=1+1"], ["g h"])))
    assert beyond.texts == ("a b c", "d e f", "g h")
    assert "for 1 formula of t.xlsx (row 3)" in " ".join(beyond.notes)
    book.active["A2"] = '=B2&" words"'
    book.active["A3"] = '=B3&" words"'
    with pytest.raises(
        TextError, match=r"no words.*“text”.*for 3 formulas of t.xlsx \(rows 2, 3\)"
    ):
        read_texts(save(book))


def test_hidden_sheets_and_values_of_errors_are_no_texts() -> None:
    book = make_book(["text"], ["Hidden"])
    book.active.sheet_state = "hidden"
    sheet = book.create_sheet("seen")
    for cells in (["text", "n"], ["One", 1], ["#N/A", 2], ["Two", "#DIV/0!"]):
        sheet.append(cells)
    read = read_texts(save(book))
    assert (read.texts, read.labels["n"]) == (("One", "Two"), ("1", ""))
    assert any("error values such as #N/A empty (rows 3, 4)" in note for note in read.notes)


def test_titles_above_the_table_of_a_workbook_are_skipped() -> None:
    rows = [[place, f"The room was cold on day {place}.", place % 3] for place in range(6)]
    head = [["Customer feedback 2024"], [], ["id", "comment", "stars"]]
    source = save(make_book(*head, *rows))
    read = read_texts(source)
    assert (read.columns, len(read.texts)) == (("id", "comment", "stars"), 6)
    assert read.header_note.startswith("Row 3 of t.xlsx names its columns")
    assert "Skipped 2 rows before the header of t.xlsx, row 3: “id”" in read.notes[0]
    frame = pd.read_excel(io.BytesIO(source.content), header=2)
    assert list(read.texts) == list(frame["comment"])
