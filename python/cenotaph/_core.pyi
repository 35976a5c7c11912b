"""The compiled core: which lines, rows and bytes; named atomic writes. It decides nothing.

Text crosses as `bytes` where it may hold invalid UTF-8, paths as anything with `__fspath__`.
Times are milliseconds since the epoch. Every call that can take long releases the GIL and can be
interrupted with Ctrl-C. I/O errors are `OSError` with the file name set.
"""

from collections.abc import Sequence
from os import PathLike
from typing import TypeAlias, final

_Path: TypeAlias = str | PathLike[str]

__all__ = [
    "DEBUG_BUILD",
    "Archive",
    "CenotaphError",
    "Corpus",
    "FileScan",
    "ForgetRefused",
    "Gathered",
    "IndexCounts",
    "IndexPlan",
    "Lineage",
    "LineageChanged",
    "Link",
    "MemoryFile",
    "MemoryFiles",
    "Needles",
    "Node",
    "ObservedWrite",
    "Participant",
    "Place",
    "Refs",
    "Scrubber",
    "StateCounts",
    "StatePlan",
    "StateStore",
    "Store",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreTooNew",
    "Window",
    "__version__",
    "append_lines",
    "archive_file_text",
    "check_receipts",
    "complete_receipt",
    "create_native",
    "entries_of",
    "erase_free_pages",
    "file_stamps",
    "files_below",
    "find_residue",
    "gather",
    "keep_receipt",
    "kill_point",
    "locale_order",
    "memory_files",
    "rebuild_full_text",
    "receipt_shingles",
    "receipts",
    "remove_corpus_lines",
    "remove_leftovers",
    "scan_corpus",
    "sweep_beside",
    "sync_folders",
    "unsaid",
    "vacuum",
    "words",
]

__version__: str
DEBUG_BUILD: bool
"""True when the module was compiled without optimisation: benchmarks must not run on it."""

class CenotaphError(Exception):
    """Base of every error that this package raises on its own account."""

class StoreError(CenotaphError):
    """A database cannot be used."""

class StoreBusy(StoreError):
    """Another process holds the database or the workspace lock for longer than the wait limit."""

class StoreCorrupt(StoreError):
    """The file is not a database that can be read: damaged, truncated, of another agent or something else."""

class StoreTooNew(StoreError):
    """The database has a schema version that this program does not read."""

class ForgetRefused(CenotaphError):
    """The deletion was refused before anything was written."""

class LineageChanged(CenotaphError):
    """Rows that the plan rests on changed before the write; plan again."""

# -- sessions ---------------------------------------------------------------------------------

@final
class Node:
    """One row of `session_nodes`: a session key and its current session."""

    session_key: str
    current_session_id: str
    entry_json: bytes
    entry_valid: int
    updated_at: int

@final
class Window:
    """One row of `session_windows`: a transcript generation, with a session id of its own."""

    session_id: str
    session_key: str
    created_at: int
    transcript_updated_at: int | None
    session_entry_provenance: int
    acp_owned: int
    plugin_owner_id: str | None
    hook_external_content_source: str | None
    chat_type: str | None
    channel: str | None
    parent_session_key: str | None
    spawned_by: str | None

@final
class Participant:
    """One row of `session_participants`. `identity_namespace` is the stored text, possibly damaged."""

    session_key: str
    identity_namespace: bytes
    actor_id: str

@final
class Archive:
    """One row of `session_transcript_archives`, without its content."""

    session_id: str
    generation: str
    session_key: str
    reason: str
    encoding: str
    archive_name: str
    created_at: int

def archive_file_text(path: _Path) -> bytes:
    """Content of a transcript archive file, decompressed in memory when it is zstd.

    Raises `OSError`, or `StoreCorrupt` when the compressed data is damaged.
    """

# -- deletion ---------------------------------------------------------------------------------

