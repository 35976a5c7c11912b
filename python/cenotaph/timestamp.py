"""Time stamps of certificates after RFC 3161: a third party's word for when a certificate file was there.

The work is done by `rfc3161-client` (extra `cenotaph[timestamp]`): signature, chain, key usage, validity at the time
that is stamped. It finds the signer's certificate by issuer and serial number, and does not compare the hash of it in
the signed attributes (RFC 5816): that matters where an authority gave one number to two certificates.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NoReturn

from cenotaph.errors import CenotaphError

if TYPE_CHECKING:
    from datetime import datetime

    from cryptography.x509 import Certificate
    from rfc3161_client import TimeStampRequest, TimeStampResponse

_SHA256 = "2.16.840.1.101.3.4.2.1"
_GRANTED = 0


class TimestampRefused(CenotaphError):
    """A time stamp does not say what it should; the message is one sentence."""


def query(certificate: bytes) -> bytes:
    """A request for a time stamp of a certificate file, DER: its SHA-256, a random nonce, and the signer's certificate.

    Raises `CenotaphError` without the extra.
    """
    try:
        from rfc3161_client import HashAlgorithm, TimestampRequestBuilder  # noqa: PLC0415 -- an extra
    except ImportError:
        _needs_extra()
    builder = TimestampRequestBuilder().data(certificate).hash_algorithm(HashAlgorithm.SHA256)
    return builder.nonce(nonce=True).cert_request(cert_request=True).build().as_bytes()


def check(response: bytes, certificate: bytes, trusted: bytes, asked: bytes | None = None) -> datetime:
    """When the certificate file was stamped, UTC, if the stamp holds.

    `response`: DER, as an authority answers. `trusted`: certificates, PEM, one of which the signer's leads to. `asked`:
    the query; with it, the response must be the answer to it and to no other. Raises `TimestampRefused`;
    `CenotaphError` without the extra, and for a query or trusted certificates that are not what they should be.
    """
    try:
        from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response  # noqa: PLC0415
    except ImportError:
        _needs_extra()
    digest = hashlib.sha256(certificate).digest()
    request = None if asked is None else _request(asked, digest)
    roots = _roots(trusted)
    try:
        answer = decode_timestamp_response(response)
        _compare(answer, digest, request)
        VerifierBuilder(roots=roots, policy_id=request.policy if request else None).build().verify(answer, digest)
    except VerificationError as error:
        raise TimestampRefused(f"The time stamp does not hold: {_reason(error)}.") from None
    except ValueError:
        raise TimestampRefused("The response is not a time stamp response after RFC 3161.") from None
    return answer.tst_info.gen_time


def _reason(error: Exception) -> str:
    """The last words of OpenSSL, if it is they that are reported."""
    found = re.findall(r'(?:data|reason): "(?:Verify error: ?)?([^"]+)"', str(error))
    return (found[-1] if found else str(error)).rstrip(".")


def _request(asked: bytes, digest: bytes) -> TimeStampRequest:
    # The package reads requests, and does not export the function that does.
    from rfc3161_client._rust import parse_timestamp_request  # noqa: PLC0415 -- an extra

    try:
        request = parse_timestamp_request(asked)
    except ValueError:
        raise CenotaphError("The query is not a time stamp query after RFC 3161") from None
    if request.message_imprint.message != digest:
        raise TimestampRefused("The query is about another file than this certificate.")
    return request


def _roots(trusted: bytes) -> list[Certificate]:
    from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415 -- heavy

    try:
        return load_pem_x509_certificates(trusted)
    except ValueError:
        raise CenotaphError("The trusted certificates cannot be read; give them as PEM") from None


def _compare(answer: TimeStampResponse, digest: bytes, request: TimeStampRequest | None) -> None:
    """What the package would refuse in its own words, and the hash's kind, at which it does not look."""
    if answer.status != _GRANTED:
        raise TimestampRefused(f"The authority granted no time stamp: its status is {answer.status}.")
    imprint = answer.tst_info.message_imprint
    if imprint.hash_algorithm.dotted_string != _SHA256 or imprint.message != digest:
        raise TimestampRefused("The time stamp is for another file than this certificate.")
    if request is not None and answer.tst_info.nonce != request.nonce:
        raise TimestampRefused("The time stamp answers another query: its nonce is another one.")


def _needs_extra() -> NoReturn:
    message = "Time stamps need the package rfc3161-client; install it with: pip install 'cenotaph[timestamp]'"
    raise CenotaphError(message) from None
