"""Read, embed and map corpora on a Ray cluster, in the same store; needs ``neuralviz[ray]``.

What commands without Ray need is here: addresses, and a sentence.
"""

from __future__ import annotations

import re

LOCAL = "local"
RESUMES = "Finished work is saved; run the same command again to resume."
_HOST = r"(\[[0-9a-fA-F:]+\]|[\w.-]+)"
_ADDRESS = re.compile(rf"auto|local|{_HOST}:\d+")


def is_address(text: str) -> bool:
    return _ADDRESS.fullmatch(text) is not None
