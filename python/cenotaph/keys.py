"""Key files of certificates: Ed25519, PEM, the private one readable by its owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from cenotaph.errors import KeyUnusable
from cenotaph.new_file import write_new

_OWNER_ONLY = 0o600
_READABLE = 0o644


def new_key_pair(path: str | os.PathLike[str]) -> Ed25519PrivateKey:
    """Makes a key pair: the private key at `path`, mode 0600, the public one at `path`.pub, mode 0644; both PEM.

    Raises `KeyUnusable` when one of the files is there; nothing is ever overwritten. Raises `OSError`.
    """
    private_file = Path(path)
    public_file = Path(f"{private_file}.pub")
    key = Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    _create(private_file, private, _OWNER_ONLY)
    try:
        _create(public_file, public, _READABLE)
    except BaseException:
        private_file.unlink()
        raise
    return key


def load_private_key(path: str | os.PathLike[str]) -> Ed25519PrivateKey:
    """The private key in a PEM file. Raises `KeyUnusable`, also when others than the owner can read it; `OSError`."""
    key = _loaded(Path(path))
    if isinstance(key, Ed25519PublicKey):
        raise KeyUnusable(f"{path} holds a public key; signing needs the private one.")
    return key


def load_public_key(path: str | os.PathLike[str]) -> Ed25519PublicKey:
    """The public key in a PEM file, which may also hold the private one. Raises `KeyUnusable`, `OSError`."""
    key = _loaded(Path(path))
    return key if isinstance(key, Ed25519PublicKey) else key.public_key()


def _create(path: Path, data: bytes, mode: int) -> None:
    try:
        write_new(path, data, mode)
    except FileExistsError:
        raise KeyUnusable(f"{path} is already there, and a key is never overwritten; choose another name.") from None


def _loaded(path: Path) -> Ed25519PrivateKey | Ed25519PublicKey:
    with path.open("rb") as file:
        data = file.read(1 << 16)
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    is_private = b"PRIVATE KEY-----" in data
    if is_private and mode & 0o077:
        raise KeyUnusable(f"{path} can be read by others (mode {mode:04o}); run: chmod 600 {path}")
    try:
        key = (
            serialization.load_pem_private_key(data, password=None)
            if is_private
            else serialization.load_pem_public_key(data)
        )
    except TypeError:
        raise KeyUnusable(f"{path} is encrypted; a key without a password is needed.") from None
    except (ValueError, UnsupportedAlgorithm):
        raise KeyUnusable(f"{path} is not a PEM file of a key.") from None
    if not isinstance(key, Ed25519PrivateKey | Ed25519PublicKey):
        raise KeyUnusable(f"{path} holds a key of another kind; an Ed25519 key is needed.")
    return key
