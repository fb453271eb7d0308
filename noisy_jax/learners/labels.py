"""Labels −1 and +1: learners of classes refuse others as soon as they see concrete ones."""

from noisy_jax.base import Learner, Sample
from noisy_jax.validation import check_labels


def checking_labels(learner: Learner) -> Learner:
    """The learner, refusing labels other than ±1 where its step and unroll see concrete ones."""

    def checking(way):
        def checked(state, samples: Sample, *rest):
            check_labels("y", samples.y)
            return way(state, samples, *rest)

        return checked

    return learner._replace(step=checking(learner.step), unroll=checking(learner.unroll))
