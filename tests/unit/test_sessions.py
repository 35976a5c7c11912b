"""Which sessions there are, from rows and archive files, and which of them memory never indexes."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from cenotaph.archives import ArchiveFile, find_archive_files, parse_archive_name
from cenotaph.errors import CenotaphError
from cenotaph.identity import Identity, parse_identity
from cenotaph.sessions import Session, Sessions, excluded_session_ids, list_sessions

T0 = 1_795_165_200_000
STAMP = "2026-11-18T09-00-00.000Z"
STAMP_MS = 1_794_992_400_000
GENERATION = "0123456789abcdef" * 2


@dataclass
class Node:
    session_key: str
    current_session_id: str
    entry_json: bytes


@dataclass
class Window:
    session_id: str
    session_key: str
    created_at: int = T0
    transcript_updated_at: int | None = T0 + 5
    session_entry_provenance: int = 1
    hook_external_content_source: str | None = None
    chat_type: str | None = None
    channel: str | None = None
    parent_session_key: str | None = None
    spawned_by: str | None = None


@dataclass
class Participant:
    session_key: str
    identity_namespace: bytes
    actor_id: str


@dataclass
class Archive:
    session_id: str
    session_key: str
    archive_name: str = ""
    generation: str = GENERATION
    created_at: int = T0

    def __post_init__(self) -> None:
        self.archive_name = self.archive_name or f"{self.session_id}.jsonl.reset.{STAMP}.{self.generation}"


def node(key: str, session_id: str, **entry: object) -> Node:
    return Node(key, session_id, json.dumps({"sessionId": session_id, "updatedAt": T0, **entry}).encode())


@dataclass
class Rows:
    """The rows of a store; `key` without `agent:` gets the prefix of agent main."""

    nodes: list[Node]
    windows: list[Window]
    participants: list[Participant]
    archives: list[Archive]

    def listed(self, agent: str = "main", owner: str = "main", files: tuple[ArchiveFile, ...] = ()) -> Sessions:
        return list_sessions(
            self.nodes, self.windows, self.participants, self.archives, agent=agent, owner=owner, files=files
        )


def rows(
    nodes: list[Node] | None = None,
    windows: list[Window] | None = None,
    participants: list[Participant] | None = None,
    archives: list[Archive] | None = None,
) -> Rows:
    return Rows(nodes or [], windows or [], participants or [], archives or [])


def file(name: str, folder: str = "/archives", *, is_shared: bool = False) -> ArchiveFile:
    parsed = parse_archive_name(name)
    assert parsed
    return ArchiveFile(Path(folder) / name, parsed, is_shared)


def brief(listed: Sessions) -> list[tuple[str, str]]:
    return [(session.session_id, session.source) for session in listed.sessions]


# -- live and retained --------------------------------------------------------------------------


def test_a_key_has_one_live_session_and_may_have_retained_ones() -> None:
    listed = rows(
        [node("agent:main:a", "new")],
        [
            Window("old", "agent:main:a", T0 - 9, chat_type="group", channel="telegram"),
            Window("new", "agent:main:a"),
        ],
    ).listed()
    assert brief(listed) == [("old", "retained"), ("new", "live")]
    old, new = listed.sessions
    assert (old.is_current, new.is_current) == (False, True)
    assert (old.created_at, old.channel, old.chat_type) == (T0 - 9, "telegram", "group")
    assert (new.session_key, new.transcript_updated_at, new.kind) == ("agent:main:a", T0 + 5, "interactive")
    assert listed.refusals == ()


def test_a_node_that_is_kept_for_retained_windows_has_no_live_session() -> None:
    listed = rows([Node("agent:main:a", "s", b"{}")], [Window("s", "agent:main:a")]).listed()
    assert brief(listed) == [("s", "retained")]
    assert listed.refusals == ()


@pytest.mark.parametrize(
    "entry",
    [
        b"{broken",
        b"\xff",
        b"[]",
        b'{"sessionId":"other","updatedAt":1}',
        b'{"sessionId":"s"}',
        b'{"sessionId":"s","updatedAt":true}',
        b'{"sessionId":"s","updatedAt":1e999}',
    ],
)
def test_a_damaged_entry_is_refused_and_the_rest_is_listed(entry: bytes) -> None:
    listed = rows(
        [Node("agent:main:a", "s", entry), node("agent:main:b", "t")],
        [Window("s", "agent:main:a", hook_external_content_source="gmail"), Window("t", "agent:main:b")],
    ).listed()
    assert brief(listed) == [("s", "live"), ("t", "live")]
    assert listed.sessions[0].hook_source == "gmail"
    assert listed.refusals == ("Cannot read 1 session row(s); sessions selected by --hook-source may be missing.",)


@pytest.mark.parametrize(
    ("in_entry", "in_column", "provenance", "is_current", "expected"),
    [
        ("gmail", "gmail", 1, True, "gmail"),
        ("email", "webhook", 1, True, "email"),
        ("webhook", "webhook", 1, True, "webhook"),
        ("webhook", "gmail", 1, True, "webhook"),
        (None, "gmail", 1, True, "gmail"),
        (None, "gmail", 0, True, None),
        (None, "webhook", 1, True, None),
        (5, None, 1, True, None),
        ("email", "webhook", 1, False, None),
        ("email", "gmail", 1, False, "gmail"),
        ("gmail", "gmail", 0, False, None),
        (None, None, 1, False, None),
    ],
)
def test_hook_source_is_exact(
    in_entry: object, in_column: str | None, provenance: int, *, is_current: bool, expected: str | None
) -> None:
    entry = {} if in_entry is None else {"hookExternalContentSource": in_entry}
    window = Window("s", "agent:main:a", session_entry_provenance=provenance, hook_external_content_source=in_column)
    listed = rows([node("agent:main:a", "s" if is_current else "t", **entry)], [window]).listed()
    assert listed.sessions[0].hook_source == expected


# -- whose they are -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "owner", "expected"),
    [
        ("main", "main", ["m", "g", "u"]),
        ("b1", "main", ["b"]),
        ("b1", "b1", ["b", "g", "u"]),
        ("b", "main", []),
    ],
)
def test_rows_belong_to_the_agent_that_the_key_names(agent: str, owner: str, expected: list[str]) -> None:
    keys = {"m": "agent:main:x", "b": "agent:B1:x", "g": "global", "u": "unknown"}
    store = rows(
        [node(key, name) for name, key in keys.items()],
        [Window(name, key) for name, key in keys.items()],
        archives=[Archive(f"{name}-old", key) for name, key in keys.items()],
    )
    assert [session.session_id for session in store.listed(agent, owner).sessions] == [
        *expected,
        *(f"{name}-old" for name in expected),
    ]


def test_damage_of_another_agent_is_not_refused() -> None:
    store = rows([Node("agent:b1:x", "s", b"?")], [Window("s", "agent:b1:x")], [Participant("agent:b1:x", b"?", "p")])
    assert store.listed() == Sessions(())
    assert len(store.listed("b1").refusals) == 2


# -- kinds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "entry", "kind", "is_narrative", "is_internal"),
    [
        ("agent:main:main", {}, "interactive", False, False),
        ("agent:main:cron:nightly:run:7", {}, "cron", False, True),
        ("agent:main:cron:nightly", {}, "interactive", False, False),
        ("agent:main:x", {"parentSessionKey": "agent:main:cron:nightly:run:7"}, "cron", False, True),
        ("agent:main:x", {"spawnedBy": "agent:main:cron:nightly:run:7:more"}, "cron", False, True),
        ("agent:main:x", {"heartbeatIsolatedBaseSessionKey": "agent:main:main"}, "heartbeat", False, True),
        ("agent:main:x", {"heartbeatIsolatedBaseSessionKey": "  "}, "interactive", False, False),
        ("agent:main:cron:n:run:7", {"heartbeatIsolatedBaseSessionKey": "x"}, "cron", False, True),
        ("agent:main:x:heartbeat", {}, "interactive", False, False),
        ("agent:main:dreaming-narrative-light-1", {}, "subagent", True, True),
        ("agent:main:x", {"spawnedBy": "agent:main:dreaming-narrative-light-1"}, "subagent", True, True),
        (
            "agent:main:x",
            {"parentSessionKey": "agent:main:dreaming-narrative-light-1"},
            "interactive",
            False,
            False,
        ),
        ("agent:main:x", {"spawnedBy": "agent:main:main"}, "subagent", False, False),
        ("agent:main:subagent:1", {}, "subagent", False, False),
    ],
)
def test_kinds(key: str, entry: dict[str, object], kind: str, *, is_narrative: bool, is_internal: bool) -> None:
    (session,) = rows([node(key, "s", **entry)], [Window("s", key)]).listed().sessions
    assert (session.kind, session.is_narrative, session.is_internal) == (kind, is_narrative, is_internal)


def test_columns_tell_the_parents_where_no_entry_does() -> None:
    window = Window("s", "agent:main:x", parent_session_key="agent:main:cron:n:run:7")
    for kept in (Node("agent:main:x", "s", b"{}"), Node("agent:main:x", "s", b"{broken")):
        assert rows([kept], [window]).listed().sessions[0].kind == "cron"
    assert rows([node("agent:main:x", "s")], [window]).listed().sessions[0].kind == "interactive"


@pytest.mark.parametrize("reverse", [False, True])
def test_cron_descends_over_generations_and_cycles_end(*, reverse: bool) -> None:
    parents = {
        "a": "agent:main:cron:n:run:7",
        "b": "agent:main:a",
        "c": "agent:main:b",
        "x": "agent:main:y",
        "y": "agent:main:x",
        "z": "agent:main:y",
    }
    names = sorted(parents, reverse=reverse)
    listed = rows(
        [node(f"agent:main:{name}", name, parentSessionKey=parents[name]) for name in names],
        [Window(name, f"agent:main:{name}") for name in names],
    ).listed()
    assert {session.session_id: session.kind for session in listed.sessions} == {
        "a": "cron",
        "b": "cron",
        "c": "cron",
        "x": "interactive",
        "y": "interactive",
        "z": "interactive",
    }


def test_a_cycle_that_touches_a_cron_run_is_cron() -> None:
    listed = rows(
        [
            node("agent:main:x", "x", parentSessionKey="agent:main:y"),
            node("agent:main:y", "y", parentSessionKey="agent:main:x", spawnedBy="agent:main:cron:n:run:7"),
        ],
        [Window("x", "agent:main:x"), Window("y", "agent:main:y")],
    ).listed()
    assert [session.kind for session in listed.sessions] == ["cron", "cron"]


def test_a_long_chain_of_parents_is_followed_quickly() -> None:
    count = 20_000
    listed = rows(
        [node(f"agent:main:{n}", str(n), parentSessionKey=f"agent:main:{n + 1}") for n in range(count)],
        [Window(str(n), f"agent:main:{n}") for n in range(count)],
    )
    started = time.perf_counter()
    assert {session.kind for session in listed.listed().sessions} == {"interactive"}
    assert time.perf_counter() - started < 3


# -- participants -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("namespace", "reported"),
    [
        ('{"type":"profile"}', {"type": "profile", "id": "p"}),
        ('{"type":"agent"}', {"type": "agent", "id": "p"}),
        (
            '{"type":"remote","pluginId":"a","domain":"b","idKind":"c"}',
            {"type": "remote", "pluginId": "a", "domain": "b", "idKind": "c", "id": "p"},
        ),
        (
            '{"idKind":"c", "domain":"b", "pluginId":"a", "type":"remote"}',
            {"type": "remote", "pluginId": "a", "domain": "b", "idKind": "c", "id": "p"},
        ),
        (
            '{"type":"observation","pluginId":null,"accountId":"acc","senderKind":"bot"}',
            {"type": "observation", "pluginId": None, "accountId": "acc", "senderKind": "bot", "id": "p"},
        ),
        (
            '{"type":"legacy","actorType":"user","source":null}',
            {"type": "legacy", "actorType": "user", "source": None, "id": "p"},
        ),
    ],
)
def test_identities(namespace: str, reported: dict[str, object]) -> None:
    identity = parse_identity(namespace.encode(), "p")
    assert identity
    assert list(identity.as_reported().items()) == list(reported.items())


@pytest.mark.parametrize(
    "namespace",
    [
        b"",
        b"profile",
        b"{broken",
        b"\xff",
        b"null",
        b"[]",
        b"{}",
        b'{"type":"other"}',
        b'{"type":["profile"]}',
        b'{"type":"profile","pluginId":"a"}',
        b'{"type":"remote","pluginId":"a","domain":"b"}',
        b'{"type":"remote","pluginId":null,"domain":"b","idKind":"c"}',
        b'{"type":"remote","pluginId":"","domain":"b","idKind":"c"}',
        b'{"type":"observation","pluginId":null,"accountId":null,"senderKind":"robot"}',
        b'{"type":"observation","pluginId":null,"accountId":null,"senderKind":["bot"]}',
        b'{"type":"legacy","actorType":null,"source":null}',
    ],
)
def test_damaged_identities(namespace: bytes) -> None:
    assert parse_identity(namespace, "p") is None


def test_participants_belong_to_every_generation_of_the_key() -> None:
    listed = rows(
        [node("agent:main:a", "new"), node("agent:main:b", "other")],
        [Window("old", "agent:main:a"), Window("new", "agent:main:a"), Window("other", "agent:main:b")],
        [
            Participant("agent:main:a", b'{"type":"agent"}', "p"),
            Participant("agent:main:a", b'{"type":"profile"}', "p"),
        ],
    ).listed()
    both = (Identity((("type", "agent"),), "p"), Identity((("type", "profile"),), "p"))
    assert [session.participants for session in listed.sessions] == [both, both, ()]


def test_damaged_participants_are_counted_and_not_named() -> None:
    listed = rows(
        [node("agent:main:a", "s")],
        [Window("s", "agent:main:a")],
        [
            Participant("agent:main:a", b"{broken", "secret-person"),
            Participant("agent:main:a", b'{"type":"agent"}', "p"),
            Participant("agent:main:a", b'{"type":"x"}', "other-person"),
        ],
    ).listed()
    assert [identity.actor_id for identity in listed.sessions[0].participants] == ["p"]
    assert listed.refusals == ("Cannot read 2 participant row(s); sessions selected by --participant may be missing.",)


# -- archives -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"s.jsonl.reset.{STAMP}", ("s", "reset", STAMP_MS, None, False)),
        (f"s.jsonl.deleted.{STAMP}.{GENERATION}.zst", ("s", "deleted", STAMP_MS, GENERATION, True)),
        (f"s.jsonl.deleted.{STAMP}.zst", ("s", "deleted", STAMP_MS, None, True)),
        ("s.jsonl.reset.2026-11-18T09-00-00Z", ("s", "reset", STAMP_MS, None, False)),
        (f"a.jsonl.reset.b.jsonl.reset.{STAMP}", ("a.jsonl.reset.b", "reset", STAMP_MS, None, False)),
        (f"with blank.and.dots.jsonl.reset.{STAMP}", ("with blank.and.dots", "reset", STAMP_MS, None, False)),
    ],
)
def test_archive_names(name: str, expected: tuple[object, ...]) -> None:
    parsed = parse_archive_name(name)
    assert parsed
    assert (
        parsed.session_id,
        parsed.reason,
        parsed.created_at,
        parsed.generation,
        parsed.is_compressed,
    ) == expected


@pytest.mark.parametrize(
    "name",
    [
        "s.jsonl",
        "sessions.json",
        "sessions.json.bak.1",
        f"s.jsonl.bak.{STAMP}",
        f".jsonl.reset.{STAMP}",
        "s.jsonl.reset.2026-11-18",
        "s.jsonl.reset.2026-13-18T09-00-00.000Z",
        f"s.jsonl.reset.{STAMP}.{GENERATION.upper()}",
        f"s.jsonl.reset.{STAMP}.{GENERATION}.gz",
        f"s.trajectory.jsonl.reset.{STAMP}",
        f"s.checkpoint.01234567-89ab-cdef-0123-456789abcdef.jsonl.reset.{STAMP}",
        f"\udcff.jsonl.reset.{STAMP}",
    ],
)
def test_what_is_no_archive(name: str) -> None:
    assert parse_archive_name(name) is None


def test_archives_are_found_once_and_only_real_files(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    first.mkdir()
    second.mkdir()
    for name in (f"b.jsonl.reset.{STAMP}", f"a.jsonl.reset.{STAMP}", "notes.txt"):
        (first / name).write_bytes(b"")
    (first / f"folder.jsonl.reset.{STAMP}").mkdir()
    (first / f"link.jsonl.reset.{STAMP}").symlink_to(first / f"a.jsonl.reset.{STAMP}")
    (second / f"c.jsonl.reset.{STAMP}").write_bytes(b"")
    found = find_archive_files([first, second, tmp_path / "absent"], shared=(second,))
    assert [(each.name.session_id, each.is_shared) for each in found.files] == [
        ("a", False),
        ("b", False),
        ("c", True),
    ]
    assert found.refusals == ()


def test_a_folder_that_cannot_be_listed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / f"a.jsonl.reset.{STAMP}").write_bytes(b"")
    found = find_archive_files([tmp_path / "file", tmp_path / "good"])
    assert len(found.files) == 1
    assert found.refusals == (f"Cannot list the archives in {tmp_path / 'file'}: Not a directory",)


def test_archives_follow_the_live_sessions_and_never_repeat_them() -> None:
    store = rows(
        [node("agent:main:a", "live")],
        [Window("live", "agent:main:a")],
        archives=[Archive("live", "agent:main:a"), Archive("gone", "agent:main:b", created_at=T0 - 5)],
    )
    files = (
        file(f"gone.jsonl.reset.{STAMP}.{GENERATION}"),
        file(f"live.jsonl.deleted.{STAMP}"),
        file(f"loose.jsonl.deleted.{STAMP}"),
        file(f"loose.jsonl.deleted.{STAMP}", "/other"),
    )
    listed = store.listed(files=files)
    assert brief(listed) == [("live", "live"), ("gone", "archived"), ("loose", "archived")]
    _, gone, loose = listed.sessions
    assert (gone.session_key, gone.kind, gone.created_at) == ("agent:main:b", "unknown", T0 - 5)
    assert (gone.generation, gone.archive_path, gone.hook_source, gone.participants) == (
        GENERATION,
        None,
        None,
        (),
    )
    assert (loose.session_key, loose.kind, loose.created_at) == (None, "unknown", STAMP_MS)
    assert (loose.generation, loose.archive_path) == (None, Path(f"/archives/loose.jsonl.deleted.{STAMP}"))


def test_files_in_a_shared_folder_need_a_row_of_this_agent() -> None:
    store = rows(archives=[Archive("mine", "agent:main:a"), Archive("theirs", "agent:b1:a")])
    loose = tuple(
        file(f"{name}.jsonl.deleted.{STAMP}", "/shared", is_shared=True) for name in ("mine", "theirs", "nobodys")
    )
    assert [session.archive_name for session in store.listed(files=loose).sessions] == [
        store.archives[0].archive_name,
        f"mine.jsonl.deleted.{STAMP}",
    ]
    own = tuple(replace(each, is_shared=False) for each in loose)
    assert len(store.listed(files=own).sessions) == 4


def test_hashed_names_of_long_ids_are_recognised() -> None:
    long_id = "x" * 97
    store = rows([node("agent:main:a", long_id)], [Window(long_id, "agent:main:a")])
    short = f"session-{hashlib.sha256(long_id.encode()).hexdigest()}"
    assert brief(store.listed(files=(file(f"{short}.jsonl.reset.{STAMP}"),))) == [(long_id, "live")]


# -- what memory never indexes ------------------------------------------------------------------


def transcript(*messages: Mapping[str, object], **custom: object) -> bytes:
    records: list[Mapping[str, object]] = [{"type": "session", "id": "s"}]
    records += [{"type": "custom", **custom}] if custom else []
    records += [{"type": "message", "message": message} for message in messages]
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


PLAIN = {"role": "user", "content": "plain words about dreaming and cron"}
SYSTEM = {"role": "user", "content": "from the host", "provenance": {"kind": "internal_system"}}
CRON = {"sessionKey": "agent:main:cron:j:run:r"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (transcript(PLAIN), False),
        (transcript(PLAIN, data=CRON), True),
        (transcript(PLAIN, **CRON), True),
        (transcript(PLAIN, data={"sessionKey": "agent:main:cron:j"}), False),
        (transcript(PLAIN, data={"runId": "dreaming-narrative-x"}), True),
        (
            transcript(PLAIN, data={"runId": "dreaming-narrative-x"}).replace(b"dreaming", b"dr\\u0065aming", 2),
            True,
        ),
        (transcript({"role": "user", "content": "dreaming-narrative-x agent:main:cron:j:run:r"}), False),
        (transcript(SYSTEM), True),
        (transcript(SYSTEM, PLAIN), False),
        (transcript({"role": "toolResult"}, {"role": "user", "content": "internal_system"}), False),
        (transcript(SYSTEM | {"content": ""}), False),
        (b"", False),
    ],
)
def test_archives_tell_by_their_records(text: bytes, *, expected: bool) -> None:
    (archived,) = rows(archives=[Archive("s", "agent:main:a")]).listed().sessions
    excluded = excluded_session_ids([archived], lambda _: text)
    assert excluded.ids == ({"s"} if expected else set())
    assert excluded.refusals == ()


def test_keys_of_archives_tell_nothing() -> None:
    keys = ("agent:main:cron:j:run:r", "agent:main:dreaming-narrative-x", "agent:main:main:heartbeat")
    listed = rows(archives=[Archive(f"s{at}", key) for at, key in enumerate(keys)]).listed()
    assert excluded_session_ids(listed.sessions, lambda _: transcript(PLAIN)).ids == set()


def unread(session: Session) -> bytes:
    pytest.fail(f"{session.session_id} was read")


def test_live_sessions_tell_by_their_keys_and_retained_ones_do_not() -> None:
    keys = {"c": "agent:main:cron:j:run:r", "n": "agent:main:dreaming-narrative-x", "m": "agent:main:main"}
    windows = [Window(name, key) for name, key in keys.items()] + [Window("old", keys["c"])]
    listed = rows([node(key, name) for name, key in keys.items()], windows).listed()
    assert excluded_session_ids(listed.sessions, unread).ids == {"c", "n"}


def test_skipped_ids_are_not_read() -> None:
    listed = rows(archives=[Archive("s", "agent:main:a")]).listed()
    assert excluded_session_ids(listed.sessions, unread, skip={"s"}).ids == set()


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), CenotaphError("damaged zstd data")])
def test_an_archive_that_cannot_be_read_is_refused_and_the_rest_is_not(error: Exception) -> None:
    listed = rows(archives=[Archive("bad", "agent:main:a"), Archive("good", "agent:main:b")]).listed()

    def text(session: Session) -> bytes:
        if session.session_id == "bad":
            raise error
        return transcript(PLAIN, **CRON)

    excluded = excluded_session_ids(listed.sessions, text)
    assert excluded.ids == {"good"}
    assert excluded.refusals == (f"Cannot read the archive {listed.sessions[0].archive_name}: {error}",)


def test_ordinary_archives_cost_next_to_nothing() -> None:
    text = transcript(*[{"role": "user", "content": "Zürich, Übung 会議 " + "words " * 40}] * 20)
    listed = rows(archives=[Archive(f"s{at}", "agent:main:a") for at in range(260)]).listed()
    read: Callable[[Session], bytes] = lambda _: text  # noqa: E731
    best = min(_seconds(lambda: excluded_session_ids(listed.sessions, read)) for _ in range(5))
    assert best < 0.05


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
