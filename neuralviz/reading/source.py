"""Where texts are read from: files without pointers and error pages, and their lines."""

from __future__ import annotations

import codecs
import hashlib
import io
import json
import re
import unicodedata
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import IO

from charset_normalizer import from_bytes

from neuralviz.errors import TextError
from neuralviz.words import many, name_lines

TABLES = tuple(".csv .tsv .jsonl .ndjson .json .parquet .arrow .feather .xlsx".split())
WITHOUT_NAMES = (".csv", ".tsv", ".xlsx")  # in which a row may name the columns, or none
HEAD = 2048  # bytes by which a file is known
_BLANK = b"\xef\xbb\xbf \t\r\n"
_POINTER = re.compile(
    rb"# xet version |version https://(?:\S*xet\S*\s|git-lfs\.github\.com/spec/"
    rb"|\S+\s+(?:ext-\S+ \S+\s+)*oid \S)"
    rb"|(?:\.\./)*\.?/?(?:\.git/)?annex/objects/\S+\Z"
    rb"|(?:[^\n]*\n)?outs:[ \r]*+\n\s*+- (?:md5|hash|path|etag): ",  # of DVC
    re.I,
)
_MARKUP = re.compile(
    rb"<\?xml\b|<(?:error|rss|feed|svg)\b[^<>]*+>\s*+<"
    rb"|(?:<!--(?>.*?-->)\s*+)*+<(?:!doctype\s++html|html|head|body)\b[^<>]*+>\s*+"
    rb"(?:<|\Z|.*</(?:html|body)>\Z)",
    re.I | re.S,
)
_BLOCK = re.compile(
    rb"<(table|div|p|h[1-6]|ul|ol|title|script|style|section|article|main|center|form|pre)\b[^<>]*+>",
    re.I,
)
_ROW = re.compile(rb">\"?[,;\t|][^<>]*+\Z")  # a line of a table whose texts are HTML
_STATUS = re.compile(r"(?:http )?(?:error )?([45]\d\d\b)?:?\s*(.*?)[.!]?", re.I)
_REFUSALS = {
    *(status.phrase.lower() for status in HTTPStatus if status >= HTTPStatus.BAD_REQUEST),
    *("entry not found", "repository not found", "access denied", "permission denied", ""),
    *("invalid username or password", "rate limit exceeded"),
}
_ERROR_KEYS = set("error errors detail documentation_url error_code errorCode".split())
_ANSWER_KEYS = _ERROR_KEYS | set(
    """message status status_code statusCode code type title success reason path timestamp
    request_id requestId instance""".split()
)


