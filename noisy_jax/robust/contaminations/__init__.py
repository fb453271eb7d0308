"""Corruption of a share ε of the rows of a table, by adversaries of several kinds.

A contamination is a function `(key, x, y, contamination, …) -> Contaminated` of a share ε, which
may be traced. It rewrites as many rows as `subquantile` trims at the same ε, n − ⌈n(1 − ε)⌉.

- Labels far away: `gross`, `one_sided`, `shift`. Labels that hide in the noise: `shift` by little,
  `hugging`, and `adaptive`, which sees the fit. Labels from elsewhere: `flip`, `region`.
- Instances as well: `covariate`, `far_covariate`.

Some aim relative to a `target`: the labels without noise, where they are known, or a fit's
predictions. Default constants are for features and targets of about unit standard deviation.

Source: the adversary of Subquantile Minimization for Kernel Learning, who sees everything and
rewrites labels and instances alike. The paper has no experiment, and names none of these.
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
