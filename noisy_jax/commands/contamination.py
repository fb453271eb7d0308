"""The command `contamination`: errors of trimmed and other regression on corrupted tables."""

import argparse
import functools
import warnings
from collections.abc import Callable, Iterator, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax import plots, streams
from noisy_jax.commands import experiment, noisy_inputs, robustness
from noisy_jax.commands.contamination_report import (
    Row,
    conclusion,
    curves,
    noisy_conclusion,
    table,
)
from noisy_jax.commands.records import save_command, save_table
from noisy_jax.evaluate.regrets import NORMAL_95
from noisy_jax.validation import check_at_least, check_positive, writable_folder

SUMMARY = "error of trimmed kernel regression where rows are corrupted"

DESCRIPTION = """\
Which regression is still good on clean data where a share of the rows is corrupted?

Fits ridge, Huber's loss, subquantile (trimmed) ridge and an oracle that knows the corrupted rows,
all with one kernel, to tables that ten adversaries have corrupted, and on linear data also robust
regressors of scikit-learn. Then it tells the trimmed fit a wrong share, and adds noise to the
instances. Writes contamination.csv, config.json and a picture for each data set.
"""

EXAMPLES = """\
  python -m noisy_jax contamination
  python -m noisy_jax contamination --data linear --shares 0 0.1 0.2 0.3 0.4
  python -m noisy_jax contamination --data diabetes --length-scale 4.5 --regularization 0.5
"""

DATASETS = ("synthetic", "linear", "diabetes")
"""Names that `--data` knows."""