@final
class Lineage:
    """What the origin rows say of a set of sessions. Key lists are sorted by UTF-16 code units."""

    entry_keys: list[str]
    mixed: list[str]
    known_keys: list[str]
    origin_rows: int
    digest: bytes

    def __new__(cls, entry_keys: Sequence[str]) -> Lineage:
        """A lineage without origin rows: where there is no database, only keys found in files are known."""

@final
class IndexCounts:
    """Rows of the index that a purge removes, or removed."""

    chunks: int
    sources: int
    fts_rows: int
    vector_rows: int
    embedding_cache_rows: int

@final
class IndexPlan:
    """The index rows that go. Only `Store.purge_index` can read it."""

    counts: IndexCounts

@final
class StateCounts:
    """Plugin-state rows that a purge removes or rewrites, or did."""

    short_term_entries: int
    seen_hash_scopes: int
    backups: int

@final
class StatePlan:
    """The plugin-state rows that go or change. Only `StateStore.apply` can read it."""

    counts: StateCounts
    failures: list[str]
    """Namespaces with the number of rows that could not be decoded."""

@final
class ObservedWrite:
    """One valid row of the write observer. `file_hash`: SHA-256 of the file then; class: `agent` or `untrusted`."""

    relative_path: str
    file_hash: str
    origin_class: str
    session_id: str | None
    session_key: str | None
    observed_at: int

@final
class Refs:
    """The selected sessions of one agent, as text can name them."""

    def __new__(cls, agent: str, ids: Sequence[str], keys: Sequence[str] = ...) -> Refs:
        """`keys` are session keys of which every generation is selected."""
    def named_in(self, text: bytes) -> bool:
        """Whether the text names a selected session anywhere."""

@final
class Corpus:
    """What a scan of the session corpus found."""

    lines: int
    removed_files: list[str]
    """Real paths of corpus files of which only blank lines would remain."""
    rewritten_files: list[str]
    """Real paths of corpus files that lose some lines."""
    snippet_count: int
    """Distinct snippets of 12 UTF-16 units or more in the removed lines."""
    failures: list[tuple[str, str]]
    """Files that could not be read, each with the system's message."""

def scan_corpus(files: Sequence[_Path], refs: Refs, threads: int = 0) -> Corpus:
    """Finds the corpus lines whose prefix names a selected session, and keeps their snippets.

    `threads=0` means the smaller of 4 and the number of cores.
    """

@final
class MemoryFile:
    """One file that forget reads: name relative to the workspace, and the real path behind it."""

    relative: str
    path: str

    def __new__(cls, relative: str, path: _Path) -> MemoryFile: ...

@final
class MemoryFiles:
    """A listing of a workspace, in the order in which forget reads it."""

    files: list[MemoryFile]
    corpus: list[str]
    leftovers: list[str]
    """Temporary files of rewrites that were interrupted."""
    links: list[str]
    """Links below `memory/` that lead somewhere that is not scanned."""
    failures: list[tuple[str, str]]

def memory_files(workspace: _Path) -> MemoryFiles:
    """Lists the memory files, corpus files, leftovers and unfollowed links of a workspace."""

@final
class FileScan:
    """What a scrub finds, or found, in one file. `error` is the system's message when it could not be read."""

    entries: int
    lines: int
    shared_lines: list[int]
    """Numbers (from 1) of removed lines of which every snippet also stands in a surviving corpus line."""
    stacked: list[str]
    """Keys that are not selected but label an entry that a selected key labels too."""
    untraced: list[str]
    """Keys of markers without an origin row."""
    history_refused: bool
    """Whether highlights of an old consolidation history remain, which nobody can trace."""
    changed: bool
    error: str | None
    old: tuple[str, str] | None
    """After a rewrite: type of the file system, and what became of the old blocks (`OldBlocks`)."""

