"""What README.md and docs/certificate.md tell to run works: for a certificate, and not for an altered one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from authority import Authority
from cenotaph.certificate import Reason, check_predicate, sign
from certificates import KEY, SUBJECTS, predicate
from conftest import CommandLine
from scene import SECRET, TARGET, play
from state_maker import StateMaker

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "certificate.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK, STAMPING, CHECKING = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


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


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")
def test_a_time_stamp(tmp_path: Path) -> None:
    """As it stands on the page; `curl` is a stand-in that asks the authority beside it, and no network."""
    here, tools = Authority(tmp_path / "tsa").folder, with_cenotaph(tmp_path / "bin")
    program(
        tools / "curl",
        f"""while [ $# -gt 1 ]; do
  case "$1" in --data-binary) asked="$PWD/${{2#@}}" ;; --output) out="$PWD/$2" ;; esac
  shift
done
[ "$1" = https://tsa.example ] && cd "{here}" &&
openssl ts -reply -config conf -section it -queryfile "$asked" -signer tsa.pem -inkey tsa.key -out "$out"
""",
    )
    (tmp_path / "erasure.json").write_bytes(sign(predicate(), SUBJECTS, KEY))
    shutil.copy(here / "ca.pem", tmp_path)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "TSA": "https://tsa.example"}
    for block, said in ((STAMPING, "Time stamp: this certificate was there at 20"), (CHECKING, "Verification: OK")):
        done = subprocess.run(
            ["bash", "-e", "-c", block], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert said in done.stdout


def test_from_keys_to_the_page(maker: StateMaker, cli: CommandLine, tmp_path: Path) -> None:
    play(maker, {"MEMORY.md": f"> {SECRET}\n"}).session(TARGET, participants=[({"type": "profile"}, "anna")])
    maker.seal()
    (tmp_path / ".openclaw").symlink_to(maker.state)
    (block,) = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    path = f"{with_cenotaph(tmp_path / 'bin')}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", block], cwd=tmp_path, env=cli.environment({"HOME": str(tmp_path), "PATH": path}),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "State directory: holds the receipt" in done.stdout
    assert "The erasure is complete." in (tmp_path / "anna.html").read_text(encoding="utf-8")


def with_cenotaph(folder: Path) -> Path:
    folder.mkdir()
    program(folder / "cenotaph", f'exec "{sys.executable}" -m cenotaph "$@"')
    return folder


def program(path: Path, lines: str) -> None:
    path.write_text(f"#!/bin/sh\n{lines}\n", encoding="utf-8")
    path.chmod(0o755)


def test_every_member_and_reason_is_told_of() -> None:
    said = predicate()
    check_predicate(said)
    assert [name for name in said if f"`{name}`" not in PAGE] == []
    assert [reason for reason in Reason.__args__ if f"`{reason}`" not in PAGE] == []
