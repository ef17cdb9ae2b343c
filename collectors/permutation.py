"""What a retained cache cannot know: evicted values trade places, and nothing that was retained changes.

The evicted values of a read are permuted among themselves. Whatever is computed from the retained keys,
values and weights stays the same, bit by bit, while the error of the read, which depends on the evicted
values, moves. So no function of what a deterministic eviction leaves can tell its error.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from torch import Tensor

from collectors.reads import Read
from kvstats.statistics.certificate import AttentionCertificate

__all__ = ["permute_evicted", "retained_hash"]


def permute_evicted(values: Tensor, kept: Tensor, rng: np.random.Generator) -> Tensor:
    """Permute the evicted values of each head among themselves.

    Parameters
    ----------
    values : Tensor, shape [H, T, d]
        All values.
    kept : Tensor of bool, shape [H, T]
        Kept positions, whose values stay.
    rng : numpy.random.Generator
        The order is drawn once, over positions: heads that evicted the same positions trade them alike.

    Returns
    -------
    Tensor, shape [H, T, d]
    """
    order = torch.from_numpy(rng.random(values.shape[1])).to(values.device)
    source = torch.arange(values.shape[1], device=values.device).repeat(len(values), 1)
    for head, mask in enumerate(kept):
        evicted = torch.nonzero(~mask)[:, 0]
        source[head, evicted] = evicted[order[evicted].argsort()]
    return values.gather(1, source[..., None].expand_as(values))


def retained_hash(
    read: Read, kept: Tensor, inclusion_probability: Tensor, certificate: AttentionCertificate
) -> list[str]:
    """Hash what is retained of a read and what is computed from it, head by head.

    Parameters
    ----------
    read : Read
        Logits [H, T], keys and values [H, T, d].
    kept : Tensor of bool, shape [H, T]
        Kept positions.
    inclusion_probability : Tensor, shape [H, T]
        By which the kept weights are divided; 1 without an offset.
    certificate : AttentionCertificate
        Estimate, variance and radius of the read.

    Returns
    -------
    list of str, length H
        SHA-256 over the bytes of the retained keys, values, normalised weights and probabilities, of
        estimate, variance and radius, and of the read's signals: entropy of the retained weights, and the
        largest of them.
    """
    shown = (read.logits - inclusion_probability.log()).masked_fill(~kept, -torch.inf)
    weight = shown.softmax(-1)
    entropy, largest = torch.special.entr(weight).sum(-1), weight.amax(-1)
    hashes = []
    for head, mask in enumerate(kept):
        retained = [part[head, mask] for part in (read.keys, read.values, weight, inclusion_probability)]
        computed = [
            part[head]
            for part in (certificate.estimate, certificate.variance, certificate.radius, entropy, largest)
        ]
        digest = hashlib.sha256()
        for part in retained + computed:
            digest.update(part.cpu().contiguous().numpy().tobytes())
        hashes.append(digest.hexdigest())
    return hashes