@final
class Scrubber:
    """Compiled needles: sessions, entry keys and snippets."""

    def __new__(
        cls,
        refs: Refs,
        entry_keys: Sequence[str],
        known_keys: Sequence[str],
        corpus: Corpus | None = None,
        keep_shared: bool = False,
        corpus_files: Sequence[_Path] = ...,
    ) -> Scrubber:
        """`corpus_files` are read once more to see which snippets also stand in surviving lines."""
    def with_erased(self, erased: Needles) -> Scrubber:
        """The same, and lines that hold what earlier runs for these sessions removed go, too."""
    def with_keys(self, entry_keys: Sequence[str], known_keys: Sequence[str]) -> Scrubber:
        """The same sessions and snippets with other entry keys; shares the compiled snippets."""
    def scan_files(self, files: Sequence[MemoryFile], threads: int = 0) -> list[FileScan]:
        """Reads the files, in parallel; one result each, in order."""
    def rewrite_files(self, files: Sequence[MemoryFile], threads: int = 0) -> list[FileScan]:
        """Removes from each file what a scan of its present content finds, each one atomically.

        One result each, in order; where `error` is set, the old content is intact.
        """
    def matches(self, text: bytes) -> bool:
        """Whether a scrub of the text would remove anything."""

def remove_corpus_lines(
    files: Sequence[_Path], refs: Refs, threads: int = 0
) -> list[tuple[int, tuple[str, str] | None, str | None]]:
    """Removes the selected lines of corpus files, each one atomically; a file that keeps only blanks goes.

    For each file the number of lines, what became of the old blocks (file system, fate), and the reason when it could
    not be rewritten and is as it was.
    """

def append_lines(base: _Path, relative: _Path, lines: Sequence[bytes]) -> tuple[list[int], int]:
    """Adds lines to a file below `base`, each once: the number (from 1) of each, and how many were not there before.

    Missing folders are made. Raises `ForgetRefused` when a folder on the way, or the file, is a link; `OSError`.
    """

def sync_folders(files: Sequence[_Path]) -> None:
    """Makes renames and unlinks durable: one fsync for each folder that holds one of `files`."""

def file_stamps(files: Sequence[MemoryFile]) -> list[tuple[int, int, int, int, int] | None]:
    """Device, inode, size, mtime and ctime (ns) of each file; None when it is not there."""

def remove_leftovers(files: Sequence[_Path]) -> list[tuple[tuple[str, str] | None, str | None]]:
    """Unlinks temporary files of interrupted rewrites and overwrites their blocks.

    For each what became of the blocks (file system, fate), and the reason when it could not be unlinked.
    """

