"""Key files: private, never overwritten, and of the right kind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from cenotaph.certificate import key_id
from cenotaph.errors import KeyUnusable
from cenotaph.keys import load_private_key, load_public_key, new_key_pair

CLEAR = NoEncryption()

FIXED = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def private_file(path: Path, data: bytes, bits: int = 0o600) -> Path:
    path.write_bytes(data)
    path.chmod(bits)
    return path


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_a_new_pair_has_the_right_modes_under_any_mask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        key = new_key_pair(tmp_path / "key")
    finally:
        os.umask(before)
    assert (mode(tmp_path / "key"), mode(tmp_path / "key.pub")) == (0o600, 0o644)
    assert load_private_key(tmp_path / "key").private_bytes_raw() == key.private_bytes_raw()
    expected = key_id(key.public_key())
    assert key_id(load_public_key(tmp_path / "key.pub")) == key_id(load_public_key(tmp_path / "key")) == expected


def test_openssl_reads_both_files(tmp_path: Path) -> None:
    new_key_pair(tmp_path / "key")
    derived = subprocess.run(
        ("openssl", "pkey", "-in", "key", "-pubout"), cwd=tmp_path, check=True, capture_output=True
    ).stdout
    assert derived == (tmp_path / "key.pub").read_bytes()


@pytest.mark.parametrize("there", ["key", "key.pub"])
def test_no_key_is_overwritten(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("precious")
    with pytest.raises(KeyUnusable, match=f"{there} is already there"):
        new_key_pair(tmp_path / "key")
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "precious"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KeyUnusable, match="is already there"):
        new_key_pair(tmp_path / "key")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o660, 0o601, 0o644])
def test_a_private_key_that_others_can_reach_is_not_used(tmp_path: Path, bits: int) -> None:
    new_key_pair(tmp_path / "key")
    (tmp_path / "key").chmod(bits)
    for load in (load_private_key, load_public_key):
        with pytest.raises(KeyUnusable, match=f"can be read by others .mode {bits:04o}.; run: chmod 600"):
            load(tmp_path / "key")


def test_a_public_key_signs_nothing(tmp_path: Path) -> None:
    new_key_pair(tmp_path / "key")
    with pytest.raises(KeyUnusable, match="holds a public key; signing needs the private one"):
        load_private_key(tmp_path / "key.pub")


def test_keys_of_another_kind(tmp_path: Path) -> None:
    for number, key in enumerate((rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1()))):
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, CLEAR)
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        for data in (private, public):
            with pytest.raises(KeyUnusable, match="another kind; an Ed25519 key is needed"):
                load_public_key(private_file(tmp_path / str(number), data))


def test_an_encrypted_key(tmp_path: Path) -> None:
    data = FIXED.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word"))
    with pytest.raises(KeyUnusable, match="is encrypted"):
        load_private_key(private_file(tmp_path / "key", data))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        bytes(32),
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        FIXED.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, CLEAR),
        FIXED.private_bytes(Encoding.DER, PrivateFormat.PKCS8, CLEAR),
    ],
)
def test_garbage(tmp_path: Path, data: bytes) -> None:
    for load in (load_private_key, load_public_key):
        with pytest.raises(KeyUnusable, match="is not a PEM file of a key"):
            load(private_file(tmp_path / "key", data))


def test_a_full_disk_leaves_no_half_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        new_key_pair(tmp_path / "key")
    assert list(tmp_path.iterdir()) == []
