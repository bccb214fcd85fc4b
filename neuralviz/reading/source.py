"""Where texts are read from: a name with bytes or a path; refuses pointers and error pages."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import IO

from neuralviz.errors import TextError

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
        if isinstance(self.content, bytes):
            with io.BytesIO(self.content) as file:
                yield self._check_head(file)
            return
        try:
            if self.content.exists() and not self.content.is_file():
                raise TextError(f"{self.name} is not a regular file.")
            if not self.content.stat().st_size:
                raise TextError(f"{self.name} is empty.")
            with self.content.open("rb") as file:
                yield self._check_head(file)
        except OSError as error:
            raise self._describe_error(error) from error

    def _describe_error(self, error: OSError) -> TextError:
        if isinstance(error, FileNotFoundError):
            return TextError(f"No such file: {self.name}.")
        return TextError(f"Could not read {self.name}: {error.strerror or error}.")

    def _check_head(self, file: IO[bytes]) -> IO[bytes]:
        head = file.read(HEAD)
        if not head:
            raise TextError(f"{self.name} is empty.")
        check_is_content(self.name, head)
        file.seek(0)
        return file


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
