"""`cenotaph keys` and `cenotaph certificate verify`, on certificates of real deletions."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from cenotaph.certificate import Counts, Predicate, Reason, key_id, sign
from cenotaph.keys import load_private_key, new_key_pair
from cenotaph.receipts import key_id as hash_key_id
from cenotaph.receipts import keyed
from certificates import predicate
from conftest import CommandLine, Done, PlainUser
from scene import SECRET, SURVIVOR, TARGET, play
from state_maker import StateMaker, database, snapshot


class Certified(NamedTuple):
    """A state directory after a deletion, and the certificate that tells of it."""

    maker: StateMaker
    file: Path
    key: Path
    said: Predicate


def run(cli: CommandLine, *words: str | Path) -> Done:
    """Without the global --state-dir."""
    command = [*cli.command, *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env=cli.environment({"HOME": "/nonexistent"})
    )
    return Done(done.returncode, done.stdout, done.stderr)


def certify(cli: CommandLine, maker: StateMaker, folder: Path, session: str = TARGET) -> Certified:
    """Forgets a session and signs what the receipt and the report say."""
    report = cli.forget(maker.state, "--session", session)
    (receipt,) = (
        each for each in cli(maker.state, "receipts", "list", "--json").json if each["id"] == report["receipt"]["id"]
    )
    hash_key = (maker.state / "cenotaph" / "receipts.key").read_bytes()
    last = receipt["links"][-1]
    assert (last["stage"], last["seq"]) == ("completed", report["receipt"]["chain"]["seq"])
    checked: dict[str, Any] = report["verification"]
    said: Predicate = {
        **predicate(),
        "agent": keyed(hash_key, "agent", "main"),
        "selectors": [{"kind": "session", "value": keyed(hash_key, "session", session)}],
        "sessions": [keyed(hash_key, "session", session)],
        "keyId": hash_key_id(hash_key),
        "counts": cast("Counts", report["artifacts"]),
        "verification": {
            "result": checked["result"],
            "needles": checked["needles"],
            "sharedNeedles": checked["sharedNeedles"],
            "files": checked["files"],
            "bytes": checked["bytes"],
            "databaseMethod": report["measured"]["database"],
        },
        "pending": [],
        "receipt": {"id": receipt["id"], "chain": {"seq": last["seq"], "hash": last["hash"]}},
    }
    folder.mkdir(exist_ok=True)
    new_key_pair(folder / "key")
    file = folder / "certificate"
    file.write_bytes(sign(said, {"receipt chain": last["hash"]}, load_private_key(folder / "key")))
    return Certified(maker, file, folder / "key.pub", said)


def filled(maker: StateMaker) -> StateMaker:
    return play(maker, {"MEMORY.md": f"# Memory\n\n> {SECRET}\n"}).seal()


@pytest.fixture
def certified(maker: StateMaker, cli: CommandLine, tmp_path: Path) -> Certified:
    return certify(cli, filled(maker), tmp_path / "certified")


def verify(cli: CommandLine, it: Certified, *more: str | Path) -> Done:
    return run(cli, "certificate", "verify", it.file, "--key", it.key, *more)


def refused(done: Done, reason: Reason) -> None:
    assert (done.status, done.out) == (3, ""), done
    assert re.fullmatch(rf"\[cenotaph\] Certificate refused \({reason}\): [A-Z][^\n]*\.\n", done.err)
    assert SECRET not in done.err


# -- keys -------------------------------------------------------------------------------------


def test_a_new_key_pair_is_named(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "signer"
    done = run(cli, "keys", "new", path)
    own = key_id(load_private_key(path).public_key())
    assert (done.status, done.err) == (0, "")
    assert done.out == f"Private key: {path}\nPublic key: {path}.pub\nKey id: {own}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    again = run(cli, "keys", "new", path)
    assert (again.status, again.out, path.read_bytes()) == (1, "", before)
    assert "a key is never overwritten" in again.err


def test_a_key_in_a_folder_that_is_not_there(cli: CommandLine, tmp_path: Path) -> None:
    done = run(cli, "keys", "new", tmp_path / "no" / "key")
    assert (done.status, done.out) == (1, "")
    assert f"No key was made: {tmp_path / 'no' / 'key'}: No such file or directory" in done.err


# -- the file alone ---------------------------------------------------------------------------


def test_a_certificate_says_what_was_done(cli: CommandLine, certified: Certified) -> None:
    done = verify(cli, certified)
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("Certificate: valid, signed with key ")
    assert "Sessions erased from memory: 1" in lines
    assert any(line.startswith("Verification: nothing found (") for line in lines)
    assert certified.said["receipt"] is not None
    assert lines[-1].startswith(f"Receipt: {certified.said['receipt']['id']}, chain link ")
    assert TARGET not in done.out


def test_a_certificate_as_json(cli: CommandLine, certified: Certified) -> None:
    found = verify(cli, certified, "--json").json
    assert (found["ok"], found["stateChecked"]) == (True, False)
    assert found["predicate"] == certified.said
    assert len(found["key"]) == 64


def test_one_byte_of_it_altered(cli: CommandLine, certified: Certified) -> None:
    content = certified.file.read_bytes()
    at = content.index(b"payload") + 20
    certified.file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    refused(verify(cli, certified), "signature")
    error = verify(cli, certified, "--json").json
    assert (error["ok"], error["error"]["type"], error["error"]["reason"]) == (
        False,
        "certificate_refused",
        "signature",
    )


def test_the_key_of_somebody_else(cli: CommandLine, certified: Certified, tmp_path: Path) -> None:
    new_key_pair(tmp_path / "other")
    refused(verify(cli, certified._replace(key=tmp_path / "other.pub")), "other-key")


def test_files_that_cannot_be_used(cli: CommandLine, certified: Certified, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    for other in (certified._replace(file=nothing), certified._replace(key=nothing)):
        done = verify(cli, other)
        assert (done.status, done.out) == (1, "")
        assert f"The certificate cannot be checked: {nothing}: No such file" in done.err
    done = verify(cli, certified._replace(key=certified.file))
    assert done.status == 1
    assert "is not a PEM file of a key" in done.err
    done = verify(cli, certified, "--state-dir", nothing)
    assert done.status == 1
    assert "There is no state directory at" in done.err


# -- against a state directory ----------------------------------------------------------------


def test_the_state_directory_that_it_tells_of(cli: CommandLine, certified: Certified) -> None:
    before = snapshot(certified.maker.root)
    done = verify(cli, certified, "--state-dir", certified.maker.state)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[-1].startswith("State directory: holds the receipt")
    assert verify(cli, certified, "--state-dir", certified.maker.state, "--agent", "main", "--json").json[
        "stateChecked"
    ]
    assert snapshot(certified.maker.root) == before


def test_the_option_before_the_command_counts_too(cli: CommandLine, certified: Certified) -> None:
    words = ("certificate", "verify", str(certified.file), "--key", str(certified.key), "--json")
    assert cli(certified.maker.state, *words).json["stateChecked"]


def test_a_later_deletion_does_not_hurt_it(cli: CommandLine, certified: Certified) -> None:
    cli.forget(certified.maker.state, "--session", SURVIVOR)
    assert verify(cli, certified, "--state-dir", certified.maker.state).status == 0


def edit(statement: str) -> Callable[[StateMaker], None]:
    def change(maker: StateMaker) -> None:
        with database(maker.agent_db) as db:
            assert db.execute(statement).rowcount > 0

    return change


def said_again(maker: StateMaker) -> None:
    maker.file("memory/notes.md", f"# Notes\n\n> {SECRET}\n")


def other_hash_key(maker: StateMaker) -> None:
    (maker.state / "cenotaph" / "receipts.key").write_bytes(bytes(32))


def hash_key_destroyed(maker: StateMaker) -> None:
    (maker.state / "cenotaph" / "receipts.key").unlink()


FAULTS: list[tuple[Reason, Callable[[StateMaker], None]]] = [
    ("residue", said_again),
    ("other-hash-key", other_hash_key),
    ("other-hash-key", hash_key_destroyed),
    ("tombstone-missing", edit("DELETE FROM memory_session_tombstones")),
    ("chain-broken", edit("UPDATE cenotaph_receipts SET body = replace(body, '1', '2')")),
    ("older-copy", edit("DELETE FROM cenotaph_receipts WHERE stage = 'completed'")),
]


@pytest.mark.parametrize(("reason", "spoil"), FAULTS, ids=[f"{reason}-{spoil.__name__}" for reason, spoil in FAULTS])
def test_a_state_directory_that_says_otherwise(
    cli: CommandLine, certified: Certified, reason: Reason, spoil: Callable[[StateMaker], None]
) -> None:
    spoil(certified.maker)
    refused(verify(cli, certified, "--state-dir", certified.maker.state), reason)


@pytest.mark.parametrize("number", [0, 1])
def test_a_copy_from_before(cli: CommandLine, maker: StateMaker, tmp_path: Path, number: int) -> None:
    """Restored from a backup: of before the deletion, with or without an earlier one in it."""
    filled(maker)
    for _ in range(number):
        cli.forget(maker.state, "--session", SURVIVOR)
    shutil.copytree(maker.state, tmp_path / "copy")
    it = certify(cli, maker, tmp_path / "certified")
    refused(verify(cli, it, "--state-dir", tmp_path / "copy"), "older-copy")


def test_another_directory_with_the_same_history(cli: CommandLine, certified: Certified, tmp_path: Path) -> None:
    other = filled(StateMaker(tmp_path / "other"))
    cli.forget(other.state, "--session", TARGET)
    refused(verify(cli, certified, "--state-dir", other.state), "other-chain")


def test_a_receipt_that_is_not_there(cli: CommandLine, certified: Certified) -> None:
    receipt = certified.said["receipt"]
    assert receipt is not None
    said: Predicate = {**certified.said, "receipt": {**receipt, "id": "another"}}
    certified.file.write_bytes(sign(said, {"a": "11" * 32}, load_private_key(certified.key.with_suffix(""))))
    refused(verify(cli, certified, "--state-dir", certified.maker.state), "not-completed")


def test_a_file_that_cannot_be_searched(certified: Certified) -> None:
    """Nothing was found, but not everything was read: that is neither a yes nor a refusal."""
    certified.maker.file("memory/closed.md", "closed\n").chmod(0)
    done = verify(PlainUser(), certified, "--state-dir", certified.maker.state)
    assert (done.status, done.out) == (1, "")
    assert "The search could not be completed: memory/closed.md: " in done.err