@dataclass(frozen=True)
class Source:
    name: str  # of the file; its ending says what it is, and messages have it
    content: bytes | Path  # the bytes, or where they are
    header: int | None = None  # the line or row that names the columns, 0 for none; None to find it

    @classmethod
    def from_path(cls, path: Path, header: int | None = None) -> Source:
        return cls(path.name, path, header)

    @property
    def ending(self) -> str:
        """The lower-case file ending with its point; empty if none."""
        _, point, behind = self.name.lower().rpartition(".")
        return f".{behind}" if point else ""

    @property
    def is_table(self) -> bool:
        return self.ending in TABLES

    @cached_property
    def digest(self) -> str:
        """Hash of name, header and current content, for caches."""
        whole = hashlib.sha256(self.name.encode("utf-8", "surrogatepass") + b"\0")
        if self.header is not None:
            whole.update(f"header {self.header}\0".encode())
        if isinstance(self.content, bytes):
            whole.update(self.content)
        else:
            try:
                stat = self.content.stat()
            except OSError as error:
                raise self._describe_error(error) from error
            state = (str(self.content.resolve()), stat.st_size, stat.st_mtime_ns)
            whole.update(repr(state).encode("utf-8", "surrogatepass"))
        return whole.hexdigest()

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open the file at its start; `TextError` if unreadable, empty, a pointer or a web page."""
        try:
            if isinstance(self.content, bytes):
                content: IO[bytes] = io.BytesIO(self.content)
            elif self.content.exists() and not self.content.is_file():
                raise TextError(f"{self.name} is not a regular file.")
            else:
                content = self.content.open("rb")
            with content as file:
                head = file.read(HEAD)
                if not head:
                    raise TextError(f"{self.name} is empty.")
                check_is_content(self.name, head)
                file.seek(0)
                yield file
        except OSError as error:
            raise self._describe_error(error) from error

    def _describe_error(self, error: OSError) -> TextError:
        if isinstance(error, FileNotFoundError):
            return TextError(f"No such file: {self.name}.")
        return TextError(f"Could not read {self.name}: {error.strerror or error}.")


# --- files that hold no data -------------------------------------------------------------------


def check_is_content(name: str, head: bytes) -> None:
    """Refuse, by its first `HEAD` bytes, a pointer, a web page, XML or a server's message."""
    start, is_cut = head.lstrip(_BLANK).rstrip(), len(head) >= HEAD
    if _POINTER.match(start):
        raise TextError(
            f"{name} is a pointer of Git LFS, Git-Xet, git-annex or DVC, not the file itself. "
            "Download the file, or run `git lfs pull`, `git annex get` or `dvc pull`."
        )
    is_part = not name.lower().endswith(".md") and _is_part_of_page(start, is_cut)
    if is_part or _MARKUP.match(start):
        raise TextError(
            f"{name} is a web page (HTML) or XML, not a file of texts: perhaps an error or sign-in "
            "page. Download the file again, or save its texts as plain text or CSV."
        )
    text = start.decode("utf-8", "replace")
    if not is_cut and _is_refusal(text):
        excerpt = " ".join(text.split())[:100]
        raise TextError(
            f"{name} holds a server's message, not data: “{excerpt}”. Download the file again."
        )


def _is_part_of_page(start: bytes, is_cut: bool) -> bool:
    """Whether a file is HTML throughout, not a table of HTML texts."""
    lines = start.splitlines()
    n_rows = sum(map(bool, map(_ROW.search, lines)))
    is_whole = is_cut or start.endswith(b">")
    return bool(_BLOCK.match(start)) and is_whole and 2 * n_rows < len(lines)


def _is_refusal(text: str) -> bool:
    """Whether a server wrote this in place of a file: a status, or JSON with an error."""
    if not text.startswith("{"):
        status = _STATUS.fullmatch(text)
        if status is None or status[2].lower() not in _REFUSALS:
            return False
        return status[1] is not None or " " in status[2]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    errors = [value[key] for key in _ERROR_KEYS & value.keys()]
    errors += [error.get("message") for error in errors if isinstance(error, dict)]
    return value.keys() <= _ANSWER_KEYS and any(isinstance(error, str) for error in errors)


def is_json(first: str) -> bool:
    """Whether a first line is, or begins, a JSON object or a list of them."""
    if not first.startswith(("{", "[")):
        return False
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return first in ("{", "[", "[{")
    items = value if isinstance(value, list) else [value]
    return any(isinstance(item, dict) for item in items)


# --- lines ---------------------------------------------------------------------------------------

Line = tuple[int, str]  # with its number, from 1
MAX_LINE = 1 << 25  # characters; what has longer lines is no text
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")
_UNREADABLE_RUN = re.compile(f"{_UNREADABLE.pattern}++")
# binary data in UTF-16 have characters for private use, too; Word marks lists with others of them
_MEANINGLESS_RUN = re.compile(f"(?:{_UNREADABLE.pattern}|[\ue000-\uefff])++")
_STRAY = re.compile("[\udc80-\udcff]")  # a byte that is no UTF-8, as Python keeps it
_BINARY_SHARE = 0.02  # more control characters than this and a file holds no text
_FEW_CONTROLS = 10  # that any text may have, however short
_TERMINAL = re.compile("[\a\b\x1b]")  # colours, bells and corrections in the logs of programs
SAMPLE = 1 << 24  # bytes at the head of a file by which its encoding is told
_DETECTED = 1 << 16  # bytes of its lines beyond ASCII that are enough for it
_FEW_BYTES = 12  # beyond ASCII; too few to tell a rarer encoding by

