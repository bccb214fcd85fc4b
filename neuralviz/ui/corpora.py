"""The saved corpora that a browser may see and change."""

from __future__ import annotations

import secrets
from hashlib import blake2b

import streamlit as st

from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.database import tidy_soon
from neuralviz.ui.limits import effective_settings

BROWSER = "neuralviz_browser"  # the cookie that tells browsers apart
_SESSION = "browser"  # session state: identity of a browser without cookies, while its page is open


def corpus_store() -> CorpusStore:
    """The saved corpora that this browser sees; old files of the store are deleted on the way."""
    store = CorpusStore(owner=_browser() if effective_settings().private else None)
    tidy_soon(store.folder)
    return store


def may_change(corpus: Corpus) -> bool:
    """Whether this browser may rename, extend or delete a corpus."""
    if effective_settings().demo:
        return False
    return not effective_settings().private or corpus.owner == _browser()


def describe_corpus_visibility() -> str:
    """Who sees an added corpus, as a sentence; empty where the machine has one user."""
    if effective_settings().private:
        return "Only this browser sees the corpora that you add here."
    if effective_settings().open:
        return "Everybody who uses this server sees saved corpora, and can delete them."
    return ""


def _browser() -> str:
    """A digest that identifies the browser and does not reveal its cookie."""
    cookie = st.context.cookies.get(BROWSER)
    if not cookie:
        cookie = st.session_state.setdefault(_SESSION, secrets.token_urlsafe(16))
    return blake2b(cookie.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
