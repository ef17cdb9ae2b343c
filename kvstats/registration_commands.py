"""The commands that write, check and exchange registrations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from kvstats.command_line import ending
from kvstats.prereg.lint import lint as lint_registration
from kvstats.prereg.prml import read_manifest
from kvstats.prereg.prml_exchange import export_claim, import_manifest
from kvstats.prereg.template import TEMPLATE, example_names, new_registration
from kvstats.report.lint_table import print_lint

__all__ = ["Registration", "lint", "new", "prml"]

EXIT_TAMPERED = 3

MANIFEST_CODES = {
    0: "done",
    2: "wrong usage, or input that cannot be used",
    3: "the manifest has not the hash that was expected",
}

Registration = Annotated[Path, typer.Argument(metavar="FILE", help="The registration, a YAML file.")]
Manifest = Annotated[Path, typer.Argument(metavar="MANIFEST", help="The manifest, a YAML file.")]


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where it is to be; no file may be there.")],
    example: Annotated[
        str, typer.Option(metavar="NAME", help=f"What to start from: {', '.join(example_names())}.")
    ] = TEMPLATE,
) -> None:
    """Write a registration to start from.

    It is registered at the present time, and every block of it is explained.
    """
    new_registration(file, example=example)
    typer.echo(f"wrote {file}; check it with: kvstats lint {file}")


def lint(
    file: Registration,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check a registration without data: errors, what weakens its claims, and the power that they have.

    The power follows from the figures under 'planned'. Warnings leave the exit code at 0; an error, the same
    that verify finds, makes it 2.
    """
    found = lint_registration(file)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found.to_dict())).decode())
    else:
        print_lint(found, sys.stdout)


prml = typer.Typer(
    help="Exchange single claims with other tools, as manifests of PRML 0.1.",
    epilog=ending(
        [
            "kvstats prml export plan.yaml --claim harm --producer NAME > harm.yaml",
            "kvstats prml import harm.yaml --data logs/a.jsonl > plan.yaml",
            "kvstats prml hash harm.yaml --expect-sha256 HASH",
        ],
        MANIFEST_CODES,
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
)


@prml.command(
    "export",
    epilog=ending(["kvstats prml export plan.yaml --claim harm --producer NAME > harm.yaml"]),
    short_help="Print a claim as a manifest.",
)
def export(
    file: Registration,
    claim: Annotated[str, typer.Option(metavar="ID", help="The claim: one comparison, of no family.")],
    producer: Annotated[str, typer.Option(metavar="NAME", help="Who makes it: a domain, ORCID or account.")],
    dataset_id: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the data, instead of the registered file's.")
    ] = None,
    dataset_sha256: Annotated[
        str | None, typer.Option(metavar="HASH", help="SHA-256 of the data, with --dataset-id.")
    ] = None,
) -> None:
    """Print a claim of a registration as a manifest, in its canonical form."""
    manifest = export_claim(
        file, claim, producer=producer, dataset_id=dataset_id, dataset_sha256=dataset_sha256
    )
    typer.echo(manifest, nl=False)


@prml.command(
    "import",
    epilog=ending(["kvstats prml import harm.yaml --data logs/a.jsonl > plan.yaml"], MANIFEST_CODES),
    short_help="Print the registration of a manifest.",
)
def import_(
    manifest: Manifest,
    data: Annotated[
        str | None, typer.Option(metavar="PATH", help="Where the logs are, relative to the registration.")
    ] = None,
    expect_sha256: Annotated[
        str | None, typer.Option(metavar="HASH", help="SHA-256 that the manifest was published with.")
    ] = None,
) -> None:
    """Print a registration whose one claim is that of a manifest."""
    refuse_other_hash(manifest, expect_sha256)
    typer.echo(import_manifest(manifest, data=data), nl=False)


@prml.command(
    "hash",
    epilog=ending(["kvstats prml hash harm.yaml --expect-sha256 HASH"], MANIFEST_CODES),
    short_help="Check a manifest, and print its hash.",
)
def hash_(
    manifest: Manifest,
    expect_sha256: Annotated[
        str | None, typer.Option(metavar="HASH", help="SHA-256 that the manifest was published with.")
    ] = None,
) -> None:
    """Check a manifest, and print its hash."""
    refuse_other_hash(manifest, expect_sha256)
    typer.echo(read_manifest(manifest).sha256)


def refuse_other_hash(manifest: Path, expected: str | None) -> None:
    """End with exit code 3 where a manifest has not the hash that it was published with."""
    found = read_manifest(manifest).sha256
    if expected is not None and expected.lower() != found:
        typer.echo(f"kvstats: {manifest} has SHA-256 {found}, expected was {expected}", err=True)
        raise typer.Exit(EXIT_TAMPERED)
