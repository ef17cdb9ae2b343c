"""Time-stamp tokens: a third party's signature on a hash and a time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kvstats.errors import InputError
from kvstats.prereg.anchors import Anchor
from kvstats.prereg.data import in_utc

__all__ = ["check_timestamp"]

SHA256_OID = "2.16.840.1.101.3.4.2.1"


def check_timestamp(
    token: str | os.PathLike[str],
    roots: str | os.PathLike[str] | None,
    digests: Mapping[str, tuple[str, int | None]],
) -> Anchor | str:
    """Hold hashes against an RFC 3161 time-stamp response.

    Parameters
    ----------
    token : str or path-like
        The response, such as ``openssl ts`` and ``curl`` get it; its imprint must be a SHA-256.
    roots : str or path-like
        Certificates, PEM, of the authorities to trust. Anyone can sign a time; it is these that are believed.
    digests : mapping of str to tuple
        Hashes that it may be of, each with what it covers.

    Returns
    -------
    Anchor or str
        The anchor, or what is wrong.

    Raises
    ------
    InputError
        Without the package ``rfc3161-client``, without roots, and for files that are of another kind.

    Notes
    -----
    Source: RFC 3161, section 2.4.2. The certificates need be valid at the time of the token, not now.
    """
    try:
        import cryptography.x509 as x509
        import rfc3161_client as rfc3161
    except ImportError as error:
        raise InputError.argument(
            "verify",
            "timestamp",
            str(token),
            "needs the package rfc3161-client, which is not installed",
            "pip install 'kvstats[seal]'",
        ) from error
    if roots is None:
        raise InputError.argument(
            "verify",
            "timestamp",
            str(token),
            "needs the certificates of the authorities that are trusted",
            "pass a PEM file as timestamp_roots",
        )
    try:
        response = rfc3161.decode_timestamp_response(content_of("timestamp", token))
        facts = response.tst_info
    except ValueError as error:
        raise InputError.argument(
            "verify", "timestamp", str(token), f"is no time-stamp response ({error})", "pass the .tsr file"
        ) from error
    try:
        trusted = x509.load_pem_x509_certificates(content_of("timestamp_roots", roots))
    except ValueError as error:
        raise InputError.argument(
            "verify", "timestamp_roots", str(roots), f"has no certificates ({error})", "pass a PEM file"
        ) from error
    name, imprint = Path(token).name, facts.message_imprint
    if imprint.hash_algorithm.dotted_string != SHA256_OID:
        raise InputError.argument(
            "verify", "timestamp", str(token), "is not of a SHA-256", "request a token with -sha256"
        )
    coverage = digests.get(imprint.message.hex())
    if coverage is None:
        return (
            f"{name} is a time-stamp of SHA-256 {imprint.message.hex()}, which the registration does not have"
        )
    try:
        rfc3161.VerifierBuilder(roots=trusted).build().verify(response, imprint.message)
    except (rfc3161.VerificationError, ValueError):
        # The reason that is given depends on the build of OpenSSL, and reports must not.
        return f"{name} is not signed by an authority that is trusted"
    return Anchor("timestamp", True, *coverage, in_utc(facts.gen_time), f"serial {facts.serial_number}")


def content_of(argument: str, path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError.argument(
            "verify", argument, str(path), f"cannot be read ({error.strerror})", "check the path"
        ) from error
