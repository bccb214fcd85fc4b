"""Names that are nobody else's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable


def free_name(
    name: str, taken: Iterable[str], mark: str = "", *, same: Callable[[str], str] = str
) -> str:
    """``name``, or one with a number in brackets behind it that is not taken.

    Args:
        name: the one wished for.
        taken: names of others.
        mark: a word for the brackets: ``name (mark)``, ``name (mark 2)`` and so on in place of
            ``name (2)``, ``name (3)``.
        same: two names are alike when this makes the same of them.
    """
    known = {same(one) for one in taken}
    behind = itertools.chain([mark], (f"{mark} {n}" for n in itertools.count(2)))
    numbers = map(str, itertools.count(2))
    brackets = (f"{name} ({inner})" for inner in (behind if mark else numbers))
    return next(one for one in itertools.chain([name], brackets) if same(one) not in known)
