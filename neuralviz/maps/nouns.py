"""How likely English words are nouns, without a tagger: by their place, ending, and a short list.

A cluster is called “bounce error”, not “gets hot”. Each occurrence after an article, a possessive
or a preposition counts for a noun; after a pronoun, an auxiliary or *to*, against it. Until there
are many, the ending of a word and a list of the commonest verbs and adjectives decide.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

_BEFORE_NOUNS = frozenset(
    """a an the my our your his its their this these those no any each every some of for
    with from by in on at about into between""".split()
)
_BEFORE_OTHER_KINDS = frozenset(
    """i you he she it we they who to will would can could cannot should must may might do
    does did not never is are was were am be been being very too so more most has have had
    gets get""".split()
)
_VERBS = """accept arrive ask become begin believe bring build buy call change click close
    come consider continue do fail feel find get give go happen have help hold hope
    include keep know lack leave let like live look lose love make mean meet move need
    offer open owe pay provide put read receive refuse reject remain return run say see
    seem send set show shut solve start stay stop take talk tell think try turn use wait
    want watch work write""".split()
_IRREGULAR = """ate became been began begun bought brought came did does done felt found
    gave given goes gone got gotten had has held kept knew known led left lost made meant
    met paid ran said sat saw seen sent shown shut stood taken taught thought threw told
    took went were woke won wore wrote written""".split()
_OTHER_WORDS = """abroad again ago ah already away back bad best better big billion black blue
    cold dear early easy empty false fast free full good great green half hard hello hey
    hi high hot hundred large late left long lot lots low main many million mr mrs much
    new next now oh ok okay old only open past please real red right same second short sir
    slow small soon strong sure thousand today tomorrow true two well whole wrong yes
    yesterday young""".split()
_VERB_ENDINGS = ("", "s", "es", "ed", "d", "ing")
_COMMON = frozenset(
    [
        *(verb + ending for verb in _VERBS for ending in _VERB_ENDINGS),
        *(verb[:-1] + "ing" for verb in _VERBS if verb.endswith("e")),
        *_IRREGULAR,
        *_OTHER_WORDS,
    ]
)
_OF_OTHER_KINDS = re.compile(
    r".{2,}(?:ing|ed|ly|ous|ful|able|ible|ive|ish|less|est|i[sz]e|ical|[in]al|ial|ary|ese)"
)
_OF_NOUNS = re.compile(r".{2,}(?:[tsc]ions?|ments?|ness|it(?:y|ies)|[ae]nces?|ships?|isms?|ings)")
_NOUN, _OTHER_KIND, _UNKNOWN = (2.0, 0.25), (0.25, 2.0), (1.5, 0.5)


class Nouns:
    """Counts of the places in which words stand."""

    def __init__(self) -> None:
        self._for, self._against = Counter[str](), Counter[str]()

    def count(self, words: Sequence[str]) -> None:
        """Count the lower-case words of a text, in order."""
        for before, word in pairwise(words):
            if before in _BEFORE_NOUNS:
                self._for[word] += 1
            elif before in _BEFORE_OTHER_KINDS:
                self._against[word] += 1

    def share(self, word: str) -> float:
        """How likely the word is a noun, 0 … 1."""
        for_noun, no_noun = _guess(word)
        for_noun += self._for[word]
        return for_noun / (for_noun + no_noun + self._against[word])


def _guess(word: str) -> tuple[float, float]:
    """Occurrences for and against a noun that are added to those counted."""
    if word in _COMMON or _OF_OTHER_KINDS.fullmatch(word):
        return _OTHER_KIND
    return _NOUN if _OF_NOUNS.fullmatch(word) else _UNKNOWN
