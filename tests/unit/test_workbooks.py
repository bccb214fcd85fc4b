"""Excel workbooks that ask for more than a machine has, and sparse ones that are sound."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import openpyxl
import pytest

from neuralviz.errors import TextError
from neuralviz.reading import excel_tables
from neuralviz.reading.excel_tables import read_excel

OFFICE = "http://schemas.openxmlformats.org"
MAIN = f"{OFFICE}/spreadsheetml/2006/main"
TYPES = f"""<Types xmlns="{OFFICE}/package/2006/content-types">
<Default Extension="rels"
 ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/>%s</Types>"""
OVERRIDE = (
    '<Override PartName="/xl/%s.xml" ContentType="application/'
    'vnd.openxmlformats-officedocument.spreadsheetml.%s+xml"/>'
)
RELATIONS = f'<Relationships xmlns="{OFFICE}/package/2006/relationships">%s</Relationships>'
RELATED = f"{OFFICE}/officeDocument/2006/relationships"
RELATION = f'<Relationship Id="%s" Type="{RELATED}/%s" Target="%s"/>'
WORKBOOK = f"""<workbook xmlns="{MAIN}" xmlns:r="{RELATED}">
<sheets>%s</sheets></workbook>"""

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


def workbook(*sheets: str, **more: str) -> bytes:
    """A workbook of the XML of its sheets, and other parts by their names in ``xl/``."""
    file = io.BytesIO()
    numbers = range(1, len(sheets) + 1)
    names = "".join(f'<sheet name="s{i}" sheetId="{i}" r:id="r{i}"/>' for i in numbers)
    targets = "".join(RELATION % (f"r{i}", "worksheet", f"worksheets/s{i}.xml") for i in numbers)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        kinds = [OVERRIDE % ("workbook", "sheet.main")]
        kinds += [OVERRIDE % (f"worksheets/s{i}", "worksheet") for i in numbers]
        kinds += [OVERRIDE % (name, name) for name in more if name in ("sharedStrings", "styles")]
        archive.writestr("[Content_Types].xml", TYPES % "".join(kinds))
        first = RELATION % ("r1", "officeDocument", "xl/workbook.xml")
        archive.writestr("_rels/.rels", RELATIONS % first)
        archive.writestr("xl/workbook.xml", WORKBOOK % names)
        archive.writestr("xl/_rels/workbook.xml.rels", RELATIONS % targets)
        for number, content in enumerate(sheets, 1):
            archive.writestr(f"xl/worksheets/s{number}.xml", content)
        for name, content in more.items():
            archive.writestr(f"xl/{name}.xml", content)
    return file.getvalue()


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
        (workbook(sheet(HEAD, BODY, LAST)), f"The sheet “s1” of t.xlsx {FAR}, or save it as"),
        (workbook(sheet(), sheet(HEAD, LAST)), f"The sheet “s2” of t.xlsx {FAR}, or save it"),
        (workbook(sheet(*COPIES), sharedStrings=shared("a" * 30_000)), "more than 1,073,741,824"),
        (workbook(sheet(HEAD, row(2, cell("1A", "One")))), DAMAGED),
        (workbook(f" no XML {sheet(HEAD, BODY, LAST)}"), DAMAGED),
        # what is sound
        (workbook(BEYOND), ONE),  # no program shows the cells of such a row
        (workbook(sheet(HEAD, BODY, before='<dimension ref="A1:XFD1048576"/>')), ONE),
        (workbook(sheet(HEAD, BODY, row(1_048_576, '<c r="XFD1048576" s="0"/>'))), ONE),
        (workbook(sheet(HEAD, BODY), sheet(HEAD, LAST)), ONE),
        (workbook(sheet(HEAD, BODY), WORKBOOK=""), ONE),
        (workbook(LOW), "('text',) [['One']] [900001]"),
    ]


@pytest.mark.slow
def test_no_workbook_ends_the_process(tmp_path: Path) -> None:
    all_cases = cases()
    paths = [tmp_path / f"{number}.xlsx" for number in range(len(all_cases))]
    for path, (content, _) in zip(paths, all_cases, strict=True):
        path.write_bytes(content)
    command = [sys.executable, "-c", READ, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    lines = done.stdout.splitlines()
    for (_, says), line in zip(all_cases, lines, strict=False):
        assert says in line
    assert len(lines) == len(all_cases), f"case {len(lines)} ended it: {done.stderr[-1000:]}"


def claimed_size() -> bytes:
    """A workbook that says that a part is small."""
    content = workbook(sheet(HEAD, BODY + " " * 100_000))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = archive.getinfo("xl/worksheets/s1.xml").file_size
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
    monkeypatch.setattr(excel_tables, "MAX_UNPACKED", 100)
    with pytest.raises(TextError, match=r"larger than 100 bytes when unpacked. Save it as CSV"):
        read_excel("t.xlsx", io.BytesIO(content))


def test_a_cell_merged_over_rows_is_the_value_of_each() -> None:
    workbook = openpyxl.Workbook()
    rows = [["Rooms", None, None], ["label", "text", "n"], ["good", "Warm.", 1], [None, "Dry.", 2]]
    rows += [[None, None, None], [None, "Clean.", None], ["bad", "Cold.", None], [None, "Wet.", 3]]
    for place in rows:
        workbook.active.append(place)
    for reference in ("A1:C1", "A3:A6", "C6:C7"):
        workbook.active.merge_cells(reference)
    file = io.BytesIO()
    workbook.save(file)
    table = read_excel("t.xlsx", file, None)
    assert (table.columns, table.header) == (("label", "text", "n"), 2)
    assert table.column("label") == ["good", "good", "good", "bad", ""]
    assert table.column("n") == ["1", "2", "", "", "3"]
    assert "Filled merged cells with their value (rows 4, 6)." in table.notes
