import jax
import pytest

import noisy_jax as nj


@pytest.mark.parametrize("y", [-1.0, 0.3])
@pytest.mark.parametrize("prediction", [-2.0, 0.3, 1.7])
def test_derivative_is_that_of_the_value(prediction, y):
    loss = nj.losses.squared()
    assert loss.derivative(prediction, y) == pytest.approx(
        float(jax.grad(loss.value)(prediction, y)), rel=1e-5
    )
    assert loss.value(prediction, y) == pytest.approx((prediction - y) ** 2)
