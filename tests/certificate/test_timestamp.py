"""Time stamps (RFC 3161) by the real `openssl ts`."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from authority import Authority
from cenotaph.certificate import sign
from cenotaph.errors import CenotaphError
from cenotaph.timestamp import TimestampRefused, check, query
from certificates import KEY, SUBJECTS, predicate
from conftest import CommandLine, Done

CERTIFICATE = sign(predicate(), SUBJECTS, KEY)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    return Authority(tmp_path_factory.mktemp("authority") / "one")


@pytest.fixture(scope="module")
def asked() -> bytes:
    return query(CERTIFICATE)


@pytest.fixture(scope="module")
def response(authority: Authority, asked: bytes) -> bytes:
    return authority.answer(asked)


def test_a_stamp_holds(authority: Authority, asked: bytes, response: bytes) -> None:
    moment = check(response, CERTIFICATE, authority.trusted, asked)
    assert check(response, CERTIFICATE, authority.trusted) == moment
    assert moment.tzinfo is not None
    assert abs(datetime.now(UTC) - moment) < timedelta(hours=1)


def test_openssl_reads_the_query(authority: Authority, asked: bytes) -> None:
    (authority.folder / "read").write_bytes(asked)
    done = subprocess.run(
        ("openssl", "ts", "-query", "-in", "read", "-text"), cwd=authority.folder, capture_output=True, check=True
    )
    text = done.stdout.decode()
    assert "Hash Algorithm: sha256" in text
    assert "Certificate required: yes" in text
    dump = re.findall(r"    [0-9a-f]{4} - ([0-9a-f -]{47})", text)
    assert re.sub(r"[ -]", "", "".join(dump)) == hashlib.sha256(CERTIFICATE).hexdigest()
    assert query(CERTIFICATE) != query(CERTIFICATE), "the nonce"


def test_openssl_agrees_that_it_holds(authority: Authority, asked: bytes, response: bytes) -> None:
    (authority.folder / "cert").write_bytes(CERTIFICATE)
    (authority.folder / "held").write_bytes(response)
    authority.openssl("ts", "-verify", "-data", "cert", "-in", "held", "-CAfile", "ca.pem")


def refuses(
    message: str, response: bytes, trusted: bytes, asked: bytes | None = None, data: bytes = CERTIFICATE
) -> None:
    with pytest.raises(TimestampRefused, match=message) as caught:
        check(response, data, trusted, asked)
    assert re.fullmatch(r"The [^\n]*[^.]\.", str(caught.value))


def test_another_certificate_file(authority: Authority, asked: bytes, response: bytes) -> None:
    other = CERTIFICATE.replace(b"a", b"b", 1)
    refuses("is for another file", response, authority.trusted, data=other)
    refuses("query is about another file", response, authority.trusted, asked, data=other)


def test_another_hash_of_the_same_file(authority: Authority) -> None:
    """The promise is SHA-256."""
    (authority.folder / "cert").write_bytes(CERTIFICATE)
    authority.openssl("ts", "-query", "-data", "cert", "-sha384", "-cert", "-out", "q384")
    other = authority.answer((authority.folder / "q384").read_bytes())
    refuses("is for another file", other, authority.trusted)


def test_another_query_of_the_same_file(authority: Authority, response: bytes) -> None:
    refuses("nonce is another one", response, authority.trusted, query(CERTIFICATE))


def test_a_stamp_without_nonce_answers_no_query_of_ours(authority: Authority, asked: bytes) -> None:
    (authority.folder / "cert").write_bytes(CERTIFICATE)
    authority.openssl("ts", "-query", "-data", "cert", "-sha256", "-cert", "-no_nonce", "-out", "plain")
    plain = authority.answer((authority.folder / "plain").read_bytes())
    refuses("nonce is another one", plain, authority.trusted, asked)
    check(plain, CERTIFICATE, authority.trusted)


@pytest.mark.parametrize("name", ["one", "two"])
def test_an_authority_that_is_not_trusted(authority: Authority, response: bytes, tmp_path: Path, name: str) -> None:
    """Also one that bears the same name."""
    other = Authority(tmp_path / "other", name=name)
    refuses("does not hold: [a-z ]+", response, other.trusted)
    check(response, CERTIFICATE, other.trusted + authority.trusted)


STAMP = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING])
SERVE = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])


@pytest.mark.parametrize(("usage", "critical"), [(SERVE, True), (STAMP, False)], ids=["for servers", "not critical"])
def test_a_signer_that_must_not_stamp(
    authority: Authority, response: bytes, usage: x509.ExtendedKeyUsage, critical: bool
) -> None:
    """`openssl ts` does not sign so: the same key and number under a certificate that may not, beside one that may."""
    proper = x509.load_pem_x509_certificate((authority.folder / "tsa.pem").read_bytes())
    der = proper.public_bytes(Encoding.DER)
    assert response.count(der) == 1
    check(response.replace(der, authority.certify_again(proper, STAMP, critical=True)), CERTIFICATE, authority.trusted)
    bad = response.replace(der, authority.certify_again(proper, usage, critical=critical))
    refuses("does not hold: (unsuitable certificate purpose|The EKU extension is not critical)", bad, authority.trusted)


def test_a_refused_query(authority: Authority) -> None:
    (authority.folder / "cert").write_bytes(CERTIFICATE)
    authority.openssl("ts", "-query", "-data", "cert", "-sha512", "-cert", "-out", "q512")
    refuses(
        "granted no time stamp: its status is 2",
        authority.answer((authority.folder / "q512").read_bytes()),
        authority.trusted,
    )


def test_a_response_altered_in_any_one_byte_is_refused_or_says_the_same(
    authority: Authority, asked: bytes, response: bytes
) -> None:
    """Some bytes are not signed: nothing that is said hangs on them."""
    said = check(response, CERTIFICATE, authority.trusted, asked)
    refusals = 0
    for position in range(len(response)):
        for bit in (1, 128):
            other = response[:position] + bytes([response[position] ^ bit]) + response[position + 1 :]
            try:
                assert check(other, CERTIFICATE, authority.trusted, asked) == said
            except TimestampRefused:
                refusals += 1
    assert refusals > len(response)


@pytest.mark.parametrize("garbage", [b"", b"text", b"\x30\x80", bytes(100)])
def test_garbage(authority: Authority, asked: bytes, response: bytes, garbage: bytes) -> None:
    refuses("not a time stamp response after RFC 3161", garbage, authority.trusted, asked)
    refuses("not a time stamp response after RFC 3161", response[:-10] + garbage[:5], authority.trusted, asked)
    with pytest.raises(CenotaphError, match="query is not a time stamp query"):
        check(response, CERTIFICATE, authority.trusted, garbage)
    with pytest.raises(CenotaphError, match="give them as PEM"):
        check(response, CERTIFICATE, garbage, asked)


# -- the commands -----------------------------------------------------------------------------


def run(cli: CommandLine, folder: Path, *words: str) -> Done:
    command = [*cli.command, "certificate", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=cli.environment())
    return Done(done.returncode, done.stdout, done.stderr)


def test_the_commands(cli: CommandLine, authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(CERTIFICATE)
    assert run(cli, tmp_path, "timestamp", "c", "--out", "c.tsq") == Done(0, "Query: c.tsq\n", "")
    again = run(cli, tmp_path, "timestamp", "c", "--out", "c.tsq")
    assert again.status == 1
    assert "No query was written: c.tsq: File exists" in again.err
    (tmp_path / "c.tsr").write_bytes(authority.answer((tmp_path / "c.tsq").read_bytes()))
    (tmp_path / "ca").write_bytes(authority.trusted)
    words = ("timestamp-check", "c", "--response", "c.tsr", "--trust", "ca")
    for more in ((), ("--query", "c.tsq")):
        done = run(cli, tmp_path, *words, *more)
        assert (done.status, done.err) == (0, "")
        assert re.fullmatch(r"Time stamp: this certificate was there at 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\n", done.out)
    (tmp_path / "c").write_bytes(CERTIFICATE + b" ")
    done = run(cli, tmp_path, *words)
    assert (done.status, done.out) == (3, "")
    assert done.err == "[cenotaph] Time stamp refused: The time stamp is for another file than this certificate.\n"
    done = run(cli, tmp_path, "timestamp-check", "c", "--response", "no", "--trust", "ca")
    assert done.status == 1
    assert "The time stamp cannot be checked: no: No such file" in done.err


def test_without_the_extra(tmp_path: Path) -> None:
    (tmp_path / "rfc3161_client.py").write_text("raise ImportError\n", encoding="utf-8")
    program = "import cenotaph.timestamp as t; t.query(b'x')"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "CenotaphError: Time stamps need the package rfc3161-client; install it with: pip install" in done.stderr
