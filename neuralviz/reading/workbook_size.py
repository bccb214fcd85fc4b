"""What reading a workbook would take, found out before it is read.

The reader of Excel files makes room for every cell between the first and the last one of a sheet,
and for a copy of a shared string in every cell that names it; where it cannot have that much, the
whole process ends. A file of a few kilobytes can ask for terabytes. So its parts are unpacked and
looked through first, piece by piece: nothing that a file says of its own size is believed, and
declarations of entities are refused.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from abc import ABC, abstractmethod
from array import array
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import IO
from xml.parsers import expat

_CELL = re.compile(r"([A-Za-z]{1,7})([0-9]{1,10})")
_NUMBER = re.compile(r"[0-9]{1,10}")
_AT_ONCE = 1 << 20  # bytes
_SHEET = b"sheetData"  # the element that the reader takes cells from; in every sheet
_STRINGS = "xl/sharedstrings.xml"  # the reader passes over upper and lower case
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_OTHER_KINDS = ("mimetype", "xl/workbook.bin")  # OpenDocument, and Excel's binary workbook


class DamagedWorkbookError(Exception):
    """It is no workbook of this kind, or broken."""


class LargeWorkbookError(Exception):
    """It holds too much, whichever sheet is read; the message says of what."""


@dataclass(frozen=True)
class WorkbookLimits:
    """How much of a workbook can be read.

    Attributes:
        unpacked: bytes of all parts.
        cells: of a sheet, from its first row and column to the last ones that are filled.
        strings: that cells share.
        characters: of the shared strings of a sheet, one a cell.
    """

    unpacked: int = 1 << 30
    cells: int = 1 << 25
    strings: int = 1 << 24
    characters: int = 1 << 30


def oversized_sheets(file: IO[bytes], limits: WorkbookLimits) -> Mapping[str, str]:
    """The parts of a workbook that are sheets too large to be read, and what is too large.

    Args:
        file: of a workbook.
        limits: of what can be read.

    Raises:
        DamagedWorkbookError: a part is broken, or it is another kind of file.
        LargeWorkbookError: it holds too much, whichever sheet is read.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            return _look_through(archive, limits)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError) as error:
        # of an unknown way of packing, NotImplementedError; where a password is asked for, its base
        raise DamagedWorkbookError(str(error)) from error


def copy_without(parts: Collection[str], file: IO[bytes], to: IO[bytes]) -> None:
    """Copy a workbook but some of its parts, so that nobody reads them."""
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.infolist():
            if part.filename not in parts:
                with old.open(part) as content, new.open(part.filename, "w") as copy:
                    while piece := content.read(_AT_ONCE):
                        copy.write(piece)


def _look_through(archive: zipfile.ZipFile, limits: WorkbookLimits) -> Mapping[str, str]:
    parts = {part.filename.lower().replace("\\", "/"): part for part in archive.infolist()}
    if len(parts) < len(archive.infolist()):
        raise DamagedWorkbookError("two parts have the same name")
    if any(kind in parts for kind in _OTHER_KINDS):
        raise DamagedWorkbookError("a different kind of workbook")
    if any(part.compress_type not in _PACKED for part in parts.values()):
        raise DamagedWorkbookError("a part uses an unknown compression method")
    unpacked = 0
    strings = _SharedStrings(limits)
    found: dict[str, str] = {}
    for name in sorted(parts, key=lambda name: name != _STRINGS):  # these come first
        part = strings if name == _STRINGS else _Sheet(strings.lengths)
        for piece in _pieces(archive, parts[name]):
            unpacked += len(piece)
            if unpacked > limits.unpacked:
                raise LargeWorkbookError(f"is larger than {limits.unpacked:,} bytes when unpacked")
            part.feed(piece)
        part.feed(b"", last=True)
        if isinstance(part, _Sheet) and (why := part.excess(limits)):
            found[parts[name].filename] = why
    return found


