"""Keys and hashes of short-term entries: `format.md` 4.6.

White space is the ECMAScript set, lengths are UTF-16 units, hashes are the first 12 hex digits of SHA-1 over UTF-8.
"""

from __future__ import annotations

import hashlib

from cenotaph.transcript import SPACES

_DIGITS = 12
_BASIC = "\uffff"


def normalised(text: str) -> str:
    """`text` without white space at its ends, every run of it one blank."""
    return SPACES.sub(" ", text).strip(" ")


def claim_hash(snippet: str) -> str:
    """What makes two snippets the same claim."""
    return _short_hash(normalised(snippet))


def query_hash(query: str) -> str:
    """What makes two queries the same."""
    return _short_hash(normalised(query).lower())


def claim_key(claim: str) -> str:
    """Key of an entry that a note or a session left, from its claim hash."""
    return f"memory:claim:{claim}"


def recall_key(path: str, start_line: int, end_line: int) -> str:
    """Key of an entry that a search found."""
    return f"memory:{path}:{start_line}:{end_line}"


def _short_hash(text: str) -> str:
    return hashlib.sha1(text.encode(errors="replace"), usedforsecurity=False).hexdigest()[:_DIGITS]


def utf16_length(text: str) -> int:
    """Number of UTF-16 units."""
    return len(text) if text.isascii() else len(text) + sum(character > _BASIC for character in text)


def cut_utf16(text: str, units: int) -> str:
    """The beginning of `text`, at most `units` UTF-16 units, no character in two."""
    if len(text) <= units // 2 or utf16_length(text) <= units:
        return text
    left = units
    for position, character in enumerate(text):
        left -= 2 if character > _BASIC else 1
        if left < 0:
            return text[:position]
    return text
