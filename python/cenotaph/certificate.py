"""Erasure certificates: an in-toto Statement in a DSSE envelope, signed with Ed25519.

This one file checks a certificate. It needs `cryptography` and nothing else of this package, so that a third party can
take it alone. A certificate holds no text and no identifier in clear, except a date that a selector named; every other
identifier is a keyed hash. `docs/certificate.md` says what each member means and what it proves.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict, cast

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
PREDICATE_TYPE = "urn:cenotaph:erasure:v1"

Reason = Literal[
    "malformed",
    "not-canonical",
    "payload-type",
    "other-key",
    "signature",
    "predicate-type",
    "schema",
    "no-receipt",
    "chain-broken",
    "older-copy",
    "other-chain",
    "not-completed",
    "other-hash-key",
    "tombstone-missing",
    "residue",
]


class CertificateInvalid(Exception):
    """A certificate is refused. `reason` is a word for programs; the message is one sentence for people."""

    def __init__(self, reason: Reason, sentence: str) -> None:
        super().__init__(sentence)
        self.reason: Reason = reason


# -- what a certificate says ------------------------------------------------------------------


class Tool(TypedDict):
    """The program that erased."""

    name: str
    version: str


class Selector(TypedDict):
    """What was asked for. `value`: keyed hash; of `since` the ISO 8601 date in clear."""

    kind: Literal["session", "hook-source", "participant", "since"]
    value: str


class Counts(TypedDict):
    """Counts of what was removed, the `artifacts` of a report."""

    memoryFiles: int
    memoryEntries: int
    memoryLines: int
    sessionCorpusFiles: int
    sessionCorpusLines: int
    indexChunks: int
    indexSources: int
    ftsRows: int
    vectorRows: int
    embeddingCacheRows: int
    shortTermEntries: int
    seenHashScopes: int
    backups: int
    originRows: int


class Method(TypedDict):
    """How one kind of artifact was sanitised, in the words of NIST SP 800-88. `none`: it was not."""

    artifact: str
    method: Literal["Clear", "none"]
    technique: str


class Verification(TypedDict):
    """What a scan of every byte found afterwards. `bytes`: bytes read. `databaseMethod`: what free pages needed."""

    result: Literal["clean", "residue", "not-run"]
    needles: int
    sharedNeedles: int
    files: int
    bytes: int
    databaseMethod: Literal["secure-delete", "freelist", "vacuum"] | None


class Kept(TypedDict):
    """A kind of thing that stays by design."""

    what: str
    count: int


class Count(TypedDict):
    """How many there are."""

    count: int


class ChainHead(TypedDict):
    """A row of the receipt chain: its number, from 1, and its SHA-256."""

    seq: int
    hash: str


class Receipt(TypedDict):
    """The receipt of the deletion, and the head of the chain that it stands in."""

    id: str
    chain: ChainHead


class Entries(TypedDict):
    """How many memory entries there are, and the Merkle root over them."""

    count: int
    root: str


class Survivors(TypedDict):
    """Entries before and after. `altered`: entries that stay and are not byte for byte what they were."""

    before: Entries
    after: Entries
    altered: int


class FileSystem(TypedDict):
    """What overwriting old blocks was worth on one kind of file system. `files`: files concerned."""

    type: str
    overwritten: Literal["yes", "no", "unsupported"]
    files: int


class Predicate(TypedDict):
    """What a certificate says about one deletion; `docs/erasure-v1.schema.json` is the same as a JSON schema."""

    tool: Tool
    agent: str
    createdAt: str
    selectors: list[Selector]
    sessions: list[str]
    keyId: str
    counts: Counts
    methods: list[Method]
    verification: Verification
    kept: list[Kept]
    review: Count
    refusals: Count
    pending: list[str]
    receipt: Receipt | None
    entries: Survivors
    fileSystems: list[FileSystem]


class Subject(TypedDict):
    """What a statement is about: a name and `{"sha256": hex}`."""

    name: str
    digest: dict[str, str]


class Statement(TypedDict):
    """An in-toto Statement v1 whose predicate tells of an erasure."""

    _type: str
    subject: list[Subject]
    predicateType: str
    predicate: Predicate


# -- the canonical spelling -------------------------------------------------------------------

_SAFE_INTEGER = 2**53 - 1


def canonical(value: object) -> bytes:
    """The one spelling of a JSON value: the JSON Canonicalization Scheme, RFC 8785, in UTF-8.

    A float that is a whole number is written as the integer that it is, as ECMAScript does. Raises `ValueError` for
    what has no exact spelling that every reader agrees on (fractions, integers beyond 2^53 - 1, lone surrogates), and
    `TypeError` for what is not JSON.
    """
    return "".join(_spelled(value)).encode()


def _spelled(value: object) -> Iterable[str]:
    if value is None or isinstance(value, bool):
        yield "null" if value is None else "true" if value else "false"
    elif isinstance(value, int | float):
        yield _number(value)
    elif isinstance(value, str):
        yield _string(value)
    elif isinstance(value, Mapping):
        yield from _members(cast("Mapping[object, object]", value))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(cast("Sequence[object]", value)):
            yield "," if index else "["
            yield from _spelled(item)
        yield "]" if value else "[]"
    else:
        raise TypeError(f"{type(value).__name__} is not JSON")


def _members(mapping: Mapping[object, object]) -> Iterable[str]:
    names = [name for name in mapping if isinstance(name, str)]
    if len(names) < len(mapping):
        raise TypeError("a member's name is not a string")
    for index, name in enumerate(sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))):
        yield "," if index else "{"
        yield f"{_string(name)}:"
        yield from _spelled(mapping[name])
    yield "}" if mapping else "{}"


def _number(value: float) -> str:
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("a number that is not whole has no place in a certificate")
    if abs(value) > _SAFE_INTEGER:
        raise ValueError("a number beyond 2^53 - 1 is not read alike by every program")
    return str(int(value))


def _string(text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("a string holds half of a surrogate pair")
    return json.dumps(text, ensure_ascii=False)


# -- what may stand in a predicate ------------------------------------------------------------

_Shape = Callable[[object, str], None]


def _wrong(where: str, what: str) -> CertificateInvalid:
    return CertificateInvalid("schema", f"The certificate's {where} is not {what}.")


def _object(**members: _Shape) -> _Shape:
    def check(value: object, where: str) -> None:
        if not isinstance(value, Mapping):
            raise _wrong(where, "an object")
        given = cast("Mapping[object, object]", value)
        if given.keys() != members.keys():
            raise _wrong(where, f"an object of exactly these members: {', '.join(members)}")
        for name, shape in members.items():
            shape(given[name], f"{where}.{name}")

    return check


def _list(item: _Shape) -> _Shape:
    def check(value: object, where: str) -> None:
        if not isinstance(value, list):
            raise _wrong(where, "a list")
        for index, member in enumerate(cast("list[object]", value)):
            item(member, f"{where}[{index}]")

    return check


def _text(pattern: str, what: str) -> _Shape:
    known = re.compile(pattern)

    def check(value: object, where: str) -> None:
        if not isinstance(value, str) or not known.fullmatch(value):
            raise _wrong(where, what)

    return check


def _one_of(*words: str) -> _Shape:
    return _text("|".join(map(re.escape, words)), f"one of {', '.join(words)}")


def _or_null(shape: _Shape) -> _Shape:
    def check(value: object, where: str) -> None:
        if value is not None:
            shape(value, where)

    return check


def _whole(least: int) -> _Shape:
    def check(value: object, where: str) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _SAFE_INTEGER:
            raise _wrong(where, f"a whole number of {least} or more")

    return check


_DAY = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]"
_COUNT = _whole(0)
_HASH = _text(r"[0-9a-f]{64}", "64 digits of lower-case hexadecimal")
_KEY_ID = _text(r"[0-9a-f]{16}", "16 digits of lower-case hexadecimal")
_STAMP = _text(rf"{_DAY}T{_TIME}:[0-5][0-9]\.[0-9]{{3}}Z", "a moment in UTC with milliseconds")
_SINCE = _text(rf"{_DAY}(T{_TIME}(:[0-5][0-9](\.[0-9]{{1,9}})?)?(Z|[+-]{_TIME})?)?", "an ISO 8601 date")
# No slash, backslash or "at" sign: no path and no address can stand where words are meant.
_WORDS = _text(r"[A-Za-z0-9][A-Za-z0-9 ,.;:()'_+-]{0,199}", "a few words without a path")
_NAME = _text(r"[A-Za-z0-9._+-]{1,64}", "a short name")


def _mapping(value: object) -> dict[object, object]:
    return cast("dict[object, object]", value) if isinstance(value, dict) else {}


def _selector(value: object, where: str) -> None:
    _object(
        kind=_one_of("session", "hook-source", "participant", "since"),
        value=_SINCE if _mapping(value).get("kind") == "since" else _HASH,
    )(value, where)


_ENTRIES = _object(count=_COUNT, root=_HASH)
_PREDICATE = _object(
    tool=_object(name=_NAME, version=_NAME),
    agent=_HASH,
    createdAt=_STAMP,
    selectors=_list(_selector),
    sessions=_list(_HASH),
    keyId=_KEY_ID,
    counts=_object(**dict.fromkeys(Counts.__annotations__, _COUNT)),
    methods=_list(_object(artifact=_WORDS, method=_one_of("Clear", "none"), technique=_WORDS)),
    verification=_object(
        result=_one_of("clean", "residue", "not-run"),
        needles=_COUNT,
        sharedNeedles=_COUNT,
        files=_COUNT,
        bytes=_COUNT,
        databaseMethod=_or_null(_one_of("secure-delete", "freelist", "vacuum")),
    ),
    kept=_list(_object(what=_WORDS, count=_COUNT)),
    review=_object(count=_COUNT),
    refusals=_object(count=_COUNT),
    pending=_list(_WORDS),
    receipt=_or_null(_object(id=_NAME, chain=_object(seq=_whole(1), hash=_HASH))),
    entries=_object(before=_ENTRIES, after=_ENTRIES, altered=_COUNT),
    fileSystems=_list(_object(type=_NAME, overwritten=_one_of("yes", "no", "unsupported"), files=_COUNT)),
)
_SUBJECTS = _list(_object(name=_WORDS, digest=_object(sha256=_HASH)))


def check_predicate(predicate: object) -> None:
    """Raises `CertificateInvalid` (`schema`), naming the member, unless this can stand in a certificate."""
    _PREDICATE(predicate, "predicate")


# -- signing and checking ---------------------------------------------------------------------


def key_id(public_key: Ed25519PublicKey) -> str:
    """SHA-256 of the key's SubjectPublicKeyInfo in DER, 64 hexadecimal digits: the `keyid` of an envelope."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(public_key.public_bytes(serialization.Encoding.DER, form)).hexdigest()


