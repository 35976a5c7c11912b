"""A raw scan for residue: every byte of every file, with `bytes.find` and the standard library.

It shares no code with the product, nor with `verify`: slow and simple on purpose. A needle is looked for whole, in
halves, and by the tails of its rare words, which is what a full-text segment or a half overwritten cell leaves of it.
"""

from __future__ import annotations

import base64
import json
import os
import random
import stat
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

TAIL = 8
"""Bytes of the end of a word: the beginning is cut off in full-text segments when a neighbour begins alike."""
DEEP = 2
"""Compressed members inside compressed members."""
LIMIT = 64 << 20
"""Bytes that one member may hold."""


@dataclass(frozen=True)
class Needle:
    """What must not be found again: a text with two rare words in it, a hash, or a vector."""

    kind: str
    text: str = ""
    words: tuple[str, ...] = ()
    digest: str = ""
    vector: tuple[float, ...] = ()


Piece: TypeAlias = tuple[str, str, bytes]
"""Kind of the needle, spelling, bytes."""


@dataclass(frozen=True)
class Hit:
    """One piece of a needle in one file. `offset` counts in the file, or in the member of it that was opened."""

    kind: str
    file: str
    spelling: str
    offset: int

    def __str__(self) -> str:
        return f"{self.kind}: {self.file} at {self.offset} ({self.spelling})"


def letters(seed: str, length: int = 13) -> str:
    """A word that no language has and that no other seed gives."""
    chance = random.Random(f"word {seed}")
    return "".join(chance.choice("bcdfghjklmnpqrstvwxz") for _ in range(length))


def make_needle(kind: str) -> Needle:
    """The needle of an artifact kind. Everything in it is its own."""
    first, last = letters(f"{kind} first"), letters(f"{kind} last")
    chance = random.Random(f"numbers {kind}")
    return Needle(
        kind=kind,
        text=f'the {first} of Zoë hums "quietly" at noon near the {last}',
        words=(first, last),
        digest=chance.randbytes(32).hex(),
        vector=tuple(struct.unpack("<16f", struct.pack("<16f", *(chance.uniform(-1, 1) for _ in range(16))))),
    )


def pieces(needle: Needle) -> Iterator[tuple[str, bytes]]:
    """Everything whose presence means that the needle, or a telling part of it, is there."""
    if needle.text:
        half = len(needle.text) // 2
        for name, text in (("text", needle.text), ("first half", needle.text[:half]), ("end", needle.text[half:])):
            yield from spelled(name, text)
    for word in needle.words:
        yield from spelled("word", word[-TAIL:])
    if needle.digest:
        for at in range(0, len(needle.digest) - 19, 20):
            yield "digest", needle.digest[at : at + 20].encode()
        yield "digest in bytes", bytes.fromhex(needle.digest)[:16]
    for name, code, width in (("f32", "f", 4), ("f64", "d", 8)):
        whole = struct.pack(f"<{len(needle.vector)}{code}", *needle.vector)
        for at in range(0, len(whole) - width * 4 + 1, width * 4):
            yield name, whole[at : at + width * 4]


def spelled(name: str, text: str) -> Iterator[tuple[str, bytes]]:
    """A text in the spellings in which files store one."""
    plain = text.encode()
    forms = {
        "utf-8": plain,
        "utf-16le": text.encode("utf-16-le"),
        "utf-16be": text.encode("utf-16-be"),
        "json": json.dumps(text, ensure_ascii=False)[1:-1].encode(),
        "json, ascii": json.dumps(text)[1:-1].encode(),
        "json in json": json.dumps(json.dumps(text, ensure_ascii=False), ensure_ascii=False)[3:-3].encode(),
    }
    forms["json in json, ascii"] = json.dumps(json.dumps(text))[3:-3].encode()
    for shift in range(3):
        coded = base64.b64encode(bytes(shift) + plain)
        inside = coded[(shift * 8 + 5) // 6 : (shift + len(plain)) * 8 // 6]
        forms[f"base64 at {shift}"] = inside
        forms[f"url base64 at {shift}"] = inside.translate(bytes.maketrans(b"+/", b"-_"))
    done: set[bytes] = set()
    for form, data in forms.items():
        if data not in done:
            done.add(data)
            yield f"{name}, {form}", data


def members(data: bytes) -> Iterator[bytes]:
    """What is inside gzip, zlib and stored zstd members, wherever in the bytes they begin."""
    for magic, bits in ((b"\x1f\x8b\x08", 31), (b"\x78\x01", 15), (b"\x78\x9c", 15), (b"\x78\xda", 15)):
        at = data.find(magic)
        while at >= 0:
            opener = zlib.decompressobj(bits)
            try:
                inside = opener.decompress(memoryview(data)[at : at + LIMIT], LIMIT)
            except zlib.error:
                inside = b""
            if inside:
                yield inside
            at = data.find(magic, at + 1)


def files_below(roots: Iterable[Path]) -> Iterator[Path]:
    """Every regular file, each once; links are not followed."""
    seen: set[tuple[int, int]] = set()
    for root in roots:
        for folder, _, names in sorted(os.walk(root)):
            for name in sorted(names):
                path = Path(folder) / name
                info = path.lstat()
                if stat.S_ISREG(info.st_mode) and (info.st_dev, info.st_ino) not in seen:
                    seen.add((info.st_dev, info.st_ino))
                    yield path


def search(name: str, data: bytes, wanted: list[Piece], depth: int = 0) -> Iterator[Hit]:
    """All pieces in some bytes and in the members within: the first place of each."""
    for kind, spelling, piece in wanted:
        at = data.find(piece)
        if at >= 0:
            yield Hit(kind, name, spelling, at)
    if depth < DEEP:
        for number, inside in enumerate(members(data)):
            yield from search(f"{name} (member {number})", inside, wanted, depth + 1)


def scan(roots: Iterable[Path], needles: Iterable[Needle]) -> list[Hit]:
    """Every place in every file below the roots that holds a piece of a needle."""
    return look(roots, pieces_of(needles))


def pieces_of(needles: Iterable[Needle]) -> list[Piece]:
    """The pieces of all needles."""
    return [(needle.kind, name, piece) for needle in needles for name, piece in pieces(needle)]


def look(roots: Iterable[Path], wanted: list[Piece]) -> list[Hit]:
    """Every place in every file below the roots that holds one of these pieces."""
    return [hit for path in files_below(roots) for hit in search(str(path), path.read_bytes(), wanted)]


def present(roots: Iterable[Path], needles: Iterable[Needle]) -> list[Piece]:
    """Those pieces of the needles that some file holds: what can be left of them by a program that only removes."""
    found = {(hit.kind, hit.spelling) for hit in scan(roots, needles)}
    return [piece for piece in pieces_of(needles) if piece[:2] in found]


def told(hits: Iterable[Hit], limit: int = 12) -> str:
    """Hits for the message of a failure."""
    found = list(hits)
    counted = Counter((hit.kind, hit.file.rsplit("/", 1)[-1]) for hit in found)
    lines = [f"{count} of {kind!r} in {file}" for (kind, file), count in counted.most_common(limit)]
    return "\n".join([f"{len(found)} pieces found", *lines, *map(str, found[:3])])


def occurrences(data: bytes, piece: bytes) -> list[int]:
    """Every offset of a piece."""
    found: list[int] = []
    at = data.find(piece)
    while at >= 0:
        found.append(at)
        at = data.find(piece, at + 1)
    return found
