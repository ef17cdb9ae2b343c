"""Which rows of a batch have a certificate, and what observes them."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from collectors.certificate import CertificateObserver
from collectors.config import StudyPlan
from collectors.decode import Generation
from collectors.rows import Row, stack_rows

__all__ = ["is_certified", "make_certificate", "radii_of_runs"]


def is_certified(row: Row) -> bool:
    """Return whether the reads of a row have a certificate: a Poisson sample's, with the offset log(1/pi).

    The certificate takes the positions to be drawn independently. In a sample of fixed size they are not,
    and its variance may be larger than that of independent draws.
    """
    return row.selection.design == "poisson" and row.selection.offset


def make_certificate(
    plan: StudyPlan, rows: Sequence[Row], shape: Sequence[int]
) -> CertificateObserver | None:
    """Make the observer of the certified rows of a batch; None without such rows.

    Parameters
    ----------
    plan : StudyPlan
        Which of their reads are certified.
    rows : sequence of Row
        Rows of the batch.
    shape : sequence of int
        Number of layers and of query heads.
    """
    certified = [number for number, row in enumerate(rows) if is_certified(row)]
    if not certified:
        return None
    n_layers, n_heads = shape
    designs = [rows[number].selection for number in certified]
    certificate = plan.certificate
    return CertificateObserver(
        rows=certified,
        kept=stack_rows([design.kept.expand(n_layers, -1, -1) for design in designs]),
        inclusion_probability=stack_rows(
            [design.inclusion_probability.expand(n_layers, -1, -1) for design in designs]
        ),
        heads=list(range(0, n_heads, certificate.head_stride)),
        layers=frozenset(range(0, n_layers, certificate.layer_stride)),
        steps=certificate.steps,
        delta=certificate.delta,
    )


def radii_of_runs(
    observer: CertificateObserver | None, generations: Sequence[Generation]
) -> dict[int, Tensor]:
    """Certify what was observed, and return the radii of each certified row up to its own end.

    Parameters
    ----------
    observer : CertificateObserver, optional
        After the decoding.
    generations : sequence of Generation
        What the rows of the batch generated.

    Returns
    -------
    dict of int to Tensor, shape [S, L', H']
        By row of the batch: its radii by step, layer and head. Empty without an observer.
    """
    if observer is None:
        return {}
    return {row: observer.per_head(row, n_reads=len(generations[row].token_ids) + 1) for row in observer.rows}