def signed_bytes(payload_type: str, payload: bytes) -> bytes:
    """What a DSSE v1 signature is made over: the pre-authentication encoding of type and payload."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(predicate: Mapping[str, object], subjects: Mapping[str, str], private_key: Ed25519PrivateKey) -> bytes:
    """The bytes of a certificate file.

    `subjects`: what the statement is about, a SHA-256 in hexadecimal by its name; at least one. Raises
    `CertificateInvalid` (`schema`) when the predicate is not one.
    """
    check_predicate(predicate)
    subject = [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(subjects.items())]
    _check_subjects(subject)
    payload = canonical(
        {"_type": STATEMENT_TYPE, "subject": subject, "predicateType": PREDICATE_TYPE, "predicate": predicate}
    )
    signature = private_key.sign(signed_bytes(PAYLOAD_TYPE, payload))
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": key_id(private_key.public_key()), "sig": base64.b64encode(signature).decode()}],
    }
    return canonical(envelope) + b"\n"


def verify(envelope: bytes, public_key: Ed25519PublicKey) -> Predicate:
    """What a certificate says, when its file is exactly as it was signed with this key.

    Raises `CertificateInvalid`: `malformed`, `not-canonical`, `payload-type`, `other-key`, `signature`,
    `predicate-type` or `schema`.
    """
    return statement(envelope, public_key)["predicate"]


def statement(envelope: bytes, public_key: Ed25519PublicKey) -> Statement:
    """Like `verify`, with the subjects that the statement is about."""
    payload = _opened(envelope, public_key)
    parsed = _parsed(payload, "payload")
    members = {name: value for name, value in _mapping(parsed).items() if isinstance(name, str)}
    if members.keys() != Statement.__annotations__.keys() or members["_type"] != STATEMENT_TYPE:
        raise CertificateInvalid("schema", "The certificate's payload is not an in-toto Statement v1.")
    if members["predicateType"] != PREDICATE_TYPE:
        raise CertificateInvalid(
            "predicate-type", f"The statement is not about an erasure: its predicate type is not {PREDICATE_TYPE}."
        )
    _check_subjects(members["subject"])
    check_predicate(members["predicate"])
    return cast("Statement", parsed)


def _opened(envelope: bytes, public_key: Ed25519PublicKey) -> bytes:
    parsed = _parsed(envelope.removesuffix(b"\n"), "file")
    payload_type, payload_text, named_key, signature_text = _envelope_members(parsed)
    if not envelope.endswith(b"\n"):
        raise CertificateInvalid("not-canonical", "The certificate's file was cut: its final newline is missing.")
    payload, signature = _decoded(payload_text), _decoded(signature_text)
    if payload_type != PAYLOAD_TYPE:
        raise CertificateInvalid("payload-type", f"The envelope's payload type is not {PAYLOAD_TYPE}.")
    genuine = _is_signed(public_key, signature, signed_bytes(payload_type, payload))
    own = key_id(public_key)
    if named_key != own and not genuine:
        raise CertificateInvalid(
            "other-key", f"The certificate names another key, {named_key[:16]}…, than the one given, {own[:16]}…."
        )
    if named_key != own or not genuine:
        raise CertificateInvalid("signature", "The certificate was altered: its signature does not fit what it says.")
    return payload


def _parsed(data: bytes, what: str) -> object:
    try:
        parsed: object = json.loads(data.decode())
        same = canonical(parsed) == data
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise CertificateInvalid("malformed", f"The certificate's {what} is not JSON.") from None
    except ValueError:
        same, parsed = False, None
    if not same:
        raise CertificateInvalid(
            "not-canonical", f"The certificate's {what} is not spelled in the one canonical way: it was altered."
        )
    return parsed


def _envelope_members(parsed: object) -> tuple[str, str, str, str]:
    envelope = _mapping(parsed)
    signatures = envelope.get("signatures")
    listed = cast("list[object]", signatures) if isinstance(signatures, list) else []
    signature = _mapping(listed[0]) if len(listed) == 1 else {}
    found = (envelope.get("payloadType"), envelope.get("payload"), signature.get("keyid"), signature.get("sig"))
    texts = [text for text in found if isinstance(text, str)]
    if len(texts) < len(found) or len(envelope) + len(signature) > len(found) + 1:
        raise CertificateInvalid("malformed", "The certificate's file is not a DSSE envelope with one signature.")
    payload_type, payload, named_key, code = texts
    return payload_type, payload, named_key, code


def _decoded(text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        raise CertificateInvalid("malformed", "The envelope holds something that is not base64.") from None
    if base64.b64encode(data).decode() != text:
        raise CertificateInvalid("not-canonical", "The envelope's base64 is not spelled in the one canonical way.")
    return data


def _is_signed(public_key: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    try:
        public_key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _check_subjects(subjects: object) -> None:
    _SUBJECTS(subjects, "subject")
    if not subjects:
        raise _wrong("subject", "a list of one or more")


# -- against a state directory ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StateFacts:
    """What a state directory says today, read by the caller."""

    chain: Sequence[tuple[int, str]]
    """The receipt chain: number and SHA-256 in hexadecimal of each row."""
    chain_intact: bool
    """Whether every row's hash follows from the row and the hash before it."""
    completed: Collection[str]
    """Ids of the receipts whose deletion was completed."""
    hash_key_id: str
    """First 16 hexadecimal digits of the SHA-256 of the key that made the keyed hashes; empty when it is not there."""
    buried: Collection[str]
    """Keyed hashes of the ids of sessions that have a tombstone."""
    others_reach: bool = True
    """Whether the chains of other databases reach to where they were when the certificate's receipt was completed."""
    residue: int | None = None
    """Pieces of erased text that a scan found again, counted at each place; `None` when none was made."""


