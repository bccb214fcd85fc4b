"""What people ask, and the page that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st


@dataclass(frozen=True)
class Question:
    """A question, and where its answer is.

    Attributes:
        asked: as people ask it.
        where: what to look at on the page, or to do there; markdown.
        page: its file.
        address: what the page opens with.
    """

    asked: str
    where: str
    page: str
    address: Mapping[str, str] = field(default_factory=dict)


QUESTIONS = (
    Question(
        "What is a neural embedding?",
        "The change in a model's weights after training on one text, as one vector. Ten steps show "
        "how it comes about.",
        "pages/how_it_works.py",
    ),
    Question(
        "Which words wrote it?",
        "*Which words shaped the embedding*, below the loss.",
        "pages/micro_tuning.py",
    ),
    Question(
        "What does the model know now?",
        "*What does it know now?*: it fills in a blank, before and after.",
        "pages/micro_tuning.py",
    ),
    Question(
        "How do two methods differ on my texts?",
        "**Paste** your texts and press **Compare**.",
        "pages/compare.py",
    ),
    Question(
        "Which one is better on my data, and how sure is that?",
        "**Upload** a table and press **Evaluate**: the difference has an interval.",
        "pages/evaluation.py",
    ),
    Question(
        "What does a layer do?",
        "It turns the vectors of some words more than others: see which, and where.",
        "pages/layers.py",
    ),
    Question(
        "Where does a new text land?",
        "Choose **By meaning** and type it: it is placed on the map.",
        "pages/corpus_map.py",
    ),
    Question(
        "What are the themes of my corpus?",
        "The names on the map; **Clusters** lists them. **Add a corpus** opens yours.",
        "pages/corpus_map.py",
    ),
    Question(
        "How long does it take?",
        "A sentence: less than a second. A thousand: about a minute on two cores, with *fast*. "
        "The time left is shown for everything longer.",
        "pages/micro_tuning.py",
    ),
    Question(
        "Can I trust it?",
        "Published results come out again, and every difference has an interval. See where each "
        "method fails.",
        "pages/evaluation.py",
        {"example": "Scored pairs"},
    ),
)


def questions() -> None:
    """All questions, each with a link to the page that answers it."""
    with st.popover("Ten questions", icon=":material/quiz:", key="questions"):
        for question in QUESTIONS:
            with st.container(gap=None):
                if st.button(f"**{question.asked}**", type="tertiary"):
                    st.switch_page(question.page, query_params=question.address or None)
                st.caption(question.where)
