"""Adversaries that corrupt a share ε of the rows of a table, to test robust fits with.

Each is a function `(key, x, y, contamination, …) -> Contaminated` with the arguments

    key: a JAX key; `adaptive` and `region` are not random and do not use it.
    x: `[n, d]` instances, finite.
    y: `[n]` targets, finite.
    contamination: ε in [0, ½), which may be traced. n − ⌈n(1 − ε)⌉ rows are rewritten: as many as
        `subquantile` trims with the same ε.

and constants of its own, for features and targets of about unit standard deviation. A `target` is
what the adversary aims relative to, `[n]`: the labels without noise if they are known, or the
predictions of a fit; y by default.

- Labels far away: `gross`, `one_sided`, `shift`.
- Labels hidden in the noise: `shift` with a small size, `hugging`, and `adaptive`, which sees the
  fit.
- Labels from elsewhere: `flip`, `region`.
- Instances and labels: `covariate`, `far_covariate`.

Source: the adversary of Subquantile Minimization for Kernel Learning, who sees everything and
rewrites labels and instances alike. The paper has no experiment and names none of these.
"""

from noisy_jax.robust.contaminations.contaminated import Contaminated
from noisy_jax.robust.contaminations.instances import covariate, far_covariate
from noisy_jax.robust.contaminations.labels import (
    adaptive,
    flip,
    gross,
    hugging,
    one_sided,
    region,
    shift,
)

__all__ = [
    "Contaminated",
    "adaptive",
    "covariate",
    "far_covariate",
    "flip",
    "gross",
    "hugging",
    "one_sided",
    "region",
    "shift",
]