def check_state(predicate: Predicate, facts: StateFacts) -> None:
    """Holds a verified certificate against a state directory.

    Raises `CertificateInvalid`: `no-receipt`, `chain-broken`, `older-copy`, `other-chain`, `not-completed`,
    `other-hash-key`, `tombstone-missing` or `residue`.
    """
    receipt = predicate["receipt"]
    if receipt is None:
        raise CertificateInvalid("no-receipt", "The certificate names no receipt, so no state can be held against it.")
    _check_chain(receipt["chain"], facts)
    if receipt["id"] not in facts.completed:
        raise CertificateInvalid("not-completed", "The deletion that the certificate tells of was not completed here.")
    if not facts.others_reach:
        raise CertificateInvalid(
            "older-copy", "The state database is an older copy: its receipts end before the deletion was completed."
        )
    if predicate["keyId"] != facts.hash_key_id:
        raise CertificateInvalid(
            "other-hash-key",
            "The hash key that the certificate was made with is not in the state directory.",
        )
    missing = len(set(predicate["sessions"]).difference(facts.buried))
    if missing:
        raise CertificateInvalid(
            "tombstone-missing", f"The tombstones of {missing} of the erased sessions are no longer there."
        )
    if facts.residue:
        raise CertificateInvalid(
            "residue", f"A scan found {facts.residue} pieces of erased text in the state directory."
        )


