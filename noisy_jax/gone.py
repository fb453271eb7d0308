"""Names that version 0.4.0 no longer has, and the code to write in their place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_SENSITIVITY = (
    "make the table with multiples of the variance in a loop, and fit each: "
    "for m in (0.5, 1, 1.5): print(nj.fit(nj.table(…, noise={'x1': m * variance})))"
)
_CHANGING = "learners.unknown_noise and learners.model take noise that changes from round to round"
_MIXTURE = (
    "worlds.rational, laplacian and matern are the worlds of radial kernels; worlds.world_of makes "
    "one of your own kernel and surrogate"
)

_RECEIVED = "functions return it, and help(result) shows its fields"

_ENGINE = {
    "ExpansionState": "expansion",
    **dict.fromkeys(("Buffer", "FunctionSpace", "memory_of", "of_two_outputs"), "function_space"),
    **dict.fromkeys(("Atoms", "MakeMemory", "Memory", "Space"), "memory"),
    **dict.fromkeys(("AdaptiveState", "Rate", "rate_of", "schedule", "squared_loss"), "rules"),
}

GONE: dict[str, dict[str, str]] = {
    "noisy_jax": {
        "evaluate": "its name is nj.simulated",
        "fourier": "its name is nj.methods.Fourier",
        "tuned_kernel_learner": "its name is nj.tuned",
    },
    "noisy_jax.engine": {
        name: f"from noisy_jax.engine.{module} import {name}" for name, module in _ENGINE.items()
    },
    "noisy_jax.losses": {
        "soft_margin": "its name is nj.losses.hinge",
        "nu_soft_margin": "its name is nj.losses.nu_hinge",
        "AdaptiveLoss": "from noisy_jax.losses.adaptive import AdaptiveLoss",
        "CorrectedLoss": "from noisy_jax.losses.corrected import CorrectedLoss",
    },
    "noisy_jax.moments": {
        "Moments": "from noisy_jax.moments.online import Moments",
        "Sums": "from noisy_jax.moments.online import Sums",
        "Frequencies": "from noisy_jax.moments.fourier import Frequencies",
        "estimated_characteristic": "from noisy_jax.moments.fourier import "
        "estimated_characteristic",
        **{
            name: f"write nj.moments.unbiased(features, estimate=nj.unbiased.{name}), or a "
            "functools.partial of it with its options, such as copies=4"
            for name in ("multilevel", "pair", "replicates")
        },
    },
    "noisy_jax.noise": {
        "estimate_misclassification": "take the sensitivity s and the specificity t of a "
        "validation study, as nj.noise.Misclassified([[t, 1 - t], [1 - s, s]])",
    },
    "noisy_jax.observed.fits": {
        **dict.fromkeys(("Comparison", "FourierPredictor", "TableMoments"), _RECEIVED),
        "CalibratedFit": "regression calibration gives an nj.fits.Fit",
        "Coefficients": "its name is nj.fits.Estimates, with the intercept in `values`",
        "GeneralizedFit": "logistic and Poisson regression give an nj.fits.Fit",
        "ModelFit": "nj.methods.Model gives an nj.fits.Fit",
        "Sensitivity": _SENSITIVITY,
        "sensitivity": _SENSITIVITY,
    },
    "noisy_jax.plots": {
        "price": "colabs/papers/unknown_noise_picture.py draws it for the paper",
        "profile": "colabs/papers/worlds_picture.py has it, for the paper's figure",
        "worlds": "colabs/papers/worlds_picture.py draws it for the paper",
        "extrapolation": "fit.levels, fit.estimates and fit.curve have what it drew",
        "sensitivity": _SENSITIVITY,
    },
    "noisy_jax.robust.subquantile": dict.fromkeys(
        ("Gram", "Problem", "State", "init", "ridge_problem", "step"),
        "subquantile.ridge and logistic make all iterations; `iterations=1` and `start=` "
        "coefficients make one",
    ),
    "noisy_jax.simulated": {
        **dict.fromkeys(("Growth", "Row"), _RECEIVED),
        "tuned_kernel_learner": "its name is nj.tuned",
    },
    "noisy_jax.unbiased": {
        "gradient": "its name is nj.unbiased.kernel_gradient",
        "copies_needed": "multilevel(f, levels=…).copies_needed(key) is the same number, for any f",
    },
    "noisy_jax.worlds": {
        "FourierWorld": "from noisy_jax.worlds.fourier import FourierWorld",
        **dict.fromkeys(("heteroscedastic", "heteroscedastic_laplace"), _CHANGING),
        "heteroscedastic_radial": _CHANGING,
        **dict.fromkeys(("Measure", "density_measure", "discrete_measure", "radial"), _MIXTURE),
        "rational_measure": "worlds.rational is the world of its kernel",
        "laplacian_measure": "worlds.laplacian is the world of its kernel",
        "matern_measure": "worlds.matern is the world of its kernel",
        "Decay": "nothing needs it any more",
    },
    "noisy_jax.simulated.bounds": {
        **dict.fromkeys(
            (
                *("MistakeGuarantee", "MultilevelMoments", "OneCopyLowerBound", "RiskGuarantee"),
                *("SelfBounding", "TruncationGuarantee"),
            ),
            _RECEIVED,
        ),
        "at_rate_factor": "nj.tuned(…, rate_factor=m) gives the learner and its bound",
    },
    "noisy_jax.simulated.comparators": dict.fromkeys(
        ("ConvexBall", "KernelBall", "LinearBall", "Regularized"), _RECEIVED
    ),
    "noisy_jax.simulated.streams": {
        **dict.fromkeys(("Adversary", "Mixtures", "OneCopyAdversaries"), _RECEIVED),
        "Difficulty": "nj.streams.DIFFICULTIES['A']._replace(…) makes one",
        "csv": "frame = pandas.read_csv(path) reads the file, and "
        "nj.streams.scaled(frame.drop(columns='y'), frame['y']) makes the stream",
    },
}
"""Replacements by module and name: the texts of errors. CHANGELOG.md has code for each."""


def refuse(module: str, name: str) -> None:
    """Raises an AttributeError that says which code replaces a name that is gone.

    Raises:
        AttributeError: always; for other names with the text that Python itself gives.
    """
    instead = GONE.get(module, {}).get(name)
    if instead is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    raise AttributeError(f"{module}.{name} left in version 0.4.0: {instead}")


_ATTRIBUTES = {
    "intercept_std_error": "fit.std_error[0], as std_error includes the intercept",
    "intercept_interval": "fit.interval(), which includes the intercept",
    "band": "fit.predict(x, interval=True)",
    "features": "fit.names",
    "model": "fit.form",
    "averaged": "table.means()",
    "averaged_cross": "table.means().cross",
    "estimated": "table.means(weights).cov",
    "only_sums": "not table.each_row",
    "pooled": "table.errors",
    "unreliability": "table.errors",
    "law": "table.not_gaussian()",
    "cov_std_error": "table.uncertainty()",
    "cov_deviations": "table.uncertainty()",
}
"""Replacements of attributes of tables and fits in version 0.3."""


def refuse_attribute(owner: object, name: str) -> None:
    """Raises an AttributeError that says which code replaces an attribute of a table or fit.

    Raises:
        AttributeError: always; for other names with the text that Python itself gives.
    """
    kind, instead = type(owner).__name__, _ATTRIBUTES.get(name)
    if instead is None:
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")
    raise AttributeError(f"{kind}.{name} left in version 0.4.0: write {instead}")


OPTION_OF_ESTIMATE = (
    "it is an option of the estimate: estimate=functools.partial(nj.unbiased.replicates, {}=…)"
)


def options(*names: str, instead: str) -> Callable[[Function], Function]:
    """Decorates a function that had options of these names in version 0.3.

    Args:
        names: names of the options.
        instead: the code to write; `{}` stands for the name.

    Returns:
        A decorator. The function then raises a TypeError for these options, and no other checks
        come first.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for name in names:
                if name in kwargs:
                    raise TypeError(
                        f"{function.__name__}(…, {name}=…) left in version 0.4.0: "
                        f"{instead.format(name)}"
                    )
            return function(*args, **kwargs)

        return checked  # pyright: ignore[reportReturnType]

    return decorate