NOISE_SCALE = 0.5
"""Length scale of the synthetic setting's kernel."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    # fmt: off
    add("--data", nargs="+", choices=DATASETS, default=["synthetic", "diabetes"], metavar="NAME",
        help=f"{', '.join(DATASETS)} (default: synthetic diabetes; linear takes longest)")
    add("--shares", type=float, nargs="+", metavar="E",
        default=[round(0.05 * i, 2) for i in range(10)],
        help="ε, shares of corrupted rows in [0, 0.5), increasing (default: 0 to 0.45 by 0.05)")
    add("--rows", type=int, default=500, metavar="N",
        help="rows of the synthetic table (default: 500)")
    add("--length-scale", type=float, default=10**0.5, metavar="L",
        help="ℓ of the kernel exp(−r²/2ℓ²) for diabetes, features of unit variance (default: √10)")
    add("--regularization", type=float, default=1.0, metavar="C",
        help="weight of ‖f‖² beside squared errors for diabetes (default: 1)")
    add("--variance", type=float, default=0.02, metavar="V",
        help="noise on the synthetic instances, below 0.25; 0 leaves that part out (default: 0.02)")
    add("--seeds", type=int, default=50, metavar="N",
        help="tables drawn and corrupted (default: 50)")
    # fmt: on
    experiment.add_seed(parser)
    experiment.add_out(parser)


def run(options: argparse.Namespace) -> list[Row]:
    """Runs the studies that the options ask for, prints and saves them."""
    experiment.require_plots()
    check_at_least("--seeds", options.seeds, 2, "the number of tables, for intervals")
    check_at_least("--rows", options.rows, 10, "the rows of the synthetic table")
    check_positive("--length-scale", options.length_scale, "ℓ of the kernel")
    check_positive("--regularization", options.regularization, "the weight of ‖f‖²")
    shares = np.array(options.shares)
    if not np.all((shares >= 0) & (shares < 0.5)) or np.any(np.diff(shares) <= 0):
        raise ValueError(f"--shares must increase within [0, 0.5), got {options.shares}")
    if not 0 <= options.variance < NOISE_SCALE**2:
        raise ValueError(
            f"--variance must be in [0, {NOISE_SCALE**2}), got {options.variance}: noise as wide "
            "as the kernel leaves no surrogate"
        )
    folder = writable_folder(options.out)
    rows = []
    for data in dict.fromkeys(options.data):
        found = _rows_of(options, data)
        rows += found
        print(f"\n{table(found)}\n\n{conclusion(found)}")
        panels = curves([row for row in found if row.adversary != "told"])
        axes = plots.contamination(options.shares, panels)
        axes[0].figure.savefig(folder / f"{data}.png", dpi=150)
        if data == "synthetic" and options.variance:
            noisy = _noisy_rows(options)
            rows += noisy
            print(f"\n{table(noisy)}\n\n{noisy_conclusion(noisy, options.variance)}")
    save_table(folder / "contamination.csv", Row._fields, rows)
    save_command(options, folder)
    print(f"\nSaved in {folder}/")
    return rows


def _setting(options, data) -> robustness.Setting:
    match data:
        case "synthetic":
            return robustness.synthetic(options.rows)
        case "linear":
            return robustness.linear()
        case _:
            return robustness.real(
                streams.dataset(data), options.length_scale, options.regularization
            )


def _rows_of(options, data) -> list[Row]:
    """All rows of one data set, in the order of adversary, method, share."""
    setting, shares = _setting(options, data), np.array(options.shares)
    compute = jax.jit(functools.partial(robustness.by_adversary, setting, jnp.asarray(shares)))
    scores = _over_seeds(options, data, compute)
    errors = {name: score.error for name, score in scores.items()}  # sorted: a tree of JAX
    methods = robustness.METHODS
    if data == "linear":
        corrupt = jax.jit(functools.partial(robustness.contaminated, setting, jnp.asarray(shares)))
        rivals = _over_seeds(options, "scikit-learn", lambda key: _rival_errors(corrupt(key)))
        for name, error in rivals.items():
            errors[name] = np.concatenate([errors[name], error], axis=-1)
        methods = (*methods, *_rivals())
    rows = []
    for name in (*robustness.ADVERSARIES, "told"):
        score = scores[name]
        true = np.full_like(shares, robustness.TOLD) if name == "told" else shares
        for index in range(errors[name].shape[-1]):
            trims = methods[index] == "subquantile"
            kept = (score.precision, score.recall) if trims else None
            rows += _rows(
                (data, name, methods[index]), true, shares, errors[name][..., index], kept
            )
    return rows


def _noisy_rows(options) -> list[Row]:
    setting, shares = robustness.synthetic(options.rows), np.array(options.shares)
    compute = functools.partial(
        noisy_inputs.on_noisy_inputs, setting, NOISE_SCALE, options.variance, jnp.asarray(shares)
    )
    scores = _over_seeds(options, "noisy inputs", jax.jit(compute))
    rows = []
    for name, score in scores.items():
        for index, method in enumerate(noisy_inputs.METHODS):
            precision = score.precision[..., index]
            kept = precision, precision
            trims = method in ("blind", "surrogate", "second copy")
            rows += _rows(
                ("noisy inputs", name, method),
                shares,
                shares,
                score.error[..., index],
                kept if trims else None,
            )
    return rows


def _rows(names, true, told, errors, kept) -> Iterator[Row]:
    """A row for each share, from errors `[S, E]` and what is kept."""
    middle = errors.mean(axis=0)
    margin = NORMAL_95 * errors.std(axis=0, ddof=1) / len(errors) ** 0.5
    nothing = np.full_like(middle, np.nan)
    precision, recall = (nothing, nothing) if kept is None else (k.mean(axis=0) for k in kept)
    columns = (true, told, middle, middle - margin, middle + margin, precision, recall)
    for numbers in zip(*columns, strict=True):
        yield Row(*names, *(float(number) for number in numbers))


def _over_seeds(options, description, compute: Callable) -> Mapping:
    """Results of `compute(key)` for each seed, stacked along a leading axis."""
    from tqdm import tqdm

    root = jax.random.key(options.seed)
    keys = [jax.random.fold_in(root, seed) for seed in range(options.seeds)]
    every = [jax.device_get(compute(key)) for key in tqdm(keys, desc=description, unit="table")]
    return jax.tree.map(lambda *leaves: np.stack(leaves).astype(float), *every)


def _rivals() -> Mapping[str, Callable]:
    from sklearn import linear_model

    return {
        "HuberRegressor": linear_model.HuberRegressor,
        "RANSAC": functools.partial(linear_model.RANSACRegressor, random_state=0),
        "TheilSen": functools.partial(
            linear_model.TheilSenRegressor, max_subpopulation=300, random_state=0
        ),
    }


def _rival_errors(contaminations) -> Mapping[str, np.ndarray]:
    """Errors `[E, M]` of scikit-learn's regressors by adversary."""
    table, relabelled, moved = jax.device_get(contaminations)

    def error(regressor, x, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what did not converge shows in its error
            misses = regressor.fit(x, y).predict(table.test_x) - table.test_y
        return np.sqrt(np.mean(misses**2))

    return {
        name: np.array(
            [
                [error(make(), x, y) for make in _rivals().values()]
                for x, y in zip(made.x, made.y, strict=True)
            ]
        )
        for name, made in (relabelled | moved).items()
    }