@final
class Store:
    """A per-agent database, or a session store elsewhere, through one SQLite connection."""

    @staticmethod
    def open_agent(path: _Path, agent: str, *, write: bool, busy_ms: int = 10_000) -> Store | None:
        """Opens `openclaw-agent.sqlite` of `agent`; None when there is no database.

        Read access creates and changes no file. Raises `StoreCorrupt`, `StoreTooNew`, `StoreBusy`, `OSError`.
        """
    @staticmethod
    def open_sessions(path: _Path, *, busy_ms: int = 10_000) -> Store | None:
        """Opens, for reading, a session store that may belong to several agents."""
    kind: str
    """`host` or `native`."""
    owner: str | None
    """Agent id that the database's own `schema_meta` names."""
    def nodes(self) -> list[Node]: ...
    def windows(self) -> list[Window]:
        """By `created_at`, then session id."""
    def participants(self) -> list[Participant]: ...
    def archives(self) -> list[Archive]:
        """By `created_at`, then session id, then generation."""
    def archive_text(self, session_id: str, generation: str) -> bytes | None:
        """The archived JSONL, decompressed in memory; None when there is no such row."""
    def transcript(self, session_id: str, archive_folders: Sequence[_Path] = ...) -> list[bytes] | None:
        """Events of a live session in order, each one JSON; zstd events opened; cold archives read. None: no events."""
    def lineage(self, agent: str, session_ids: Sequence[str], extra_keys: Sequence[str] = ...) -> Lineage: ...
    def tombstones_of_others(self, agent: str, session_ids: Sequence[str]) -> list[tuple[str, str]]:
        """Session ids whose tombstone belongs to another agent, with that agent."""
    def forgotten(self, agent: str) -> list[str]:
        """Session ids with a tombstone of this agent."""
    def bury(
        self, agent: str, session_ids: Sequence[str], extra_keys: Sequence[str], digest: bytes, now_ms: int
    ) -> int:
        """Writes the tombstones in one transaction, after checking the lineage again: number of new rows."""
    def join_origins(
        self, agent: str, keys: Sequence[str], session_ids: Sequence[str], extra_keys: Sequence[str], digest: bytes
    ) -> tuple[int, bytes]:
        """Records that the entries of `keys` also derive from the selected sessions.

        In one transaction, after checking the lineage again: number of new rows, and the digest with them.
        """
    def plan_index(
        self,
        refs: Refs,
        excluded: Refs,
        scrubber: Scrubber,
        changed_paths: Sequence[str],
        deleted_corpus_paths: Sequence[str],
        external_paths: Sequence[str],
        any_selected: bool,
    ) -> IndexPlan:
        """One pass over the chunks: which go, with all that hangs on them."""
    def purge_index(
        self, agent: str, plan: IndexPlan, session_ids: Sequence[str], extra_keys: Sequence[str], digest: bytes
    ) -> IndexCounts:
        """Deletes what the plan lists, in one transaction; counts are measured."""
    def delete_origins(self, agent: str, entry_keys: Sequence[str]) -> int: ...
    def transcript_sizes(self) -> list[tuple[str, int]]:
        """Session ids with a live transcript, and bytes of their events with a newline between them."""
    def stage_origins(self, agent: str, origins: Sequence[tuple[str, str, str | None, str, int]]) -> list[str]:
        """Records origins in one transaction: entry key, session id, session key, class, time in ms.

        A row that is there stays as it is. Those of sessions that were forgotten by now are left out: their ids.
        """
    def checkpoint(self, deadline_ms: int = 5_000) -> bool:
        """Truncates the write-ahead log; False while a reader pins it."""
    def unchanged(self) -> bool:
        """For read access: whether the file is still the one that was read."""
    def close(self) -> None: ...

@final
class StateStore:
    """The shared database `state/openclaw.sqlite` through one SQLite connection."""

    @staticmethod
    def open(path: _Path, *, write: bool, busy_ms: int = 10_000) -> StateStore | None: ...
    @staticmethod
    def create_minimal(path: _Path) -> None:
        """Makes the smallest state database that a host accepts."""
    def agent_databases(self) -> list[tuple[str, str]]:
        """The registry: agent id and database path (relative to the state directory, or absolute)."""
    def observed_writes(self, real_workspace_key: str) -> list[ObservedWrite]: ...
    def plan(
        self, workspace_key: str, agent: str, refs: Refs, scrubber: Scrubber, entry_keys: Sequence[str]
    ) -> StatePlan: ...
    def apply(self, plan: StatePlan, now_ms: int) -> StateCounts:
        """Deletes and rewrites what the plan lists, in one transaction."""
    def rows(self, workspace_key: str, namespace: str) -> list[tuple[str, bytes]]:
        """Logical keys and JSON values of a namespace, oldest first. Rows that cannot be decoded are left out."""
    def put_rows(
        self, workspace_key: str, workspace: str, rows: Sequence[tuple[str, str, str | None]], now_ms: int
    ) -> None:
        """Writes rows in one transaction: namespace, logical key, JSON of the value (None removes the row)."""
    def lock_workspace(self, workspace_key: str, owner: str, now_ms: int, wait_ms: int = 10_000) -> None:
        """Takes the workspace lock as the host does. Raises `StoreBusy` naming the owner."""
    def unlock_workspace(self, workspace_key: str, owner: str) -> bool:
        """Gives the lock back; False when `owner` no longer held it."""
    def checkpoint(self, deadline_ms: int = 5_000) -> bool: ...
    def unchanged(self) -> bool: ...
    def close(self) -> None: ...

