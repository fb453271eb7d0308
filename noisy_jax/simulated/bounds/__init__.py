"""Guarantees: learning rate, second moment and regret bound of each learner.

All formulas are computed with arrays, so that a horizon may be traced.
`as_printed` holds those formulas that the papers print differently. Subquantile minimization has no
bound that can be computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisy_jax.gone import refuse
from noisy_jax.simulated.bounds import as_printed
from noisy_jax.simulated.bounds.after_run import (
    adaptive_rate,
    at_adaptive_rate,
    corrected_ftrl,
    exponentiated_gradient,
    mixture,
    parameter_free,
)
from noisy_jax.simulated.bounds.guarantee import (
    Guarantee,
    high_probability,
    rate_of,
)
from noisy_jax.simulated.bounds.kernel import parallel_worlds, surrogate_radius
from noisy_jax.simulated.bounds.linear import (
    DataMoments,
    known_covariance,
    moments,
    self_bounding,
    two_copies,
    uncorrected,
)
from noisy_jax.simulated.bounds.mistake_counts import (
    Drift,
    alma,
    drift,
    margin_errors,
    mistakes,
)
from noisy_jax.simulated.bounds.multilevel import multilevel
from noisy_jax.simulated.bounds.norma import (
    online_to_batch,
    regularized_risk,
    truncation_error,
)
from noisy_jax.simulated.bounds.one_copy import (
    one_copy_excess,
    one_copy_lower_bound,
)
from noisy_jax.simulated.bounds.unknown_noise import random_truncation, unknown_noise

__all__ = [
    "DataMoments",
    "Drift",
    "Guarantee",
    "adaptive_rate",
    "alma",
    "as_printed",
    "at_adaptive_rate",
    "corrected_ftrl",
    "drift",
    "exponentiated_gradient",
    "high_probability",
    "known_covariance",
    "margin_errors",
    "mistakes",
    "mixture",
    "moments",
    "multilevel",
    "one_copy_excess",
    "one_copy_lower_bound",
    "online_to_batch",
    "parallel_worlds",
    "parameter_free",
    "random_truncation",
    "rate_of",
    "regularized_risk",
    "self_bounding",
    "surrogate_radius",
    "truncation_error",
    "two_copies",
    "uncorrected",
    "unknown_noise",
]

if not TYPE_CHECKING:  # with it, a type checker would take any name for right

    def __getattr__(name: str) -> Any:
        """Raises an AttributeError; for a name that has left, it names the replacement."""
        refuse(__name__, name)
