from noisy_jax.simulated.results import Growth, Row, Study


def row(name, horizon, regret):
    of_regret = (regret, 0.1, regret - 0.2, regret + 0.2)
    return Row(name, horizon, 8, *of_regret, 5 * horizon**0.5, 5.0, 0.0, 0.0, 0.1, 0.0)


def study(powers):
    """Of regrets T^a, from a for each learner."""
    rows = [row(name, t, t**a) for name, a in powers.items() for t in (16, 64, 256)]
    growth = {name: Growth(a, a - 0.1, a + 0.1) for name, a in powers.items()}
    return Study(tuple(rows), growth, {})