def create_native(state_dir: _Path, agent: str, now_ms: int) -> None:
    """Makes the two databases of a native state directory, with only the tables that memory needs."""

# -- verification -----------------------------------------------------------------------------

@final
class Gathered:
    """What a deletion is about to remove. `shared`: texts that surviving sessions said too, which are left out.

    `candidates`: distinct texts, words and embeddings before that, and before the limit of 50,000 of a kind.
    """

    needles: Needles
    shared: int
    candidates: int
    erased: Needles | None
    """What earlier runs removed, without what surviving sessions said since."""

def gather(
    refs: Refs,
    scrubber: Scrubber,
    corpus: Corpus,
    memory_files: Sequence[MemoryFile],
    corpus_files: Sequence[_Path],
    memory: Store | None,
    index: IndexPlan | None,
    state: StateStore | None,
    state_plan: StatePlan | None,
    keep_shared: bool,
    erased: Needles | None = None,
) -> Gathered:
    """Reads what the plans remove, and leaves out what also stands in something that stays by the rules.

    `erased`: what earlier runs for the same sessions removed.
    """

def unsaid(erased: Needles, refs: Refs, corpus_files: Sequence[_Path]) -> Needles:
    """`erased` without what stands in a corpus line of a session that is not selected."""

def entries_of(files: Sequence[_Path]) -> list[list[tuple[list[str], bytes]]]:
    """For each file its entries in order: keys of their markers, and SHA-256 of markers and block."""

# -- receipts and unused pages -------------------------------------------------------------------

@final
class Link:
    """One link of a chain of receipts. `stage`: `begun`, `deleted` or `completed`; `body`: a JSON object."""

    seq: int
    receipt: str
    agent: str
    stage: str
    created_at: int
    body: str
    previous: str
    hash: str

def keep_receipt(store: Store | StateStore, receipt: str, agent: str, now_ms: int, body: str, shingles: bytes) -> None:
    """From now on every deletion through this store adds a link, in its own transaction.

    `body` and `shingles` are written with the tombstones. They must hold counts and keyed hashes only.
    """

def complete_receipt(store: Store | StateStore, receipt: str, agent: str, body: str, now_ms: int) -> None:
    """Adds the link that says that all is gone and was looked for in vain."""

def receipts(store: Store | StateStore) -> list[Link]:
    """All links, in order."""

def receipt_shingles(store: Store | StateStore, receipts: Sequence[str]) -> list[bytes]:
    """Keyed hashes that these receipts keep, a block for each run that was begun."""

def check_receipts(store: Store | StateStore) -> tuple[int, str] | None:
    """Computes every hash again: position of the first link that does not hold, and what is the matter with it."""

def erase_free_pages(store: Store | StateStore) -> str:
    """Leaves no old byte in free pages: `released` (the file is shorter), `blanked` or `none` (there were none)."""

def sweep_beside(store: Store | StateStore) -> list[tuple[str, tuple[str, str] | None, str | None]]:
    """Removes a rollback journal that was kept, and indexes beside the database whose builder died.

    For each file its path and the rest as in `remove_leftovers`. An index that changed within ten minutes, or that a
    process holds a lock on, is still being built and stays.
    """

def rebuild_full_text(store: Store | StateStore) -> None:
    """Writes the full-text indexes of the memory anew from their rows."""

def vacuum(store: Store | StateStore) -> None:
    """Writes the whole database anew, without free pages and old bytes in used ones.

    Raises `OSError` (ENOSPC) when there is no room for the copies beside it; the database is as it was then.
    """

