"""Concept tags: what an entry is about, in at most eight words. `dreaming.md` 2.5."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from cenotaph import _core
from cenotaph.recall.tag_words import GLOSSARY, STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_TAGS, MOST_CHARACTERS = 8, 32
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_COMPOUND = re.compile(r"[^\W_]+(?:[._/-][^\W_]+)+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[\w.-]*\.[a-z0-9]+)?")
_NUMBER = re.compile(r"[\d.,:/_-]+")
_KANA = re.compile(r"[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f]+")
_EAST_ASIAN = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc]")
_LEAST, _LEAST_EAST_ASIAN, _LEAST_KANA = 3, 2, 3


def concept_tags(path: str, snippet: str) -> list[str]:
    """Tags of a snippet and the name of its file, in order: terms of the glossary, compounds, words."""
    text = f"{path.rsplit('/', 1)[-1]} {_COMMENT.sub(' ', snippet)}"
    tags: dict[str, None] = {}
    for tag in _candidates(text):
        tags[tag] = None
        if len(tags) == MOST_TAGS:
            break
    return list(tags)


def _candidates(text: str) -> Iterator[str]:
    folded = unicodedata.normalize("NFKC", text).lower()
    yield from (term for term in GLOSSARY if _stands_in(term, folded))
    for found in (*_COMPOUND.findall(text), *_core.words(text)):
        tag = _tag(found)
        if tag is not None:
            yield tag


def _stands_in(term: str, text: str) -> bool:
    """Anywhere; a short term only as a word of its own."""
    least = _LEAST_EAST_ASIAN if _EAST_ASIAN.search(term) else _LEAST
    if term not in text:
        return False
    return len(term) >= least or re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text) is not None


def _tag(word: str) -> str | None:
    tag = unicodedata.normalize("NFKC", word)
    tag = _stripped(tag).replace("_", "-").lower()
    if not tag or len(tag) > MOST_CHARACTERS or tag in STOP_WORDS:
        return None
    if _NUMBER.fullmatch(tag) or _DATE.fullmatch(tag):
        return None
    return None if len(tag) < _least(tag) and tag not in GLOSSARY else tag


def _least(tag: str) -> int:
    if _KANA.fullmatch(tag):
        return _LEAST_KANA
    return _LEAST_EAST_ASIAN if _EAST_ASIAN.search(tag) else _LEAST


def _stripped(word: str) -> str:
    """Without what is neither letter nor digit at its ends."""
    start, end = 0, len(word)
    while start < end and not word[start].isalnum():
        start += 1
    while end > start and not word[end - 1].isalnum():
        end -= 1
    return word[start:end]
