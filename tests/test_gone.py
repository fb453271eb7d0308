import pkgutil

import pytest

from noisy_jax.gone import GONE

NAMES = [(module, name) for module, names in GONE.items() for name in names]


@pytest.mark.parametrize(("module", "name"), NAMES, ids=".".join)
def test_a_name_that_is_gone_says_what_to_write(module, name):
    room = pkgutil.resolve_name(module)
    with pytest.raises(AttributeError) as error:
        getattr(room, name)
    assert str(error.value) == f"{module}.{name} left in version 0.4.0: {GONE[module][name]}"
    assert name not in dir(room)
