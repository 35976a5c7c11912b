"""A certificate against a state directory's facts, and the Merkle root over entries."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace

import pytest

from cenotaph.certificate import CertificateInvalid, Reason, StateFacts, check_state, merkle_root
from certificates import CHAIN, predicate

FACTS = StateFacts(
    chain=CHAIN,
    chain_intact=True,
    completed={"r-1", "r-2"},
    hash_key_id="d1" * 8,
    buried={"c1" * 32, "c2" * 32, "c3" * 32},
    residue=0,
)


def test_the_state_that_it_tells_of() -> None:
    check_state(predicate(), FACTS)
    check_state(predicate(), replace(FACTS, residue=None))
    check_state(predicate(), replace(FACTS, chain=CHAIN[:2]))


FAULTS: list[tuple[Reason, StateFacts]] = [
    ("older-copy", replace(FACTS, chain=CHAIN[:1], completed={"r-1"}, buried=set())),
    ("older-copy", replace(FACTS, chain=[], completed=set(), buried=set())),
    ("other-chain", replace(FACTS, chain=[CHAIN[0], (2, "44" * 32), (3, "55" * 32)])),
    ("other-chain", replace(FACTS, chain=[CHAIN[0], CHAIN[2]])),
    ("chain-broken", replace(FACTS, chain_intact=False, chain=[])),
    ("not-completed", replace(FACTS, completed={"r-1"})),
    ("older-copy", replace(FACTS, others_reach=False)),
    ("other-hash-key", replace(FACTS, hash_key_id="d2" * 8, buried=set())),
    ("tombstone-missing", replace(FACTS, buried={"c1" * 32})),
    ("residue", replace(FACTS, residue=1)),
]


@pytest.mark.parametrize(("reason", "facts"), FAULTS)
def test_each_fault_has_its_reason(reason: Reason, facts: StateFacts) -> None:
    with pytest.raises(CertificateInvalid, match=r"^[^\n.]*\.$") as caught:
        check_state(predicate(), facts)
    assert caught.value.reason == reason


def test_a_certificate_without_a_receipt_proves_nothing_about_a_state() -> None:
    with pytest.raises(CertificateInvalid) as caught:
        check_state({**predicate(), "receipt": None}, FACTS)
    assert caught.value.reason == "no-receipt"


# -- the Merkle root --------------------------------------------------------------------------

# Leaves and roots of the reference tests of Certificate Transparency (RFC 6962); the leaves stand in ascending order.
LEAVES = [
    "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"
]  # fmt: skip
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


@pytest.mark.parametrize("size", range(len(ROOTS)))
def test_roots_of_the_reference(size: int) -> None:
    assert merkle_root(bytes.fromhex(leaf) for leaf in LEAVES[:size]) == ROOTS[size]


def by_definition(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, word for word."""
    if len(leaves) < 2:
        return hashlib.sha256(b"\0" + leaves[0] if leaves else b"").digest()
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return hashlib.sha256(b"\1" + by_definition(leaves[:half]) + by_definition(leaves[half:])).digest()


@pytest.mark.parametrize("size", [*range(40), 255, 256, 257, 1000])
def test_the_order_in_which_leaves_come_does_not_matter(size: int) -> None:
    leaves = [index.to_bytes(2, "big") for index in range(size)]
    expected = by_definition(leaves).hex()
    random.Random(size).shuffle(leaves)
    assert merkle_root(leaves) == expected


def test_a_leaf_more_a_leaf_less_and_a_leaf_twice_are_other_trees() -> None:
    roots = {merkle_root(leaves) for leaves in ([b"a"], [b"a", b"a"], [b"a", b"b"], [b"b"], [], [b""])}
    assert len(roots) == 6