_ENCODINGS = (  # that are told apart
    "cp1252 cp1250 iso8859_2 cp1251 koi8_r cp1253 cp1254 cp932 euc_jp gb18030 big5 euc_kr".split()
)
_NAMES = {"utf-8-sig": "UTF-8", "iso8859_2": "ISO 8859-2", "cp932": "Shift-JIS", "big5": "Big5"}
_MARKS = (  # that of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NO_TEXT = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\x1f\x8b", b"%PDF", b"PAR1", b"{\\rtf")
_PICKLE = (b"\x80\x04\x95", b"\x80\x05\x95")


def tidy(field: str) -> str:
    """A field stripped, with unreadable characters as blanks; empty if none is visible."""
    if field.isprintable():
        return field.strip()
    readable = _UNREADABLE.sub(" ", field).strip()
    for character in readable:
        if not character.isspace() and unicodedata.category(character) not in ("Cf", "Mn"):
            return readable
    return ""


def count_unreadable(text: str) -> int:
    return 0 if text.isprintable() else len(_UNREADABLE.findall(text))


class TextLines:
    """The numbered lines of a text file, ending at ``\\n``, ``\\r\\n`` or ``\\r``, read lazily.

    The encoding is that of the byte order mark, else guessed from the first 16 MB and noted if not
    Unicode. `TextError` if the file is no text or a line exceeds ``MAX_LINE``.
    """

    def __init__(self, name: str, file: IO[bytes], *, sample: int = SAMPLE) -> None:
        self._name, self._file = name, file
        file.seek(0)
        head = file.read(sample)
        is_cut = len(head) == sample
        self._encoding = _find_encoding(head, is_cut)
        text = head.decode(self._encoding, "replace")
        run = _MEANINGLESS_RUN if self._encoding in ("utf-16", "utf-32") else _UNREADABLE_RUN
        share = _count_control_share(_TERMINAL.sub("", text), _FEW_CONTROLS, run)
        if share > _BINARY_SHARE or head.startswith(_NO_TEXT + _PICKLE):
            raise TextError(
                f"{name} is not a text file, but perhaps a document, workbook, archive or pickle. "
                "Correct its file extension, or save it as plain text or CSV in UTF-8."
            )
        if not is_cut and not text.strip("\ufeff \t\r\n"):
            raise TextError(f"{name} is empty.")
        self._strays: list[int] = []  # the line of every character that is not in the encoding

    @property
    def notes(self) -> tuple[str, ...]:
        written = self._encoding.upper().replace("CP", "Windows-").replace("_", "-")
        encoding = _NAMES.get(self._encoding, written)
        notes = []
        if not encoding.startswith("UTF"):
            notes.append(f"{self._name} is not UTF-8. It was read as {encoding}.")
        if self._strays:
            read_as = "read as Windows-1252" if encoding == "UTF-8" else "replaced by “\ufffd”"
            place = name_lines(list(dict.fromkeys(self._strays)))
            characters = many(len(self._strays), "character")
            notes.append(f"Not valid {encoding}: {characters}, {read_as} ({place}).")
        return tuple(notes)

    def __iter__(self) -> Generator[tuple[int, str], None, None]:
        number = 0
        with self._open_decoded() as lines:
            while line := lines.readline(MAX_LINE):
                number += 1
                if line[-1] == "\n":
                    line = line[:-1]
                elif len(line) >= MAX_LINE:
                    raise TextError(
                        f"Line {number:,} of {self._name} has more than {MAX_LINE:,} "
                        "characters. This does not look like a file of texts."
                    )
                yield number, self._mend_line(line, number)

    def read(self) -> str:
        with self._open_decoded() as lines:
            parts = enumerate(lines.read().split("\n"), 1)
            return "\n".join(self._mend_line(line, number) for number, line in parts)

    @contextmanager
    def _open_decoded(self) -> Iterator[io.TextIOWrapper]:
        self._file.seek(0)
        self._strays.clear()
        errors = "surrogateescape" if self._encoding == "utf-8-sig" else "replace"
        lines = io.TextIOWrapper(self._file, self._encoding, errors, newline=None)
        try:
            yield lines
        finally:
            lines.detach()

    def _mend_line(self, line: str, number: int) -> str:
        if line.isascii():
            return line
        if self._encoding == "utf-8-sig":
            mended, n_strays = _STRAY.subn(_decode_as_windows, line)
        else:
            mended, n_strays = line, line.count("\ufffd")
        self._strays += [number] * n_strays
        return mended


def _decode_as_windows(stray: re.Match[str]) -> str:
    return bytes([ord(stray[0]) - 0xDC00]).decode("cp1252", "replace")


def _find_encoding(head: bytes, is_cut: bool) -> str:
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    text = head.decode("utf-8", "replace")
    wrong = text.count("\ufffd") - head.count("\ufffd".encode())  # one that is meant is not wrong
    if is_cut:
        wrong -= text[-3:].count("\ufffd")  # the last character may have been cut
    right = sum(map(len, re.findall("[^\x00-\x7f\ufffd]+", text)))
    encoding = "utf-8-sig" if wrong == 0 or right > 10 * wrong else _detect(head)
    if _count_control_share(head.decode(encoding, "replace"), but=1) > _BINARY_SHARE:
        kinds = [("utf-16-le", head[1::2]), ("utf-16-be", head[::2])]
        kinds.sort(key=lambda kind: -kind[1].count(0))  # most high bytes of Latin text are zero
        return next((kind for kind, high in kinds if 0 in high and _is_wide(head, kind)), encoding)
    return encoding


def _count_control_share(text: str, but: int, run: re.Pattern[str] = _UNREADABLE_RUN) -> float:
    n_unreadable = sum(map(len, run.findall(text)))
    return (n_unreadable - but) / max(len(text), 1)


def _is_wide(head: bytes, encoding: str) -> bool:
    """Whether a file that looks binary is UTF-16 text, in any script."""
    try:
        text = head[:_DETECTED].decode(encoding)
    except UnicodeDecodeError:
        return False
    categories = (unicodedata.category(character) for character in text if not character.isspace())
    return sum(kind in ("Cc", "Cn", "Cs") for kind in categories) <= _BINARY_SHARE * len(text)


def _detect(head: bytes) -> str:
    """The likeliest encoding with one or two bytes per character."""
    lines = [line for line in head.splitlines() if not line.isascii()]
    sample = b"\n".join(lines)[:_DETECTED]
    n_beyond = sum(byte >= 0x80 for byte in sample)
    if n_beyond < _FEW_BYTES and n_beyond < 0.3 * len(sample):
        return "cp1252"
    matches = list(from_bytes(sample, cp_isolation=_ENCODINGS))
    if not matches:
        return "cp1252"
    likely = [encoding for match in matches for encoding in match.could_be_from_charset]
    japanese = sample.decode("euc_jp", "ignore")  # in which Chinese shows no syllables
    if "euc_jp" in likely and len(re.findall("[ぁ-ん]", japanese)) > 0.1 * n_beyond / 2:
        return "euc_jp"
    best = matches[0]
    equal = [
        encoding
        for match in matches
        if (match.chaos, match.coherence) == (best.chaos, best.coherence)
        for encoding in match.could_be_from_charset
    ]
    if "cp1252" in equal:
        return "cp1252"
    signs = any(0x80 <= byte < 0xA0 for byte in sample)  # letters of Windows-1250 alone
    if best.encoding == "cp1250" and not signs and "iso8859_2" in likely:
        return "iso8859_2"
    return best.encoding
