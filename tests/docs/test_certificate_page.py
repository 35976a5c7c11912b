"""What docs/certificate.md tells a third party to run holds for a certificate, and not for an altered one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from cenotaph.certificate import Reason, check_predicate, sign
from certificates import KEY, SUBJECTS, predicate

PAGE = (Path(__file__).parents[2] / "docs" / "certificate.md").read_text(encoding="utf-8")
BLOCK = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")
def test_a_third_party_can_check_the_signature(tmp_path: Path) -> None:
    public = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "erasure.pem.pub").write_bytes(public)
    altered = predicate()
    altered["counts"]["backups"] += 1
    held, other = sign(predicate(), SUBJECTS, KEY), sign(altered, SUBJECTS, KEY)
    signature = re.compile(rb'"sig":"[^"]*"')
    forged = signature.sub(signature.findall(held)[0], other)
    for data, status in ((held, 0), (forged, 1)):
        (tmp_path / "erasure.json").write_bytes(data)
        done = subprocess.run(["bash", "-c", BLOCK], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr


def test_every_member_and_reason_is_told_of() -> None:
    said = predicate()
    check_predicate(said)
    assert [name for name in said if f"`{name}`" not in PAGE] == []
    assert [reason for reason in Reason.__args__ if f"`{reason}`" not in PAGE] == []
