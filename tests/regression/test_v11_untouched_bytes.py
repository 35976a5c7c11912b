"""V11: bytes outside removed lines are the same, whatever they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scene import SECRET, TARGET, own, play
from state_maker import CORPUS, StateMaker, corpus_line, marker

E = marker("gone:e").encode()
Q = f"> {SECRET}".encode()

FILES = {
    "invalid utf-8": (b"\xff\xfe caf\xe9\n" + Q + b"\n\xc3(\n", b"\xff\xfe caf\xe9\n\xc3(\n"),
    "invalid utf-8 in the removed line": (b"a\n\xff" + Q + b"\xfe\nb\n", b"a\nb\n"),
    "carriage returns": (b"a\r\n" + Q + b"\r\nb\r\n", b"a\r\nb\r\n"),
    "mixed line ends": (b"a\r\nb\n" + Q + b"\nc\r\nd\re\n", b"a\r\nb\nc\r\nd\re\n"),
    "byte order mark": (b"\xef\xbb\xbfa\n" + Q + b"\nb\n", b"\xef\xbb\xbfa\nb\n"),
    "no newline at the end": (b"a\n" + Q + b"\nb", b"a\nb"),
    "last line without newline": (b"a\nb\n" + Q, b"a\nb\n"),
    "last line with newline": (b"a\nb\n" + Q + b"\n", b"a\nb\n"),
    "last line after a carriage return": (b"a\r\n" + Q, b"a\r\n"),
    "only line": (Q, b""),
    "blanks at line ends": (b"a  \n" + Q + b"\n\t\nb \n", b"a  \n\t\nb \n"),
    "nul and control bytes": (b"a\0b\x1b\n" + Q + b"\n\x0c\x0b\n", b"a\0b\x1b\n\x0c\x0b\n"),
    "entry at the end": (b"keep\n" + E + b"\n- entry", b"keep\n"),
    "marker at the end": (b"keep\n" + E, b"keep\n"),
    "section at the end": (f"keep\n\n## Session sessions/main/{TARGET}\nx".encode(), b"keep\n\n"),
    "decomposed text": ("cafe\u0301\n".encode() + Q + b"\n", "cafe\u0301\n".encode()),
}


@pytest.mark.parametrize(("before", "after"), FILES.values(), ids=FILES.keys())
def test_v11_the_rest_is_the_same(
    maker: StateMaker, forget: Callable[..., dict[str, Any]], before: bytes, after: bytes
) -> None:
    own(play(maker, {"memory/note.md": before}), ["gone:e"]).seal()
    forget(maker.state, sessions=[TARGET])
    assert maker.read("memory/note.md") == after


def test_v11_files_without_a_match_are_not_written(maker: StateMaker, forget: Callable[..., dict[str, Any]]) -> None:
    path = play(maker).file("memory/note.md", b"caf\xe9\r\nplain\n\0")
    stat = path.stat()
    forget(maker.seal().state, sessions=[TARGET])
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns)


def test_v11_corpus_files_alike(maker: StateMaker, forget: Callable[..., dict[str, Any]]) -> None:
    own_line = corpus_line(TARGET, 4, "User: one more thing of that session").encode()
    other = corpus_line("s-survivor", 4, "User: a caf\u00e9 of the other one").encode()[:-3] + b"\xe9\r\n"
    play(maker).file(f"{CORPUS}/2026-11-21.txt", other + own_line)
    forget(maker.seal().state, sessions=[TARGET])
    assert maker.read(f"{CORPUS}/2026-11-21.txt") == other


def test_v11_the_mode_of_a_rewritten_file_stays(maker: StateMaker, forget: Callable[..., dict[str, Any]]) -> None:
    path = play(maker).file("memory/note.md", b"a\n" + Q + b"\n")
    path.chmod(0o444)
    forget(maker.seal().state, sessions=[TARGET])
    assert path.read_bytes() == b"a\n"
    assert path.stat().st_mode & 0o777 == 0o444
