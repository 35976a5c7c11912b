"""`forget --certificate` end to end: made, verified, and refused for each thing that can be wrong, with its reason."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import cenotaph
from cenotaph import certificate
from cenotaph.errors import CenotaphError
from cenotaph.keys import load_public_key, new_key_pair
from conftest import CommandLine, Done
from scene import SECRET, SURVIVOR, TARGET, own, play
from state_maker import StateMaker, database, marker

FILES = {
    "MEMORY.md": f"{marker('gone:e')}\n- an entry that came of the session\n\n{marker('kept:k')}\n- a kept entry\n",
    "DREAMS.md": f"> {SECRET}\n\n{marker('kept:l')}\n- another kept entry\n",
}


class Signed:
    """A completed deletion with its certificate and keys."""

    def __init__(self, maker: StateMaker, cli: CommandLine) -> None:
        self.maker, self.cli = maker, cli
        self.key, self.file = maker.root / "key.pem", maker.root / "erasure.json"
        assert cli(maker.state, "keys", "new", str(self.key)).status == 0
        play(maker, FILES)
        maker.short_term("gone:e", "too short")
        maker.short_term("kept:k", "short, too")
        maker.seen(f"main:sessions/main/{TARGET}")
        own(own(maker, ["gone:e"]), ["kept:k", "kept:l"], SURVIVOR).seal()
        self.older, self.older_state = maker.root / "older.sqlite", maker.root / "older-state.sqlite"
        shutil.copy(maker.agent_db, self.older)
        shutil.copy(maker.state_db, self.older_state)
        self.done = self.forget()

    def forget(self, *more: str) -> Done:
        """The deletion, certified."""
        wish = ("--session", TARGET, "--certificate", str(self.file), "--key", str(self.key))
        return self.cli(self.maker.state, "forget", "--agent", "main", *wish, *more)

    def verify(self, key: Path | None = None, *, state: bool = True) -> Done:
        """`certificate verify`."""
        place = ("--state-dir", str(self.maker.state)) if state else ()
        chosen = str(key or Path(f"{self.key}.pub"))
        return self.cli(self.maker.state, "certificate", "verify", str(self.file), "--key", chosen, *place, "--json")

    def reason(self, key: Path | None = None, *, state: bool = True) -> str:
        """Why it is refused."""
        done = self.verify(key, state=state)
        assert done.status == 3, done.out
        return done.json["error"]["reason"]


@pytest.fixture
def signed(either: StateMaker, cli: CommandLine) -> Signed:
    return Signed(either, cli)


def test_it_holds_and_says_what_was_not_touched(signed: Signed) -> None:
    assert signed.done.status == 0, signed.done.err
    assert signed.verify().status == 0
    said = certificate.verify(signed.file.read_bytes(), load_public_key(f"{signed.key}.pub"))
    assert said["entries"]["before"] == said["entries"]["after"]
    assert (said["entries"]["after"]["count"], said["entries"]["altered"]) == (2, 0)
    assert (said["counts"]["memoryEntries"], said["counts"]["originRows"]) == (1, 1)
    assert said["verification"]["result"] == "clean"
    assert said["verification"]["needles"] > 0


def test_no_text_and_no_identifier_in_clear(signed: Signed) -> None:
    import base64

    payload = base64.b64decode(json.loads(signed.file.read_bytes())["payload"]).decode()
    for word in (TARGET, SURVIVOR, '"main"', SECRET, "MEMORY.md", "gone:e", "kept:k", str(signed.maker.root)):
        assert word not in payload, word


def test_altered_in_one_byte(signed: Signed) -> None:
    data = signed.file.read_bytes()
    reasons: set[str] = set()
    for position in range(0, len(data), 97):
        altered = bytearray(data)
        altered[position] ^= 1
        signed.file.write_bytes(altered)
        with pytest.raises(certificate.CertificateInvalid) as refused:
            certificate.verify(bytes(altered), load_public_key(f"{signed.key}.pub"))
        reasons.add(refused.value.reason)
    assert reasons <= {"malformed", "not-canonical", "payload-type", "signature", "other-key"}
    assert "signature" in reasons
    assert signed.reason(state=False) in reasons


def test_another_key(signed: Signed) -> None:
    other = signed.maker.root / "other.pem"
    signed.cli(signed.maker.state, "keys", "new", str(other))
    assert signed.reason(other) == "other-key"


def test_a_database_restored_from_an_old_copy(signed: Signed) -> None:
    shutil.copy(signed.older, signed.maker.agent_db)
    assert signed.reason() == "older-copy"


def test_a_second_run_is_certified_for_what_the_first_one_removed(maker: StateMaker, cli: CommandLine) -> None:
    """It finds nothing to remove, and looks for what the receipt of the first run tells of."""
    key, file = maker.root / "key.pem", maker.root / "erasure.json"
    cli(maker.state, "keys", "new", str(key))
    play(maker, FILES)
    own(maker, ["gone:e"]).seal()
    wish = ("--session", TARGET)
    assert cli(maker.state, "forget", *wish).status == 0
    assert cli(maker.state, "forget", *wish, "--certificate", str(file), "--key", str(key)).status == 0
    words = ("certificate", "verify", str(file), "--key", f"{key}.pub", "--state-dir", str(maker.state))
    done = cli(maker.state, *words)
    assert (done.status, "Verification: nothing found" in done.out) == (0, True)
    maker.file("DREAMS.md", f"> {SECRET}\n")
    done = cli(maker.state, *words)
    assert (done.status, "(residue)" in done.err) == (3, True)


def test_a_state_database_restored_from_an_old_copy(signed: Signed) -> None:
    """Also one that brings back nothing that a search could find: too short, or only a hash."""
    shutil.copy(signed.older_state, signed.maker.state_db)
    assert signed.reason() == "older-copy"


def test_a_state_database_that_went_on_is_no_older_copy(signed: Signed) -> None:
    def state_links() -> int:
        done = signed.cli(signed.maker.state, "receipts", "verify", "--json")
        return next(each["links"] for each in done.json["chains"] if each["database"] == signed.maker.state_db.name)

    before = state_links()
    signed.cli.forget(signed.maker.state, "--session", SURVIVOR)
    assert state_links() > before > 0
    assert signed.verify().status == 0


def sql(statement: str) -> Callable[[Signed], None]:
    """A change of the agent database."""

    def change(signed: Signed) -> None:
        with database(signed.maker.agent_db) as db:
            db.execute(statement)

    return change


def restore_text(signed: Signed) -> None:
    signed.maker.file("DREAMS.md", f"> {SECRET}\n")


def change_hash_key(signed: Signed) -> None:
    (signed.maker.state / "cenotaph" / "receipts.key").write_bytes(bytes(range(32)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (sql("UPDATE cenotaph_receipts SET body = '{}' WHERE seq = 1"), "chain-broken"),
        (sql("UPDATE cenotaph_receipts SET body = 'no JSON'"), "chain-broken"),
        (sql("UPDATE cenotaph_receipt_shingles SET shingles = x'00'"), "chain-broken"),
        (sql("DELETE FROM memory_session_tombstones"), "tombstone-missing"),
        (restore_text, "residue"),
        (change_hash_key, "other-hash-key"),
    ],
    ids=["a link", "every link", "the hashes", "the tombstone", "the text", "the hash key"],
)
def test_each_change_has_its_reason(signed: Signed, change: Callable[[Signed], None], reason: str) -> None:
    change(signed)
    assert signed.reason() == reason


@pytest.mark.parametrize("since", ["0500-01-01", "2026-11-05T01:02:03.456+02:00"])
def test_a_date_is_told_in_clear(maker: StateMaker, cli: CommandLine, since: str) -> None:
    key, file = maker.root / "key.pem", maker.root / "erasure.json"
    cli(maker.state, "keys", "new", str(key))
    play(maker, FILES).seal()
    wish = ("--session", TARGET, "--since", since, "--certificate", str(file), "--key", str(key))
    assert cli(maker.state, "forget", *wish).status == 0
    said = certificate.verify(file.read_bytes(), load_public_key(f"{key}.pub"))
    told = {"0500-01-01": "0500-01-01T00:00:00.000Z"}.get(since, "2026-11-04T23:02:03.456Z")
    assert said["selectors"][-1] == {"kind": "since", "value": told}


def test_nothing_is_written_over_and_nothing_removed_first(signed: Signed) -> None:
    before = signed.file.read_bytes()
    done = signed.forget("--json")
    assert done.status == 1
    assert "already there" in done.json["error"]["message"]
    assert signed.file.read_bytes() == before


def test_a_link_that_leads_nowhere_is_there(maker: StateMaker, cli: CommandLine) -> None:
    key, file = maker.root / "key.pem", maker.root / "erasure.json"
    cli(maker.state, "keys", "new", str(key))
    play(maker, FILES).seal()
    file.symlink_to(maker.root / "nowhere")
    done = cli(maker.state, "forget", "--session", TARGET, "--certificate", str(file), "--key", str(key))
    assert (done.status, "already there" in done.err) == (1, True)
    assert maker.read("DREAMS.md").decode() == FILES["DREAMS.md"]


def test_a_certificate_that_cannot_be_written_does_not_deny_the_deletion(maker: StateMaker) -> None:
    key, file = maker.root / "key.pem", maker.root / "erasure.json"
    new_key_pair(key)
    play(maker, FILES).seal()

    def step(what: str) -> None:
        if what == "Looking for what was removed":
            file.write_text("somebody else's")

    with (
        cenotaph.open(maker.state) as memory,
        pytest.raises(CenotaphError, match=r"the deletion is complete, but .*: File exists; run the same command"),
    ):
        memory.forget(sessions=[TARGET], certificate=(file, key), on_step=step)
    assert file.read_text() == "somebody else's"
    assert SECRET not in maker.read("DREAMS.md").decode()
    with cenotaph.open(maker.state) as memory:
        memory.forget(sessions=[TARGET], certificate=(maker.root / "another.json", key))
    assert certificate.verify((maker.root / "another.json").read_bytes(), load_public_key(f"{key}.pub"))["sessions"]


def test_wrong_usage(maker: StateMaker, cli: CommandLine) -> None:
    play(maker, FILES)
    maker.seal()
    for wish in (["--certificate", "c.json"], ["--key", "k.pem"], ["--certificate", "c", "--key", "k", "--dry-run"]):
        assert cli(maker.state, "forget", "--session", TARGET, *wish).status == 2
    done = cli(maker.state, "forget", "--session", TARGET, "--certificate", "c.json", "--key", "/nowhere.pem", "--json")
    assert (done.status, "nowhere.pem" in done.out) == (1, True)
    assert maker.read("MEMORY.md").decode() == FILES["MEMORY.md"]


def test_an_incomplete_deletion_has_no_certificate(maker: StateMaker, cli: CommandLine) -> None:
    key, file = maker.root / "key.pem", maker.root / "erasure.json"
    cli(maker.state, "keys", "new", str(key))
    play(maker, FILES)
    own(maker, ["gone:e"]).seal()
    shutil.copytree(maker.state, maker.root / "twin")
    review = maker.state / "notes-of-somebody.txt"
    review.write_text(f"{SECRET}\n")
    wish = ("--session", TARGET, "--certificate", str(file), "--key", str(key))
    done = cli(maker.state, "forget", *wish)
    assert done.status == 3
    assert "not written, because the deletion is not complete" in done.out
    assert not file.exists()
    review.unlink()
    assert cli(maker.state, "forget", *wish).status == 0
    assert file.exists()
