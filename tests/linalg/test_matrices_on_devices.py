"""Nothing hangs on several devices of a CPU: plain Python processes, which must end.

From jaxlib 0.10.0 to 0.11.0 batched calls of LAPACK wait for each other without end if there are
as many of them at once as XLA has threads. `test_matrices.py` shows that no program has one.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = 300
STUDY = """
import sys
import jax
jax.config.update("jax_num_cpu_devices", int(sys.argv[1]))
import noisy_jax as nj
learners = {
    "two copies": nj.learners.two_copies(radius=1.0),
    "leader": nj.learners.corrected_ftrl(nj.moments.known_covariance()),
    "uncorrected": nj.learners.uncorrected(radius=1.0),
}
study = nj.study(
    learners, nj.streams.dataset("digits"), nj.noise.Gaussian(0.1), jax.random.key(1),
    num_seeds=32, horizons=[400, 800, 1600], mesh="all",
    comparator=nj.comparators.linear_ball(radius=1.0))
print(len(study.rows))
"""
MANY_FITS = """
import jax, jax.numpy as jnp, noisy_jax as nj
grams = jnp.stack([jnp.eye(64) + 0.5] * 16)
@jax.jit
def fits(y):
    def of_grams(y, regularization):
        fit = lambda gram: nj.robust.kernel_ridge(gram, y, regularization=regularization)
        return jax.vmap(fit)(grams).sum()
    return sum(of_grams(y + k, 0.1 + 0.01 * k) for k in range(40))
for k in range(50):
    fits(jnp.arange(64.0) + k).block_until_ready()
print("done")
"""
PATH = Path(__file__).parents[2] / "colabs" / "papers"
COMMANDS = {
    "contamination": f"{PATH}/contamination.py --data synthetic --rows 60 --shares 0 0.2 --seeds 2",
    "kernel": f"{PATH}/kernel.py --data teacher --horizons 64 128 --seeds 4",
    "one_copy": f"{PATH}/one_copy.py --horizons 64 128 --seeds 4",
}


def printed(folder, *arguments, **environment):
    """What a plain Python process prints, which has five minutes."""
    plain = {n: v for n, v in os.environ.items() if n not in ("XLA_FLAGS", "NPROC")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, text=True, timeout=SECONDS, check=True,
        capture_output=True,
        env={**plain, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )  # fmt: skip
    return done.stdout


@pytest.mark.long
def test_a_study_of_the_leader_ends_on_several_devices(tmp_path):
    assert printed(tmp_path, "-c", STUDY, "4") == "9\n"


@pytest.mark.long
def test_many_independent_fits_in_one_program_end(tmp_path):
    assert printed(tmp_path, "-c", MANY_FITS) == "done\n"


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_end_on_two_devices(tmp_path, name):
    flags = "--xla_backend_optimization_level=0"  # compiling takes most of their time
    shown = printed(tmp_path, *COMMANDS[name].split(), JAX_NUM_CPU_DEVICES="2", XLA_FLAGS=flags)
    assert shown.startswith(f"Study {name};")
    assert list((tmp_path / "noisy_jax_results").rglob("*.csv"))
