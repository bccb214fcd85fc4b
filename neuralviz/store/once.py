"""What is added to a store once, and stays away when somebody deletes it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from neuralviz.store.refusing import folder_error

if TYPE_CHECKING:
    from pathlib import Path

    from neuralviz.store.corpora import Corpus, CorpusStore

_adding = threading.Lock()  # for the sessions that open the app together


def add_once(
    store: CorpusStore, name: str, add: Callable[[], Corpus], made_of: str = ""
) -> Corpus | None:
    """The corpus that ``add`` makes, unless that has been done before in this store; None then.

    A corpus that is still there is added again, to itself, once it is made of something else.

    Args:
        store: to be added to.
        name: of the mark that is left in its folder.
        add: makes the corpus, and uses what is there of it.
        made_of: says what is added with the corpus.
    """
    mark = store.folder / f"{name}.json"
    with _adding:
        is_new = not mark.exists()
        if not is_new and not _is_outdated(mark, made_of, store):
            return None
        corpus = add()
        try:
            mark.write_text(json.dumps({"corpus": corpus.id, "made_of": made_of}), "utf-8")
        except OSError as error:
            raise folder_error(f"Could not write {mark}: {error.strerror or error}.") from error
    return corpus if is_new else None


def _is_outdated(mark: Path, made_of: str, store: CorpusStore) -> bool:
    """Whether a corpus that is still there was made of something else."""
    try:
        content = json.loads(mark.read_bytes())
        is_same = content.get("made_of", "") == made_of
        return not is_same and content["corpus"] in {corpus.id for corpus in store.corpora()}
    except (OSError, ValueError, LookupError, AttributeError):
        return False  # nobody knows: it may have been deleted
