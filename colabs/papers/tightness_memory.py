"""From which round on Theorem 6 lets the memory of NORMA drop terms."""

import math

import numpy as np

from noisy_jax.engine.windows import grown
from noisy_jax.validation.numbers import between, positive

_LONGEST = 36  # e^36 rounds are more than any run has, and below 2^52


def growing_start(decay: float, excess: float) -> int:
    """t0 of `growing` in Theorem 6: the first round from which on three conditions always hold.

        ηλ t^(−1/2) ≤ 1,   exp(−ηλ t^ε) ≤ ηλ t^(−1/2),   ⌈t^(1/2 + ε)⌉ ≤ 3t/4

    The theorem is useful if ηλ is large and ε is not near 0 or ½: t0 is 7 for ηλ = 0.9 and ε = 0.3,
    but 4.6 million for ηλ = 0.1.

    Args:
        decay: ηλ > 0, of the learning rate η/√t.
        excess: ε, 0 < ε < ½.

    Source: Online Learning with Kernels, Theorem 6.

    Example:
        >>> growing_start(0.5, 0.4)
        80
    """
    positive("decay", decay, "ηλ, for the learning rate η/√t")
    between("excess", excess, 0, 0.5, "ε of t^(1/2 + ε)")
    # log t where the gap of the second condition is least, and where the third begins to hold.
    log_turn = -math.log(2 * excess * decay) / excess
    log_crossing = math.log(4 / 3) / (0.5 - excess)
    if max(log_turn, log_crossing) > _LONGEST:
        raise ValueError(
            f"decay = {decay:g} and excess = {excess:g} put t0 beyond e^{_LONGEST} rounds, so that "
            "nothing would be dropped: use a larger decay, or an excess of 0.3 to 0.45"
        )

    def log_gap(t):  # the second condition is log_gap(t) >= 0; it is convex in log t
        return decay * t**excess + math.log(decay) - math.log(t) / 2

    # If it fails anywhere, it fails at a whole number next to its minimum.
    turn = math.exp(log_turn)
    low = max([0] + [t for t in (int(turn), int(turn) + 1) if t > 0 and log_gap(t) < 0])
    high = 2 * low + 1
    while log_gap(high) < 0:
        high *= 2
    while low > 0 and high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if log_gap(middle) < 0 else (low, middle)
    # t^(1/2 + ε) = 3t/4 at `crossing`; after `last` the ceiling makes no difference.
    crossing = math.exp(log_crossing)
    last = crossing + 4 / (0.5 - excess)
    t = np.arange(np.floor(crossing), np.ceil(last) + 1)
    failing = t[grown(t, excess) > 0.75 * t]
    return int(max(np.ceil(decay**2), low + 1, failing[-1] + 1))
