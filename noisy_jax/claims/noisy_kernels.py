"""Claims of Online Learning of Noisy Data with Kernels."""

from noisy_jax.claims.claim import CORRECTED, REPRODUCED, Claim

PAPER = "Online Learning of Noisy Data with Kernels"

# fmt: off
CLAIMS = (
    Claim("NK-Setting", f"{PAPER}, Sec. 2", REPRODUCED,
        "Copies are independent, of bounded second moment, and their distribution may change even between "
        "calls.",
        ("tests/estimators/test_maps.py::test_inner_products_are_right_on_average_by_enumeration",)),
    Claim("NK-Sec2", f"{PAPER}, Sec. 2", CORRECTED,
        "Linear, polynomial, exponential and binomial kernels are power series of ⟨x, x'⟩ with "
        "coefficients that are not negative.",
        ("tests/test_kernels.py::test_the_printed_binomial_kernel_is_not_positive_definite",
         "tests/test_kernels.py::test_series_and_envelope_make_the_kernel_up_to_their_remainders",
         "colabs/errata.ipynb::7"),
        reason=(
            "The binomial kernel is printed as (1 + ⟨x, x'⟩)^(−α), which is not positive "
            "definite; (1 − ⟨x, x'⟩)^(−α) is."
        )),
    Claim("NK-Sec3.1", f"{PAPER}, Sec. 3.1", REPRODUCED,
        "For a linear loss one copy in place of the instance will do.",
        ("tests/test_claims_noise.py::test_one_copy_will_do_for_a_linear_loss_and_two_for_a_quadratic_map",),
        reason="Its display lacks the constant c in E c x̃ = c x."),
    Claim("NK-Sec3.2", f"{PAPER}, Sec. 3.2", REPRODUCED,
        "A random order N and N copies give an unbiased estimate of a series at a mean.",
        ("tests/estimators/test_means.py::test_mean_and_second_moment_by_enumeration",
         "tests/estimators/test_means.py::test_copies_that_are_not_independent_are_biased"),
        reason="The impossibility results quoted beside it are not checked here."),
    Claim("NK-Sec3.3", f"{PAPER}, Sec. 3.3", REPRODUCED,
        "Products of two copies' coordinates are unbiased features of the homogeneous quadratic "
        "kernel.",
        ("tests/test_claims_noise.py::test_one_copy_will_do_for_a_linear_loss_and_two_for_a_quadratic_map",)),
    Claim("NK-Lemma1", f"{PAPER}, Lemma 1", REPRODUCED,
        "With a geometric order the estimate has mean f(E X) and second moment of at most (p/(p − "
        "1))f₊(√(p E X²))².",
        ("tests/estimators/test_means.py::test_mean_and_second_moment_by_enumeration",
         "tests/estimators/test_means.py::test_golden_second_moments",
         "tests/estimators/test_orders.py::test_geometric_law_far_from_its_cap_has_the_papers_mean")),
    Claim("NK-Sub1", f"{PAPER}, Subroutine 1", CORRECTED,
        "A product of inner products with fresh estimates is an unbiased slope of the loss.",
        ("tests/learners/test_random_truncation.py::test_second_round_enumerated_is_the_gradient_step_of_a_margin_loss",
         "colabs/errata.ipynb::8"),
        reason="It lacks the label inside the product: for y = −1 it estimates another slope."),
    Claim("NK-Lemma2", f"{PAPER}, Lemma 2", CORRECTED,
        "The slope's estimate has a second moment of at most (p/(p − 1))ℓ'₊(√(pB_wB_Ψ))².",
        ("tests/estimators/test_means.py::test_mean_and_second_moment_by_enumeration",
         "tests/test_bounds_unknown_noise.py::test_residual_losses_pay_for_their_targets"),
        reason="Right for classification; for regression the argument must grow by √p B_y."),
    Claim("NK-Alg1", f"{PAPER}, Algorithm 1", CORRECTED,
        "Descent on estimated features with estimated slopes, projected onto the ball.",
        ("tests/learners/test_random_truncation.py::test_equals_the_plain_loop_on_explicit_features",
         "colabs/errata.ipynb::9"),
        reason="The projection is printed with √B_w/‖w‖², where √(B_w/‖w‖²) is meant."),
    Claim("NK-Thm4", f"{PAPER}, Theorem 4", REPRODUCED,
        "Independent estimates of slope and features give regret of at most √(B_wB_gB_ΨT).",
        ("tests/learners/test_random_truncation.py::test_two_rounds_enumerated_are_the_gradient_steps_of_the_clean_kernel",
         "tests/test_bounds_unknown_noise.py::test_closed_forms_bound_the_exact_sums_within_a_factor"),
        reason="They must be unbiased given the past, which the condition does not say."),
    Claim("NK-Eq2", f"{PAPER}, Eq. 2", REPRODUCED,
        "A power series in ⟨x, x'⟩ has tensor powers of x for features.",
        ("tests/estimators/test_maps.py::test_inner_products_are_right_on_average_by_enumeration",)),
    Claim("NK-Sub2", f"{PAPER}, Subroutine 2", REPRODUCED,
        "One tensor power of random order, of fresh copies, is an unbiased estimate of the "
        "features.",
        ("tests/estimators/test_maps.py::test_inner_products_are_right_on_average_by_enumeration",)),
    Claim("NK-Lemma3", f"{PAPER}, Lemma 3", CORRECTED,
        "The estimated features have an expected squared norm of at most (p/(p − 1))Q(pB_x).",
        ("tests/estimators/test_maps.py::test_second_moment_by_enumeration",
         "tests/estimators/test_gradients.py::test_bad_input_is_refused_with_what_would_do"),
        reason=(
            "Q must be analytic at pB_x, which is not stated: kernels of finite radius need a "
            "small p."
        )),
    Claim("NK-Sub3", f"{PAPER}, Subroutine 3", REPRODUCED,
        "Two estimates of features have an inner product that needs their copies alone.",
        ("tests/estimators/test_maps.py::test_inner_products_are_right_on_average_by_enumeration",
         "tests/learners/test_random_truncation.py::test_equals_the_plain_loop_on_explicit_features")),
    Claim("NK-Sub4", f"{PAPER}, Subroutine 4", REPRODUCED,
        "An estimate and a clean instance have an inner product that needs the estimate's copies "
        "alone.",
        ("tests/estimators/test_maps.py::test_inner_products_are_right_on_average_by_enumeration",)),
    Claim("NK-Lemma4", f"{PAPER}, Lemma 4", REPRODUCED,
        "Subroutines 3 and 4 return the inner products of the estimated features.",
        ("tests/estimators/test_maps.py::test_inner_products_are_right_on_average_by_enumeration",
         "tests/learners/test_random_truncation.py::test_equals_the_plain_loop_on_explicit_features")),
    Claim("NK-Thm1", f"{PAPER}, Theorem 1", REPRODUCED,
        "For dot-product kernels p/(p − 1)² copies a round give regret of at most ℓ'₊(√((p − "
        "1)u))√(uT), with u = B_w(p/(p − 1))²Q(pB_x).",
        ("tests/test_bounds_unknown_noise.py::test_corrected_closed_form_is_the_theorems",
         "tests/estimators/test_gradients.py::test_copies_far_from_the_cap_follow_the_exact_geometric_law")),
    Claim("NK-Eq6", f"{PAPER}, Eq. 6, App. B", CORRECTED,
        "The Gaussian kernel is an envelope e^(−‖x‖²/σ²) times a power series, with features of "
        "both.",
        ("tests/estimators/test_maps.py::test_printed_gaussian_inner_product_is_wrong",
         "tests/estimators/test_maps.py::test_inner_products_are_right_on_average_by_enumeration"),
        reason="The features lack a square root over their coefficients."),
    Claim("NK-Sub5", f"{PAPER}, Subroutine 5", REPRODUCED,
        "Its estimate takes 2N₁ + N₂ copies, 3/(p − 1) on average.",
        ("tests/estimators/test_maps.py::test_copies_are_counted_and_used_once",
         "tests/estimators/test_gradients.py::test_copies_of_the_gaussian_kernel")),
    Claim("NK-Sub6", f"{PAPER}, Subroutine 6", CORRECTED,
        "Two estimates for the Gaussian kernel have an inner product that needs their copies "
        "alone.",
        ("tests/estimators/test_maps.py::test_inner_products_are_right_on_average_by_enumeration",
         "tests/estimators/test_maps.py::test_printed_gaussian_inner_product_is_wrong"),
        reason=(
            "It carries the coefficients of the wrong features: 2^(2n), (n!)² and σ^(4n), each "
            "the square of what is right."
        )),
    Claim("NK-Sub7", f"{PAPER}, Subroutine 7", CORRECTED,
        "An estimate for the Gaussian kernel and a clean instance have an inner product that "
        "needs the estimate's copies alone.",
        ("tests/estimators/test_maps.py::test_printed_gaussian_inner_product_is_wrong",),
        reason="It carries the same wrong coefficients as subroutine 6."),
    Claim("NK-Lemma6", f"{PAPER}, Lemma 6", CORRECTED,
        "Subroutines 6 and 7 return the inner products of the features estimated for the Gaussian "
        "kernel.",
        ("tests/estimators/test_maps.py::test_inner_products_are_right_on_average_by_enumeration",
         "tests/estimators/test_maps.py::test_printed_gaussian_inner_product_is_wrong"),
        reason="True of the corrected ones."),
    Claim("NK-Lemma5", f"{PAPER}, Lemma 5", CORRECTED,
        "The estimate for the Gaussian kernel has a bounded second moment.",
        ("tests/estimators/test_maps.py::test_gaussian_second_moment_is_the_closed_form",
         "tests/estimators/test_maps.py::test_second_moment_by_enumeration",
         "tests/test_bounds_unknown_noise.py::test_printed_gaussian_moment_is_not_free_of_units",
         "colabs/errata.ipynb::10"),
        reason=(
            "The printed bound depends on the unit of x, and is exceeded. It is (p/(p − 1))² "
            "I₀(2√p B_x/σ²)e^(2pB_x/σ²), attained without noise."
        )),
    Claim("NK-Thm2", f"{PAPER}, Theorem 2", CORRECTED,
        "For the Gaussian kernel 3p/(p − 1)² copies a round give regret of the form of Theorem 1.",
        ("tests/test_bounds_unknown_noise.py::test_printed_gaussian_moment_is_not_free_of_units",
         "tests/test_bounds_unknown_noise.py::test_closed_forms_bound_the_exact_sums_within_a_factor",
         "tests/estimators/test_gradients.py::test_copies_of_the_gaussian_kernel",
         "colabs/errata.ipynb::10"),
        reason="u follows the moment of Lemma 5, and is corrected with it."),
    Claim("NK-tradeoff", f"{PAPER}, Sec. 3.2", CORRECTED,
        "A larger p takes fewer copies and pays with a larger second moment.",
        ("tests/test_claims_noise.py::test_fewer_copies_do_not_always_mean_a_larger_second_moment",),
        reason="Not always: where B_x is a quarter of σ² the moment is smallest near p = 2."),
    Claim("NK-Ex1", f"{PAPER}, Example 1", REPRODUCED,
        "The squared loss has the slope 2a, a series of degree one.",
        ("tests/test_series.py::test_squared_is_linear",
         "tests/learners/test_random_truncation.py::test_squared_loss_over_a_linear_kernel_is_two_copies"),
        reason="As a function of ⟨w, x⟩ − y; one extra estimate will do, and no random order."),
    Claim("NK-Ex2", f"{PAPER}, Example 2", CORRECTED,
        "The exponential loss has an entire slope.",
        ("tests/test_losses.py::test_exponential_falls_with_the_margin_as_printed_it_would_rise",
         "tests/test_series.py::test_absolute_series_of_the_exponential_loss_has_no_signs"),
        reason="Printed as e^(y⟨w, x⟩), which rewards mistakes; the sign must be minus."),
    Claim("NK-Ex3", f"{PAPER}, Example 3, App. C", CORRECTED,
        "The absolute loss smoothed by erf has an entire slope.",
        ("tests/test_series.py::test_absolute_series_of_the_smoothed_absolute_is_erfi",
         "tests/test_losses.py::test_value_is_the_formula_and_derivative_its_gradient",
         "colabs/errata.ipynb::11"),
        reason=(
            "App. C has σ for s. Its bound and that of Example 4 are swapped: the one printed is "
            "below the exact erfi(sa) from sa = 1 on."
        )),
    Claim("NK-Ex4", f"{PAPER}, Example 4, App. C", CORRECTED,
        "The hinge loss smoothed by erf has an entire slope.",
        ("tests/test_series.py::test_smoothed_hinge_about_zero",
         "tests/test_series.py::test_absolute_series_of_the_smoothed_hinge",
         "tests/estimators/test_means.py::test_golden_second_moments",
         "tests/estimators/test_means.py::test_the_center_one_is_a_bad_one_for_the_smoothed_hinge",
         "colabs/errata.ipynb::11"),
        reason=(
            "App. C takes the coefficients about 1 for those about 0, so that its bound fails "
            "where s and a are small."
        )),
    Claim("NK-Fig1", f"{PAPER}, Figure 1", REPRODUCED,
        "The smoothed losses lie above the absolute and the hinge loss, and touch them far away.",
        ("tests/test_losses.py::test_smoothed_losses_lie_above_by_the_stated_gap",)),
    Claim("NK-Thm5", f"{PAPER}, Theorem 5, App. F", REPRODUCED,
        "With one copy of unknown noise no learner has sublinear regret wherever two adversaries "
        "look alike and differ in their best predictor.",
        ("tests/test_bounds_one_copy.py::test_floor_holds_for_every_table_of_plays_exactly",
         "tests/streams/test_adversaries.py::test_single_copies_have_the_same_law",
         "tests/streams/test_adversaries.py::test_clean_data_have_different_best_weights")),
    Claim("NK-Thm3", f"{PAPER}, Theorem 3, App. E", CORRECTED,
        "With one copy of unknown noise, regret is linear for every loss of a wide class.",
        ("tests/test_bounds_one_copy.py::test_no_floor_where_the_best_weight_is_the_same",
         "tests/test_bounds_one_copy.py::test_closed_forms",
         "tests/commands/test_one_copy_command.py::test_one_copy_stays_above_the_floor_and_two_fall_below",
         "colabs/errata.ipynb::12"),
        reason=(
            "Printed for every compact convex set of predictors: false for {0} and for [−0.1, "
            "0.1]. It holds where the set is large enough. App. E equates the wrong subgradients, "
            "without harm."
        )),
    Claim("NK-AppA", f"{PAPER}, App. A", CORRECTED,
        "Judged on noisy instances against a comparator on clean ones, regret is linear.",
        ("tests/test_claims_noise.py::test_regret_on_noisy_instances_is_linear",),
        reason=(
            "The example must be x = w*/‖w*‖², printed w*/‖w*‖; Eq. 5 lacks the sum and has w_t "
            "inside the minimum."
        )),
)
# fmt: on
