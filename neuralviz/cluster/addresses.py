"""Addresses of Ray clusters; loads no Ray."""

from __future__ import annotations

import re

LOCAL = "local"
_HOST = r"(\[[0-9a-fA-F:]+\]|[\w.-]+)"
_ADDRESS = re.compile(rf"auto|local|{_HOST}:\d+")


def is_address(text: str) -> bool:
    return _ADDRESS.fullmatch(text) is not None