def _pieces(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> Iterator[bytes]:
    """What a part unpacks to, however long the archive says that it is."""
    claimed, n_bytes = part.file_size, 0
    part.file_size = 1 << 62
    with archive.open(part) as content:
        while piece := content.read(_AT_ONCE):
            n_bytes += len(piece)
            yield piece
    if n_bytes != claimed:
        raise DamagedWorkbookError("a part does not have the length given in the archive")


class _Part(ABC):
    """A part of a workbook that is looked through as it is unpacked."""

    def __init__(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = _refuse_declarations
        self._parser.StartElementHandler = self._start
        self._broken: expat.ExpatError | None = None

    def feed(self, piece: bytes, *, last: bool = False) -> None:
        """Look through some more of it."""
        if self._broken is None:
            try:
                self._parser.Parse(piece, last)
            except expat.ExpatError as error:
                self._broken = error
        if self._broken is not None and self._matters(piece):
            raise DamagedWorkbookError(str(self._broken)) from self._broken

    def _matters(self, piece: bytes) -> bool:
        """Whether what cannot be parsed makes the workbook unusable."""
        return True

    @abstractmethod
    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take in the beginning of an element."""


def _refuse_declarations(*_: object) -> None:
    raise DamagedWorkbookError("it declares entities")


class _SharedStrings(_Part):
    """Texts that cells name by number.

    Attributes:
        lengths: [string] in characters.
    """

    def __init__(self, limits: WorkbookLimits) -> None:
        super().__init__()
        self.lengths = array("q")
        self._most = limits.strings
        self._parser.CharacterDataHandler = self._text

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition(":")[2] == "si":
            self.lengths.append(0)
            if len(self.lengths) > self._most:
                raise LargeWorkbookError(f"has more than {self._most:,} different texts")

    def _text(self, text: str) -> None:
        if self.lengths:
            self.lengths[-1] += len(text)


class _Sheet(_Part):
    """The filled cells of a sheet, or of a part that may be one."""

    def __init__(self, lengths: array[int]) -> None:
        super().__init__()
        self._lengths = lengths
        self._columns: dict[str, int] = {}  # numbers, by letters
        self._before = b""  # the last bytes of the piece before
        self._is_sheet = False
        self._row, self._row_name, self._column = 0, "", 0  # where the reader is, from 1
        self._cell: dict[str, str] = {}  # the attributes of the one under way
        self._number = ""
        self._last_row = self._last_column = 0  # that are filled
        self._first_column = 1 << 62
        self._characters = 0

    def excess(self, limits: WorkbookLimits) -> str:
        """What there is too much of; empty if there is not."""
        n_cells = self._last_row * max(0, self._last_column - self._first_column + 1)
        if n_cells > limits.cells:
            return (
                f"extends to row {self._last_row:,} and column {self._last_column:,}. Delete "
                "stray cells far from the table"
            )
        if self._characters > limits.characters:
            return f"has more than {limits.characters:,} characters. Split it"
        return ""

    def feed(self, piece: bytes, *, last: bool = False) -> None:
        if not self._is_sheet:
            self._is_sheet = _SHEET in self._before + piece
            self._before = piece[-len(_SHEET) :]
        super().feed(piece, last=last)

    def _matters(self, piece: bytes) -> bool:
        return self._is_sheet  # images are no XML either

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        # a million cells take two million calls: the most frequent come first
        if tag == "v" or tag == "is":
            self._fill()
        elif tag == "c":
            self._cell = attributes
            if "r" not in attributes:
                self._column += 1
        elif tag == "row":
            name = attributes.get("r")
            if name is not None and not _NUMBER.fullmatch(name):
                raise DamagedWorkbookError(f"invalid row {name[:20]}")
            self._row = self._row + 1 if name is None else int(name)
            self._row_name, self._column = str(self._row), 0
        elif ":" in tag:
            self._start(tag.rpartition(":")[2], attributes)

    def _fill(self) -> None:
        """The cell holds something."""
        name = self._cell.get("r")
        if name is not None:
            column = self._columns.get(name.removesuffix(self._row_name))
            self._column = self._go_to(name) if column is None else column
        column, row = self._column, self._row
        if column > self._last_column:
            self._last_column = column
        if column < self._first_column:
            self._first_column = column
        if row > self._last_row:
            self._last_row = row
        if self._cell.get("t") == "s":
            self._number = ""
            self._parser.CharacterDataHandler = self._read_number
            self._parser.EndElementHandler = self._copy

    def _go_to(self, name: str) -> int:
        """The column of a cell, which may say that it is in another row."""
        match = _CELL.fullmatch(name)
        if match is None:
            raise DamagedWorkbookError(f"invalid cell {name[:20]}")
        letters, digits = match.groups()
        column = 0
        for letter in letters.upper():
            column = column * 26 + ord(letter) - ord("A") + 1
        self._columns[letters] = column
        if digits != self._row_name:
            self._row, self._row_name = int(digits), digits
        return column

    def _read_number(self, digits: str) -> None:
        self._number += digits

    def _copy(self, tag: str) -> None:
        """The cell holds a copy of the shared string whose number was read."""
        if tag.rpartition(":")[2] != "v":
            return
        self._parser.CharacterDataHandler = self._parser.EndElementHandler = None
        number = self._number.strip()
        if _NUMBER.fullmatch(number) and int(number) < len(self._lengths):
            self._characters += self._lengths[int(number)]