def kill_point(name: str) -> None:
    """A named place where a test can kill the process; does nothing unless `CENOTAPH_KILL_POINTS` is set."""

# -- order -------------------------------------------------------------------------

def locale_order(texts: Sequence[str]) -> list[int]:
    """Positions that sort `texts` by the root locale of the Unicode collation (CLDR), ties kept in order."""

def words(text: str) -> list[str]:
    """The words of a text in order, by the Unicode rules and the dictionaries of ICU; no punctuation, no symbols."""

# -- residue ----------------------------------------------------------------------------------

@final
class Needles:
    """What must not be left in any file, compiled in all its spellings; see `find_residue`."""

    def __new__(
        cls,
        texts: Sequence[bytes] = ...,
        words: Sequence[bytes] = ...,
        raw: Sequence[bytes] = ...,
        vectors: Sequence[Sequence[float]] = ...,
    ) -> Needles:
        """Compiles needles, each once. Those that are too short are left out: `len` does not count them.

        `texts`: UTF-8 of 12 bytes or more without a newline, looked for as UTF-8, UTF-16, JSON string, escaped
        Markdown and base64; pieces of 32 bytes of texts of 48 bytes or more count where no live content is.
        `words`: terms of full-text indexes of 8 bytes or more in lower case; their last 8 bytes count in full-text
        tables and where no live content is. `raw`: 16 bytes or more, as they are. `vectors`: embeddings of any
        length, looked for by the middle of their float32, float64 and int8 forms.
        """

    @staticmethod
    def from_bytes(data: bytes) -> Needles:
        """The set that `to_bytes` wrote. Raises `ForgetRefused` when the bytes are damaged."""

    @staticmethod
    def from_shingles(shingles: Sequence[bytes], key: bytes) -> Needles:
        """The set that made the `shingles` under the same key, without its terms and fragments.

        Raises `ForgetRefused` when the shingles are damaged.
        """

    def __len__(self) -> int:
        """Number of needles; of a set made from shingles, that of the shingles."""

    def to_bytes(self) -> bytes:
        """The set, for a pipe to a process of the same build. It holds the needles, or the key."""

    def shingles(self, key: bytes) -> bytes:
        """What a receipt keeps instead of texts: records of 16 bytes, sorted, one for each spelling of a needle.

        A record holds the spelling and the length, 24 bits of a keyed hash of 8 of its bytes, and 8 bytes of
        HMAC-SHA256. Whoever has the key can test a guess of a whole text; without it a record tells the length, and
        whether 8 bytes are the same as in another one.
        """

@final
class Place:
    """A place that holds needles.

    `part`: `file`, `member` (inside a gzip or zstd file or value), `row` (live content of a table), `slack` (unused
    bytes of a page of a table), `free` (a page of no table), `log` (a write-ahead log) or `journal`. `table` is that
    of a row, slack, or packed value; None for a row when pages could not be attributed. `needles`: distinct needles
    found there. `offset`: of the first hit, in the file; in what was unpacked for a member of a file; where the table
    begins for a value that was read through its table.
    """

    path: str
    part: str
    table: str | None
    needles: int
    offset: int

def find_residue(
    files: Sequence[_Path], needles: Needles, kept_tables: Sequence[str] = ..., threads: int = 0
) -> tuple[list[Place], list[tuple[str, str]], int]:
    """Searches every byte of `files`: places with needles; files that could not be searched, with the reason; bytes.

    gzip and zstd data is opened in memory. Databases are also read through SQLite, without changing a file: hits get
    the name of their table, and values that may be cut by page borders or are packed are searched as a whole, but not
    those of `kept_tables`. Run it in a process that has none of the databases open: those are failures.
    """

def files_below(roots: Sequence[_Path]) -> tuple[list[str], list[tuple[str, str]]]:
    """Every regular file below `roots`, each once, sorted, and folders that could not be listed, with the reason.

    Links below a root are not followed. A root that is missing is no failure.
    """
