"""Claims of registrations as manifests of PRML 0.1, and manifests as registrations."""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
from datetime import UTC, datetime
from typing import Any

import msgspec
import yaml

from kvstats.document import Document, Place
from kvstats.errors import InputError, nearest_name
from kvstats.estimators import ESTIMATORS
from kvstats.prereg.comparison import comparison_of
from kvstats.prereg.plan import ClaimPlan, Plan, load_plan
from kvstats.prereg.prml import VERSION, ManifestFields, canonical_bytes, read_manifest, refuse_not_portable
from kvstats.prereg.schema import AtLeast, EvidenceRules

__all__ = ["export_claim", "import_manifest"]

OWN_METRIC = re.compile(r"kvstats\.([a-z_0-9]+)\.([a-z_]+)")
"""Metrics of manifests that `export_claim` wrote: the estimator, and the column that is compared."""

DEFAULT_TOLERANCE = 1e-9

WHOLE = ("evidence", "policies")
"""Blocks of a query that belong to the registration as a whole."""


def export_claim(
    path: str | os.PathLike[str],
    claim: str,
    *,
    producer: str,
    dataset_id: str | None = None,
    dataset_sha256: str | None = None,
) -> bytes:
    """Return one claim of a registration as a manifest.

    Parameters
    ----------
    path : str or path-like
        The registration.
    claim : str
        Id of the claim. Its rule must be one comparison of a column with a number, and it must be of no
        family: a manifest cannot say more.
    producer : str
        Who makes the manifest: a domain name, an ORCID or an account.
    dataset_id, dataset_sha256 : str, optional
        Name and SHA-256 of the data. Default: the file whose hash the registration names, where it is one.

    Returns
    -------
    bytes
        The manifest in its canonical form. Everything that the number rests on is in ``metric_args``, with
        the SHA-256 of the registration. Of several rows the least counts where large values satisfy the rule
        and all must, the largest where any may, and so on.
        Guards, expected counts and what is planned stay in the registration.

    Raises
    ------
    InputError
        When the registration has an error, the claim is not known, or a manifest cannot hold it.
    """
    plan = load_plan(path)
    index, chosen = claim_of(plan, claim)
    place: Place = ("claims", index)
    compared = comparison_of(chosen.claim.supported)
    if compared is None or compared.operator == "==":
        raise plan.document.error(
            (*place, "supported"),
            f"{chosen.claim.supported!r} is not one comparison such as 'low > 0', which is all that PRML "
            "can hold",
            "export another claim",
        )
    if chosen.in_family:
        raise plan.document.error(
            place,
            f"claim {claim!r} is of a family, whose adjusted p-value decides too, and PRML cannot hold that",
            "export a claim of no family",
        )
    registered = plan.registration.registered_at.astimezone(UTC)
    dataset = dataset_of(plan, dataset_id, dataset_sha256)
    fields = {
        "version": VERSION,
        "claim_id": str(claim_uuid(registered, f"{plan.document.sha256}:{claim}")),
        "created_at": registered.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "metric": f"kvstats.{chosen.query.estimator}.{compared.column}",
        "comparator": compared.operator,
        "threshold": compared.value,
        "dataset": dataset,
        "seed": plan.design.seed,
        "producer": {"id": producer},
        "metric_args": {
            "claim": claim,
            "query": json.dumps(query_of(plan, chosen), sort_keys=True, ensure_ascii=False),
            "registration": plan.document.sha256,
            "study": plan.registration.study,
        },
        "notes": " ".join(chosen.claim.statement.split()),
    }
    refuse_not_portable(plan.document, fields, place)
    try:
        msgspec.convert(fields, ManifestFields)
    except msgspec.ValidationError as error:
        raise plan.document.error(
            place, f"claim {claim!r} makes no manifest ({error})", "shorten it"
        ) from error
    return canonical_bytes(fields)


def claim_of(plan: Plan, name: str) -> tuple[int, ClaimPlan]:
    for index, claim in enumerate(plan.claims):
        if claim.claim.id == name:
            return index, claim
    known = [claim.claim.id for claim in plan.claims]
    raise InputError.argument(
        "export_claim", "claim", name, "is no claim of the registration", nearest_name(name, known)
    )


def dataset_of(plan: Plan, name: str | None, digest: str | None) -> dict[str, str]:
    """Return name and hash of the data."""
    registered = plan.registration.data.sha256
    if name is not None and digest is not None:
        return {"id": name, "hash": digest}
    if len(registered) != 1 or name is not None or digest is not None:
        raise plan.document.error(
            ("data",),
            "the registration does not name the SHA-256 of one file, which a manifest must",
            "pass the id and the SHA-256 of the data, both",
        )
    ((name, digest),) = registered.items()
    return {"id": name, "hash": digest}


