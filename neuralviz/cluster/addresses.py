"""Addresses of Ray clusters; loads no Ray."""

from __future__ import annotations

import re

LOCAL = "local"
_HOST = r"(ray://)?(\[[0-9a-fA-F:]+\]|[\w.-]+)"
_ADDRESS = re.compile(rf"auto|local|{_HOST}:(?P<port>\d+)")
_MEANT_FOR_ONE = re.compile(rf"auto|local|localhost|{_HOST}:\w*|\d+(\.\d+){{3}}|ray://.*")


def is_like_address(text: str) -> bool:
    """Whether this names a cluster, not a file; its port may be invalid."""
    return _MEANT_FOR_ONE.fullmatch(text) is not None


def is_address(text: str) -> bool:
    match = _ADDRESS.fullmatch(text)
    return match is not None and int(match["port"] or 1) < 1 << 16
