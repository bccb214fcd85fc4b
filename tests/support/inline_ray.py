"""Ray Data's part in embedding, played by this process: a test of the rest starts no Ray."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


class InlineDataset:
    """`ray.data.from_items(...).map(...)`: one worker, made anew by each run, does all items."""

    def __init__(self, items: Sequence[Any], **_: Any) -> None:
        self.items = items

    def map(self, worker: Any, *, fn_constructor_args: Sequence[Any], **_: Any) -> InlineDataset:
        self.worker = worker(*fn_constructor_args)
        return self

    def iter_rows(self) -> Iterator[dict[str, Any]]:
        for item in self.items:
            yield self.worker({"item": item})
