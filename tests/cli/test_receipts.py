"""`cenotaph receipts` and `cenotaph verify`: what stands in the chains, and that nothing has come back."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import CommandLine
from scene import SECRET, TARGET, own, play
from state_maker import StateMaker, database, marker, snapshot


def forgotten(maker: StateMaker, cli: CommandLine) -> str:
    """A completed deletion; the id of its receipt."""
    play(maker, {"MEMORY.md": f"{marker('gone:e')}\n- an entry that came of it\nkept\n> {SECRET}\n"})
    own(maker, ["gone:e"])
    maker.short_term("gone:e", "some words")
    return cli.forget(maker.seal().state, "--session", TARGET)["receipt"]["id"]


def test_list_and_show(either: StateMaker, cli: CommandLine) -> None:
    receipt = forgotten(either, cli)
    listed = cli(either.state, "receipts", "list")
    assert (listed.status, listed.out.count("\n")) == (0, 1)
    assert receipt in listed.out
    assert "completed" in listed.out
    found: Any = cli(either.state, "receipts", "show", receipt[:8], "--json").json[0]
    assert found["counts"]["originRows"] == 1
    assert {link["stage"] for link in found["links"]} == {"begun", "deleted", "completed"}
    for word in (TARGET, SECRET, "gone:e", "MEMORY.md"):
        assert word not in cli(either.state, "receipts", "list", "--json").out


def test_nothing_to_list(maker: StateMaker, cli: CommandLine) -> None:
    maker.seal()
    assert cli(maker.state, "receipts", "list").out == "No receipts\n"
    assert cli(maker.state, "receipts", "verify").status == 0
    done = cli(maker.state, "verify")
    assert (done.status, done.out.splitlines()[0]) == (0, "Verification (main): nothing to look for")


def test_an_unknown_receipt(maker: StateMaker, cli: CommandLine) -> None:
    forgotten(maker, cli)
    for command in (("receipts", "show", "zz"), ("verify", "--receipt", "zz")):
        done = cli(maker.state, *command)
        assert (done.status, "receipts list" in done.err) == (1, True)


CHANGES = [
    "body = '{}'", "body = 'no JSON'", "body = '7'", "body = '{\"sessions\":7}'", "body = '[]', stage = 'deleted'",
    "body = '{\"files\":[]}', stage = 'completed'", "created_at = created_at + 1", "created_at = 9223372036854775807",
    "stage = 'deleted'",
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_chain_that_was_changed(either: StateMaker, cli: CommandLine, change: str) -> None:
    forgotten(either, cli)
    assert cli(either.state, "receipts", "verify").status == 0
    with database(either.agent_db) as db:
        db.execute(f"UPDATE cenotaph_receipts SET {change} WHERE seq = 1")
    done = cli(either.state, "receipts", "verify")
    assert (done.status, "Link 1 of the chain" in done.err) == (1, True)
    for command in (("receipts", "list"), ("receipts", "list", "--json"), ("receipts", "show", "")):
        assert cli(either.state, *command).status == 0
    done = cli(either.state, "verify")
    assert (done.status, "Link 1 of the chain" in done.err) == (1, True)


@pytest.mark.parametrize("statement", ["DELETE FROM {}", "UPDATE {} SET shingles = x'00'"])
def test_nothing_is_called_clean_when_the_hashes_to_look_for_were_taken(
    maker: StateMaker, cli: CommandLine, statement: str
) -> None:
    forgotten(maker, cli)
    maker.file("memory/restored.md", f"restored from somewhere: {SECRET}\n")
    with database(maker.agent_db) as db:
        db.execute(statement.format("cenotaph_receipt_shingles"))
    done = cli(maker.state, "verify")
    assert (done.status, done.out) == (1, "")
    assert "Link 1 of the chain" in done.err


def test_verify_finds_what_came_back_and_changes_nothing(either: StateMaker, cli: CommandLine) -> None:
    receipt = forgotten(either, cli)
    assert cli(either.state, "verify", "--receipt", receipt).status == 0
    either.file("memory/restored.md", f"restored from somewhere: {SECRET}\n")
    before = snapshot(either.root)
    done = cli(either.state, "verify", "--receipt", receipt, "--json")
    assert (done.status, done.json["result"]) == (3, "residue")
    assert [place["path"] for place in done.json["residue"]] == ["memory/restored.md"]
    assert SECRET not in done.out + done.err
    assert snapshot(either.root) == before


def test_without_its_key_a_receipt_says_nothing(maker: StateMaker, cli: CommandLine) -> None:
    forgotten(maker, cli)
    key = maker.state / "cenotaph" / "receipts.key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.unlink()
    done = cli(maker.state, "verify")
    assert (done.status, "receipt key" in done.err) == (1, True)
    assert cli(maker.state, "receipts", "list").status == 0
