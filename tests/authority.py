"""A time stamp authority (RFC 3161) of `openssl`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import NameOID

SIGNS = x509.KeyUsage(*[True] + [False] * 8)
CONFIG = """\
[tsa]
default_tsa = it
[it]
serial = serial
default_policy = 1.2.3.4
digests = sha256, sha384
signer_digest = sha256
ess_cert_id_alg = sha256
[ca]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
[stamping]
extendedKeyUsage = critical,timeStamping
keyUsage = critical,digitalSignature
[req]
distinguished_name = name
[name]
"""


class Authority:
    """A certificate authority and a time stamp authority below it."""

    def __init__(self, folder: Path, name: str = "one") -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "conf").write_text(CONFIG, encoding="utf-8")
        new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", "conf")
        self.openssl(
            "req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", f"/CN={name}", "-extensions", "ca"
        )  # fmt: skip
        self.openssl("req", *new, "-keyout", "tsa.key", "-out", "tsa.csr", "-subj", f"/CN=stamps of {name}")
        self.openssl(
            "x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "2",
            "-out", "tsa.pem", "-extfile", "conf", "-extensions", "stamping",
        )  # fmt: skip

    def openssl(self, *words: str) -> None:
        done = subprocess.run(["openssl", *words], cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def answer(self, asked: bytes) -> bytes:
        (self.folder / "q").write_bytes(asked)
        self.openssl(
            "ts", "-reply", "-config", "conf", "-section", "it", "-queryfile", "q", "-signer", "tsa.pem", "-inkey",
            "tsa.key", "-out", "r",
        )  # fmt: skip
        return (self.folder / "r").read_bytes()

    def certify_again(self, proper: x509.Certificate, usage: x509.ExtendedKeyUsage, *, critical: bool) -> bytes:
        """Another certificate of the same key, number and length, DER. Lengths of signatures vary."""
        key = load_pem_private_key((self.folder / "ca.key").read_bytes(), None)
        assert isinstance(key, EllipticCurvePrivateKey)
        for length in range(1, 1000):
            words = ((NameOID.COMMON_NAME, "x" * 40), (NameOID.ORGANIZATION_NAME, "x" * (length % 60 + 1)))
            name = x509.Name([x509.NameAttribute(kind, word) for kind, word in words])
            made = (
                x509.CertificateBuilder(proper.issuer, name, proper.public_key(), proper.serial_number)
                .not_valid_before(proper.not_valid_before_utc)
                .not_valid_after(proper.not_valid_after_utc)
                .add_extension(usage, critical=critical)
                .add_extension(SIGNS, critical=True)
                .sign(key, SHA256())
                .public_bytes(Encoding.DER)
            )
            if len(made) == len(proper.public_bytes(Encoding.DER)):
                return made
        raise AssertionError("no certificate of that length")

    @property
    def trusted(self) -> bytes:
        return (self.folder / "ca.pem").read_bytes()
