import pytest

from tests.noise.cases import DISTRIBUTIONS


@pytest.fixture(params=DISTRIBUTIONS, ids=str)
def distribution(request):
    return DISTRIBUTIONS[request.param]
