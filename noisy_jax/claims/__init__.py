"""Every claim of the five papers: whether it holds, what is wrong, and the test that shows it.

`CLAIMS` is the table and `page` writes it out, as `python -m noisy_jax claims` does. `STATUSES`
says what each status means: "reproduced", "corrected", "contradicted", "not computable", "derived
here".
"""

from noisy_jax.claims import derived, noisy_data, noisy_kernels, norma, subquantile
from noisy_jax.claims.claim import STATUSES, Claim, counts, page

CLAIMS: tuple[Claim, ...] = (
    *noisy_data.CLAIMS,
    *noisy_kernels.CLAIMS,
    *norma.CLAIMS,
    *subquantile.CLAIMS,
    *derived.CLAIMS,
)
"""All claims, paper by paper, and after them what the library adds."""

__all__ = ["CLAIMS", "STATUSES", "Claim", "counts", "page"]