def _check_chain(head: ChainHead, facts: StateFacts) -> None:
    if not facts.chain_intact:
        raise CertificateInvalid("chain-broken", "The state directory's receipts do not follow from each other.")
    rows = dict(facts.chain)
    newest = max(rows, default=0)
    if newest < head["seq"]:
        raise CertificateInvalid(
            "older-copy",
            f"The state directory is an older copy: its receipts end at {newest}, the certificate's is {head['seq']}.",
        )
    if rows.get(head["seq"]) != head["hash"]:
        raise CertificateInvalid(
            "other-chain", f"Receipt {head['seq']} of the state directory is not the one that the certificate names."
        )


def merkle_root(leaves: Iterable[bytes]) -> str:
    """Root of the Merkle tree (RFC 6962, section 2.1) over the leaves in ascending order, 64 hexadecimal digits."""
    full: list[tuple[int, bytes]] = []
    for leaf in sorted(leaves):
        size, node = 1, hashlib.sha256(b"\0" + leaf).digest()
        while full and full[-1][0] == size:
            node = hashlib.sha256(b"\1" + full.pop()[1] + node).digest()
            size *= 2
        full.append((size, node))
    if not full:
        return hashlib.sha256().hexdigest()
    root = full.pop()[1]
    while full:
        root = hashlib.sha256(b"\1" + full.pop()[1] + root).digest()
    return root.hex()
