"""Certificates to test with."""

from __future__ import annotations

from typing import cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cenotaph.certificate import Counts, Predicate, merkle_root

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
CHAIN = [(1, "11" * 32), (2, "22" * 32), (3, "33" * 32)]
SUBJECTS = {"receipt chain": "22" * 32}


def predicate() -> Predicate:
    """A full predicate: every kind of member is there."""
    return {
        "tool": {"name": "cenotaph", "version": "0.1.0"},
        "agent": "a0" * 32,
        "createdAt": "2026-11-05T12:30:00.250Z",
        "selectors": [
            {"kind": "session", "value": "b1" * 32},
            {"kind": "participant", "value": "b2" * 32},
            {"kind": "since", "value": "2026-11-01"},
        ],
        "sessions": ["c1" * 32, "c2" * 32],
        "keyId": "d1" * 8,
        "counts": cast("Counts", {name: index for index, name in enumerate(Counts.__annotations__)}),
        "methods": [
            {"artifact": "index rows", "method": "Clear", "technique": "cells zeroed by secure_delete"},
            {"artifact": "session transcripts", "method": "none", "technique": "kept by design"},
        ],
        "verification": {
            "result": "clean",
            "needles": 40,
            "sharedNeedles": 2,
            "files": 12,
            "bytes": 5_000_000_000,
            "databaseMethod": "freelist",
        },
        "kept": [{"what": "source transcripts", "count": 2}],
        "review": {"count": 0},
        "refusals": {"count": 1},
        "pending": ["wal"],
        "receipt": {"id": "r-2", "chain": {"seq": 2, "hash": "22" * 32}},
        "entries": {
            "before": {"count": 3, "root": merkle_root([b"a", b"b", b"c"])},
            "after": {"count": 2, "root": merkle_root([b"a", b"c"])},
            "altered": 0,
        },
        "fileSystems": [{"type": "ext4", "overwritten": "yes", "files": 3}],
    }
