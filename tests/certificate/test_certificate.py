"""Signing and checking: what is refused, and for which reason."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from cenotaph.certificate import (
    PAYLOAD_TYPE,
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    CertificateInvalid,
    Reason,
    canonical,
    key_id,
    sign,
    signed_bytes,
    statement,
    verify,
)
from certificates import KEY, OTHER_KEY, SUBJECTS, predicate

PUBLIC = KEY.public_key()
SIGNED = sign(predicate(), SUBJECTS, KEY)
MODULE = Path(__file__).parents[2] / "python" / "cenotaph" / "certificate.py"


def reason(envelope: bytes) -> Reason:
    with pytest.raises(CertificateInvalid) as caught:
        verify(envelope, PUBLIC)
    assert re.fullmatch(r"The [^\n]*[^.]\.", str(caught.value)), "one sentence"
    return caught.value.reason


def envelope_of(payload: bytes, payload_type: str = PAYLOAD_TYPE, **more: object) -> bytes:
    """A well-signed envelope around any payload."""
    code = KEY.sign(signed_bytes(payload_type, payload))
    signature = {"keyid": key_id(PUBLIC), "sig": base64.b64encode(code).decode()}
    envelope = {"payload": base64.b64encode(payload).decode(), "payloadType": payload_type, "signatures": [signature]}
    return canonical(envelope | more) + b"\n"


def statement_with(**changed: object) -> bytes:
    whole: dict[str, object] = {**statement(SIGNED, PUBLIC)}
    return canonical(whole | changed)


def respelled(change: Callable[[dict[str, Any]], object]) -> bytes:
    """The signed envelope after a change, in canonical spelling."""
    envelope = json.loads(SIGNED)
    change(envelope)
    return canonical(envelope) + b"\n"


def test_what_was_signed_is_read_back() -> None:
    assert verify(SIGNED, PUBLIC) == predicate()
    whole = statement(SIGNED, PUBLIC)
    assert (whole["_type"], whole["predicateType"]) == (STATEMENT_TYPE, PREDICATE_TYPE)
    assert whole["subject"] == [{"name": "receipt chain", "digest": {"sha256": "22" * 32}}]


def test_the_encoding_that_is_signed_is_that_of_dsse() -> None:
    """The test vector of the DSSE v1 specification."""
    assert signed_bytes("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert signed_bytes("é", b"") == "DSSEv1 2 é 0 ".encode()


def test_openssl_agrees(tmp_path: Path) -> None:
    """Another implementation finds the signature good, and the key's id."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    envelope = json.loads(SIGNED)
    payload = base64.b64decode(envelope["payload"])
    (tmp_path / "key").write_bytes(PUBLIC.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    (tmp_path / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    (tmp_path / "signed").write_bytes(
        b"DSSEv1 28 application/vnd.in-toto+json " + str(len(payload)).encode() + b" " + payload
    )
    openssl = ("openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "key", "-rawin", "-in", "signed", "-sigfile", "sig")
    subprocess.run(openssl, cwd=tmp_path, check=True, capture_output=True)
    der = subprocess.run(
        ("openssl", "pkey", "-pubin", "-in", "key", "-outform", "DER"), cwd=tmp_path, check=True, capture_output=True
    ).stdout
    (tmp_path / "der").write_bytes(der)
    digest = subprocess.run(
        ("openssl", "dgst", "-sha256", "-r", "der"), cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert envelope["signatures"][0]["keyid"] == digest.split()[0]


# -- every byte counts ------------------------------------------------------------------------


def altered(data: bytes, position: int) -> Iterator[bytes]:
    """Ways to alter one byte: each bit, other characters, gone, doubled, something before it."""
    before, byte, after = data[:position], data[position], data[position + 1 :]
    others = {byte ^ 1 << bit for bit in range(8)} | set(b'A/=+ "}0\n\\\x00') - {byte}
    yield from (before + bytes([other]) + after for other in others)
    yield before + after
    yield before + bytes([byte, byte]) + after
    yield from (before + bytes([other, byte]) + after for other in b" \n0,")
    yield before


def test_a_certificate_altered_in_any_one_byte_is_refused() -> None:
    seen: set[Reason] = set()
    for position in range(len(SIGNED)):
        for other in altered(SIGNED, position):
            assert other != SIGNED
            try:
                verify(other, PUBLIC)
            except CertificateInvalid as refusal:
                seen.add(refusal.reason)
            else:
                pytest.fail(f"altered at {position} and accepted")
    assert seen == {"malformed", "not-canonical", "payload-type", "signature"}


@pytest.mark.parametrize("tail", [b"\n", b" ", b"{}", b"\0", SIGNED])
def test_nothing_may_stand_after_it(tail: bytes) -> None:
    assert reason(SIGNED + tail) in {"malformed", "not-canonical"}


# -- each fault its own reason ----------------------------------------------------------------


def test_another_key() -> None:
    assert reason(sign(predicate(), SUBJECTS, OTHER_KEY)) == "other-key"


def test_another_key_that_bears_the_name_of_the_right_one() -> None:
    theirs = json.loads(sign(predicate(), SUBJECTS, OTHER_KEY))
    assert reason(respelled(lambda whole: whole["signatures"][0].update(sig=theirs["signatures"][0]["sig"]))) == (
        "signature"
    )


def test_only_the_name_of_the_key_was_altered() -> None:
    named = key_id(OTHER_KEY.public_key())
    assert reason(respelled(lambda whole: whole["signatures"][0].update(keyid=named))) == "signature"


def test_another_payload_under_the_same_signature() -> None:
    other = base64.b64encode(statement_with(subject=[])).decode()
    assert reason(respelled(lambda whole: whole.update(payload=other))) == "signature"


@pytest.mark.parametrize("payload_type", ["application/json", "", "Application/vnd.in-toto+json"])
def test_a_payload_of_another_type(payload_type: str) -> None:
    assert reason(envelope_of(statement_with(), payload_type)) == "payload-type"


def test_a_statement_about_something_else() -> None:
    other = statement_with(predicateType="https://slsa.dev/provenance/v1", predicate={"any": "thing"})
    assert reason(envelope_of(other)) == "predicate-type"


@pytest.mark.parametrize(
    "payload",
    [
        statement_with(_type="https://in-toto.io/Statement/v0.1"),
        statement_with(subject=[]),
        statement_with(subject=[{"name": "a", "digest": {"sha1": "22" * 20}}]),
        statement_with(subject=[{"name": "a", "digest": {"sha256": "22"}}]),
        statement_with(predicate={}),
        statement_with(predicate=None),
        statement_with(more=1),
        b"[]",
        b"null",
        b"{}",
    ],
)
def test_a_signed_payload_that_is_no_erasure_statement(payload: bytes) -> None:
    assert reason(envelope_of(payload)) == "schema"


@pytest.mark.parametrize(
    "payload", [json.dumps(json.loads(statement_with())).encode(), statement_with() + b"\n", b'{"a":1,"a":1}', b"1.5"]
)
def test_a_signed_payload_in_another_spelling(payload: bytes) -> None:
    assert reason(envelope_of(payload)) == "not-canonical"


@pytest.mark.parametrize("payload", [b"", b"text", b"\xff", b"[" * 100_000, b'{"a":' * 100_000])
def test_a_signed_payload_that_is_no_json(payload: bytes) -> None:
    assert reason(envelope_of(payload)) == "malformed"


@pytest.mark.parametrize(
    "file", [b"", b"\n", b"no json\n", b"null\n", b"[]\n", b"{}\n", b"\xff\n", b"[" * 100_000, b"\xef\xbb\xbf" + SIGNED]
)
def test_a_file_that_is_no_envelope(file: bytes) -> None:
    assert reason(file) == "malformed"


CHANGES: list[Callable[[dict[str, Any]], object]] = [
    lambda whole: whole.update(more=1),
    lambda whole: whole.pop("payload"),
    lambda whole: whole.update(payload=1),
    lambda whole: whole.update(payload="?"),
    lambda whole: whole.update(signatures=[]),
    lambda whole: whole.update(signatures=None),
    lambda whole: whole.update(signatures={}),
    lambda whole: whole["signatures"].append(whole["signatures"][0]),
    lambda whole: whole["signatures"][0].update(more=1),
    lambda whole: whole["signatures"][0].pop("keyid"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_an_envelope_of_another_shape(change: Callable[[dict[str, Any]], object]) -> None:
    assert reason(respelled(change)) == "malformed"


def test_an_envelope_in_another_spelling() -> None:
    assert reason(json.dumps(json.loads(SIGNED)).encode() + b"\n") == "not-canonical"
    assert reason(SIGNED.removesuffix(b"\n")) == "not-canonical"
    assert reason(SIGNED.replace(b"/vnd", b"\\/vnd")) == "not-canonical"
    assert reason(SIGNED[:-2] + b',"payloadType":"application/vnd.in-toto+json"}\n') == "not-canonical"


def test_base64_with_bits_that_nobody_reads() -> None:
    """64 bytes leave four bits over in the last digit: sixteen spellings say the same."""
    sig: str = json.loads(SIGNED)["signatures"][0]["sig"]
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    other = sig[:-3] + digits[digits.index(sig[-3]) + 1] + "=="
    assert base64.b64decode(other) == base64.b64decode(sig)
    assert reason(respelled(lambda whole: whole["signatures"][0].update(sig=other))) == "not-canonical"


@pytest.mark.parametrize("length", [0, 1, 63, 65])
def test_a_signature_of_another_length(length: int) -> None:
    code = base64.b64encode(bytes(length)).decode()
    assert reason(respelled(lambda whole: whole["signatures"][0].update(sig=code))) == "signature"


def test_what_is_no_predicate_is_not_signed() -> None:
    for wrong in ({**predicate(), "agent": "anna"}, {}, {**predicate(), "text": "what was said"}):
        with pytest.raises(CertificateInvalid, match="The certificate's predicate") as caught:
            sign(wrong, SUBJECTS, KEY)
        assert caught.value.reason == "schema"
    with pytest.raises(CertificateInvalid, match="The certificate's subject is not a list of one or more"):
        sign(predicate(), {}, KEY)


def test_a_refusal_repeats_nothing_of_the_file() -> None:
    canary = "a private name"
    for spoiled in (
        envelope_of(statement_with(predicate={**predicate(), "agent": canary})),
        envelope_of(statement_with(predicate={**predicate(), canary: 1})),
        envelope_of(statement_with(predicateType=canary)),
        envelope_of(statement_with(), canary),
        respelled(lambda whole: whole.update({canary: canary})),
    ):
        with pytest.raises(CertificateInvalid) as caught:
            verify(spoiled, PUBLIC)
        assert canary not in str(caught.value)


def test_every_reason_has_a_test() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert all(f'"{word}"' in tests for word in get_args(Reason))


def test_the_module_works_alone(tmp_path: Path) -> None:
    """A third party takes the one file."""
    shutil.copy(MODULE, tmp_path / "certificate.py")
    (tmp_path / "cert").write_bytes(SIGNED)
    (tmp_path / "key").write_bytes(PUBLIC.public_bytes_raw())
    program = (
        "import sys; before = set(sys.modules); sys.path.insert(0, sys.argv[1]); import pathlib, certificate;"
        "from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey;"
        "key = Ed25519PublicKey.from_public_bytes(pathlib.Path('key').read_bytes());"
        "print(certificate.verify(pathlib.Path('cert').read_bytes(), key)['createdAt']);"
        "new = {name.split('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    stamp, modules = done.stdout.splitlines()
    assert stamp == "2026-11-05T12:30:00.250Z"
    assert "cenotaph" not in modules
    assert set(json.loads(modules.replace("'", '"'))) <= {"_cffi_backend", "_openssl", "certificate", "cryptography"}