def query_of(plan: Plan, claim: ClaimPlan) -> dict[str, Any]:
    """Return what the number of a claim rests on, as blocks of a registration."""
    registered, quantifier = claim.claim, claim.claim.quantifier
    query: dict[str, Any] = {
        "arguments": registered.arguments,
        "where": registered.where,
        "by": registered.by,
        "contrast": registered.contrast,
        "quantifier": {"at_least": quantifier.at_least} if isinstance(quantifier, AtLeast) else quantifier,
        "killed": registered.killed,
        "null": registered.null,
        "alternative": registered.alternative,
        "design": msgspec.to_builtins(plan.registration.design),
        "policies": msgspec.to_builtins(plan.registration.policies),
    }
    evidence = plan.registration.evidence
    if evidence != EvidenceRules():
        query["evidence"] = msgspec.to_builtins(evidence)
    return {name: value for name, value in query.items() if value not in (None, {}, [])}


def claim_uuid(time: datetime, name: str) -> uuid.UUID:
    """Return a UUID of version 7 of a time whose other bits follow from a name: always the same one."""
    milliseconds = int(time.timestamp() * 1000)
    noise = int.from_bytes(hashlib.sha256(name.encode()).digest()[:10])
    number = (milliseconds << 80) | (noise & ((1 << 80) - 1))
    number = number & ~(0xF << 76) | (0x7 << 76)
    return uuid.UUID(int=number & ~(0x3 << 62) | (0x2 << 62))


def import_manifest(path: str | os.PathLike[str], *, data: str | None = None) -> str:
    """Return a registration whose one claim is that of a manifest.

    Parameters
    ----------
    path : str or path-like
        The manifest. Its metric must be one that `export_claim` wrote, or the name of an estimator; then
        ``metric_args``, ``tolerance`` aside, are the estimator's arguments.
    data : str, optional
        Where the logs are, relative to the registration. Default: the id of the manifest's dataset.

    Returns
    -------
    str
        YAML, for `kvstats.verify`; the logs must have the manifest's dataset hash.

    Raises
    ------
    InputError
        When it is no manifest, or its metric is no estimator.
    """
    manifest = read_manifest(path)
    fields, document = manifest.fields, manifest.document
    own = OWN_METRIC.fullmatch(fields.metric)
    estimator, column = own.groups() if own else (fields.metric, "estimate")
    if estimator not in ESTIMATORS:
        raise document.error(
            ("metric",),
            f"metric is {fields.metric!r}, which is no estimator",
            nearest_name(estimator, ESTIMATORS),
        )
    query = own_query(document, fields) if own else {"arguments": foreign_arguments(fields)}
    location = fields.dataset.id if data is None else data
    design = {"seed": fields.seed, **query.pop("design", {})}
    claim = {
        "id": fields.metric_args.get("claim", "claim"),
        "statement": fields.notes or f"{fields.metric} {fields.comparator} {fields.threshold!r}",
        "estimator": estimator,
        **{name: value for name, value in query.items() if name not in WHOLE},
        "supported": rule_of(fields, column),
    }
    registration: dict[str, Any] = {
        "study": fields.metric_args.get("study", fields.dataset.id) if own else fields.dataset.id,
        "registered_at": fields.created_at,
        "authors": [fields.producer.id],
        "data": {"runs": [location]}
        | ({} if re.search(r"[*?\[]", location) else {"sha256": {location: fields.dataset.hash}}),
        "design": design,
        **{block: query[block] for block in WHOLE if block in query},
        "claims": [claim],
    }
    heading = f"# From the PRML manifest {fields.claim_id}, SHA-256 {manifest.sha256}\n"
    return heading + yaml.dump(
        registration, Dumper=PlainDumper, sort_keys=False, allow_unicode=True, width=100
    )


def own_query(document: Document, fields: ManifestFields) -> dict[str, Any]:
    """Return the query of a manifest that `export_claim` wrote."""
    place: Place = ("metric_args", "query")
    try:
        query = json.loads(fields.metric_args.get("query", "{}"))
    except (TypeError, ValueError, RecursionError) as error:
        raise document.error(
            place, f"metric_args.query is not JSON ({error})", "export the claim again"
        ) from error
    if not isinstance(query, dict):
        raise document.error(place, "metric_args.query is no mapping", "export the claim again")
    return query


def foreign_arguments(fields: ManifestFields) -> dict[str, Any]:
    return {name: value for name, value in fields.metric_args.items() if name != "tolerance"}


def rule_of(fields: ManifestFields, column: str) -> str:
    """Return the comparison as a rule; equality is within a tolerance."""
    if fields.comparator != "==":
        return f"{column} {fields.comparator} {decimal(fields.threshold)}"
    tolerance = fields.metric_args.get("tolerance", DEFAULT_TOLERANCE)
    return f"ABS({column} - ({decimal(fields.threshold)})) < {decimal(float(tolerance))}"


def decimal(value: float) -> str:
    """Write a number without an exponent, exactly as it is read again."""
    text = format(value, ".17f").rstrip("0")
    shortest = repr(value)
    return shortest if "e" not in shortest else text + "0" * text.endswith(".")


class PlainDumper(yaml.SafeDumper):
    """Writes YAML in which all text that could be taken for anything else is in quotes."""


PLAIN_TEXT = re.compile(
    r"(?!(?:y|n|yes|no|on|off|true|false|null|none)$)[A-Za-z_][A-Za-z0-9_ /-]*", re.IGNORECASE
)


def represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = PLAIN_TEXT.fullmatch(text) and text == text.strip()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


PlainDumper.add_representer(str, represent_text)
