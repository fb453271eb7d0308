"""Claims of Learning from Noisy Data under Distributional Assumptions and its extended abstract."""

from noisy_jax.claims.claim import CORRECTED, REPRODUCED, Claim

PAPER = "Learning from Noisy Data under Distributional Assumptions"

# fmt: off
CLAIMS = (
    Claim("DA-Protocol", f"{PAPER}, Sec. 2, Eq. 1", REPRODUCED,
        "The learner commits to a predictor, sees only independent noisy copies, and is judged by "
        "its regret on clean data.",
        ("tests/test_rollouts.py::test_step_sees_nothing_clean",
         "tests/test_noise.py::test_views_are_independent_and_shared_between_learners",
         "tests/test_noise.py::test_a_known_mean_is_subtracted")),
    Claim("DA-Eq2/3", f"{PAPER}, Eqs. 2 and 3", REPRODUCED,
        "Projected gradient descent may follow unbiased estimates of the gradients in place of "
        "the gradients.",
        ("tests/learners/test_linear.py::test_equals_numpy_loop",
         "tests/learners/test_linear.py::test_no_noise_gives_clean_gradient_descent"),
        reason="The recursion is printed with w_t on both sides."),
    Claim("DA-Lemma3", f"{PAPER}, App. B, Lemma 3", REPRODUCED,
        "Projected descent along any vectors v_t loses at most ‖u‖²/(2η) + ½η Σ‖v_t‖² against any "
        "u in the ball.",
        ("tests/test_claims_noise.py::test_projected_descent_keeps_its_inequality",),
        reason="The sum is printed up to m, which should be T."),
    Claim("DA-Identity", f"{PAPER}, App. B", REPRODUCED,
        "For the squared loss the convexity inequality is an identity: what it gives away is ⟨x, "
        "w − u⟩².",
        ("tests/test_claims_noise.py::test_for_the_squared_loss_convexity_is_an_identity",)),
    Claim("DA-Lemma1", f"{PAPER}, Lemma 1", CORRECTED,
        "From two copies, 2(⟨w, x̃⟩ − ỹ)x̃' estimates the gradient without bias, with a second "
        "moment of at most G.",
        ("tests/learners/test_linear.py::test_bias_exactly_by_enumeration",
         "tests/test_bounds.py::test_witness_of_the_printed_second_moment",
         "tests/test_bounds.py::test_second_moments_hold_for_random_laws_exactly",
         "colabs/errata.ipynb::2"),
        reason=(
            "G drops a cross term: at x = w = 1, y = −1 the moment is 16 and the printed bound 8. "
            "It is 4B_x²(B_wB_x + B_y)², and tight."
        )),
    Claim("DA-Alg1-left", f"{PAPER}, Algorithm 1, left", REPRODUCED,
        "Two copies a round, one in the residual and one in the direction, then the projection.",
        ("tests/learners/test_linear.py::test_equals_numpy_loop",)),
    Claim("DA-Thm1", f"{PAPER}, Theorem 1", CORRECTED,
        "From two copies, η = B_w/√(GT) gives expected regret of at most B_w√(GT).",
        ("tests/test_bounds.py::test_rate_and_regret_follow_from_the_second_moment",
         "tests/test_bounds.py::test_constants_by_hand",
         "tests/learners/test_linear.py::test_corrected_regret_grows_as_its_root_and_the_others_linearly"),
        reason=(
            "With the G of Lemma 1 as printed the proof fails; with the corrected one the bound "
            "is 2B_wB_x(B_wB_x + B_y)√T."
        )),
    Claim("DA-Lemma2", f"{PAPER}, Lemma 2", CORRECTED,
        "From one copy and Σ, the gradient at the copy less what noise adds on average is an "
        "unbiased estimate.",
        ("tests/learners/test_linear.py::test_bias_exactly_by_enumeration",
         "tests/learners/test_linear.py::test_bias_exactly_by_quadrature_with_gaussian_noise",
         "tests/test_bounds.py::test_second_moments_hold_for_random_laws_exactly",
         "colabs/errata.ipynb::1"),
        reason=(
            "Noise adds 2Σw, printed Σw, which leaves the bias Σw. The moment is at most "
            "4B_x²(B_wB_x + B_y)² if B_x⁴ bounds E‖x̃‖⁴; the printed bound holds, and is looser."
        )),
    Claim("DA-Alg1-right", f"{PAPER}, Algorithm 1, right", CORRECTED,
        "One copy a round, its gradient corrected by the covariance of the round.",
        ("tests/learners/test_linear.py::test_equals_numpy_loop",
         "colabs/errata.ipynb::1"),
        reason="The correction is 2Σw, printed Σw."),
    Claim("DA-Thm2", f"{PAPER}, Theorem 2", CORRECTED,
        "From one copy and Σ, expected regret grows like √T.",
        ("tests/learners/test_linear.py::test_corrected_regret_grows_as_its_root_and_the_others_linearly",
         "tests/test_bounds.py::test_constants_by_hand",
         "colabs/quickstart.ipynb::4"),
        reason=(
            "With the printed correction it grows like T. The bound needs E‖x̃‖⁴ ≤ B_x⁴, from "
            "which E‖x̃‖² ≤ B_x² follows, printed without its square."
        )),
    Claim("DA-Eq4", f"{PAPER}, Sec. 6, Eq. 4", REPRODUCED,
        "A surrogate kernel at one noisy and one fixed argument is the clean kernel on average.",
        ("tests/worlds/test_gaussian.py::test_unbiased_where_the_clean_kernel_is_not",
         "tests/worlds/test_heteroscedastic.py::test_with_both_noises_averaged_the_kernel_is_smoothed")),
    Claim("DA-Eq5", f"{PAPER}, Sec. 6, Eq. 5", REPRODUCED,
        "For Gaussian noise the surrogate of a Gaussian kernel is a narrower and higher Gaussian, "
        "of height R².",
        ("tests/worlds/test_gaussian.py::test_golden_values",
         "tests/worlds/test_gaussian.py::test_diagonal_is_the_surrogate_at_distance_zero",
         "tests/worlds/test_gaussian.py::test_unbiased_where_the_clean_kernel_is_not")),
    Claim("DA-Lemma4", f"{PAPER}, Lemma 4, App. D", REPRODUCED,
        "The surrogate of Eq. 5 is unbiased.",
        ("tests/worlds/test_gaussian.py::test_unbiased_where_the_clean_kernel_is_not",),
        reason=(
            "Its proof normalises by s where the noise has σ_i, and takes R^(2/d) for each "
            "coordinate, which is right for equal σ_i only."
        )),
    Claim("DA-Alg2", f"{PAPER}, Algorithm 2", REPRODUCED,
        "Descent in the space of the surrogate kernel, from one copy that is stored and one that "
        "is read.",
        ("tests/learners/test_kernel.py::test_parallel_worlds_equals_the_loop_with_the_double_sum",)),
    Claim("DA-Def-β", f"{PAPER}, Sec. 6", CORRECTED,
        "β_u is the angle between the examples of u with positive and with negative weights.",
        ("tests/test_comparators.py::test_angle_and_lifted_norm",
         "tests/test_claims_noise.py::test_angle_is_zero_where_parts_are_proportional_only"),
        reason=(
            "Printed for weights a_i ≥ 0, of which it would say nothing. It is zero where the two "
            "parts are proportional, not wherever their points coincide."
        )),
    Claim("DA-Lemma5", f"{PAPER}, Lemma 5", REPRODUCED,
        "The squared norms of both parts of u add up to at most 5‖u‖²/sin²β.",
        ("tests/test_bounds.py::test_lemma_5_is_tight",
         "colabs/errata.ipynb::4"),
        reason="It holds, and is loose: ‖u‖²/(1 − cos β) is tight."),
    Claim("DA-Lemma6", f"{PAPER}, Lemma 6", REPRODUCED,
        "Lifted to the surrogate's space, the squared norm of u is at most R² times the bound of "
        "Lemma 5.",
        ("tests/test_bounds.py::test_lemma_6_holds_for_random_expansions",
         "tests/test_bounds.py::test_two_opposite_points_close_together",
         "colabs/errata.ipynb::4"),
        reason="The last line of its proof lacks a_i."),
    Claim("DA-Thm3", f"{PAPER}, Theorem 3", CORRECTED,
        "With two copies under Gaussian noise, expected regret against a Gaussian kernel's "
        "functions grows like √T.",
        ("tests/test_bounds.py::test_witness_of_the_printed_second_moment_in_parallel_worlds",
         "tests/test_bounds.py::test_parallel_worlds_by_hand",
         "tests/learners/test_kernel_regret.py::test_regret_keeps_its_bound_where_the_noise_blind_one_is_linear",
         "tests/worlds/test_gaussian.py::test_refuses_bad_input",
         "colabs/errata.ipynb::2",
         "colabs/errata.ipynb::3"),
        reason=(
            "The second moment drops a cross term: it is 4R²(WR + B_y)². The noise must be "
            "strictly below the squared length scale, ‖Σ‖ < ℓ²."
        )),
    Claim("DA-Thm4", f"{PAPER}, Theorem 4", CORRECTED,
        "A radial kernel is a mixture of Gaussian kernels, and every such mixture is a kernel.",
        ("tests/test_claims_noise.py::test_a_radial_kernel_in_one_dimension_need_not_be_a_mixture",
         "tests/worlds/test_radial.py::test_grams_are_psd_and_within_the_ratio",
         "colabs/errata.ipynb::6"),
        reason=(
            "The first half needs a kernel of every dimension: (1 − r)₊ is one on the line only, "
            "and no mixture."
        )),
    Claim("DA-Eq6", f"{PAPER}, Sec. 6.1, Eq. 6", CORRECTED,
        "The surrogate of a mixture cut off at c is the mixture of the surrogates of its "
        "Gaussians.",
        ("tests/worlds/test_radial.py::test_equals_the_integral_by_adaptive_quadrature",
         "tests/worlds/test_radial.py::test_unbiased",
         "tests/worlds/test_radial.py::test_refuses_bad_input"),
        reason="The last display lacks the density μ(u), and c must be below 1/(2‖Σ‖)."),
    Claim("DA-AppE-Eq16", f"{PAPER}, App. E, Eq. 16", REPRODUCED,
        "Cut off at c, the rational kernel g is k = g(1 − e^(−c/g)), and differs from g by at "
        "most e^(−c).",
        ("tests/worlds/test_radial.py::test_equals_the_integral_by_adaptive_quadrature",
         "tests/worlds/test_radial.py::test_approximation_error_is_the_largest_difference")),
    Claim("DA-AppE-Eq17", f"{PAPER}, App. E, Eq. 17", CORRECTED,
        "For isotropic noise the cut-off rational kernel has an explicit surrogate.",
        ("tests/worlds/test_radial.py::test_the_printed_surrogate_is_biased",
         "tests/worlds/test_radial.py::test_golden_values",
         "colabs/errata.ipynb::5"),
        reason="σ stands where σ² must, here and in all that follows."),
    Claim("DA-Thm5", f"{PAPER}, App. E, Theorem 5", CORRECTED,
        "Against the cut-off rational kernel regret grows like √T, with constants exponential in "
        "σ²c.",
        ("tests/worlds/test_radial.py::test_golden_values",
         "tests/test_bounds.py::test_parallel_worlds_by_hand",
         "tests/test_claims_noise.py::test_norm_of_noisy_copies_of_the_case_study"),
        reason="Printed with σ for σ², and with the second moment that Theorem 3 corrects."),
    Claim("DA-Lemma7", f"{PAPER}, App. E, Lemma 7", CORRECTED,
        "Noisy copies have a squared norm of at most exp(2σ²c).",
        ("tests/test_claims_noise.py::test_norm_of_noisy_copies_of_the_case_study",),
        reason=(
            "Printed with σ for σ², which large noise exceeds; loose by orders of magnitude, and "
            "the library takes k̂(x, x) itself."
        )),
    Claim("DA-Lemma8", f"{PAPER}, App. E, Lemma 8", CORRECTED,
        "The surrogate of Eq. 17 is unbiased.",
        ("tests/worlds/test_radial.py::test_the_printed_surrogate_is_biased",
         "tests/worlds/test_radial.py::test_unbiased",
         "colabs/errata.ipynb::5"),
        reason="With σ for σ², as printed, it is biased."),
    Claim("DA-Lemma9", f"{PAPER}, App. E, Lemma 9", CORRECTED,
        "Lifted norms of the cut-off rational kernel obey the bound of Lemma 6.",
        ("tests/worlds/test_radial.py::test_grams_are_psd_and_within_the_ratio",
         "tests/test_bounds.py::test_lemma_6_holds_for_random_expansions",
         "tests/test_claims_noise.py::test_norm_of_noisy_copies_of_the_case_study"),
        reason="Printed with σ for σ², and without a_i in its last line."),
    Claim("DA-Fig1", f"{PAPER}, Figure 1", REPRODUCED,
        "Cut off, the rational kernel is lower near zero, by at most e^(−c), and the same far "
        "away.",
        ("tests/commands/test_worlds_command.py::test_saves_the_kernels_and_says_what_they_cost",
         "tests/worlds/test_radial.py::test_approximation_error_is_the_largest_difference",
         "colabs/parallel_worlds.ipynb::3")),
    Claim("DA-short", f"{PAPER}, extended abstract", CORRECTED,
        "The extended abstract states the same results without proofs.",
        ("tests/learners/test_linear.py::test_bias_exactly_by_enumeration",
         "tests/test_bounds.py::test_witness_of_the_printed_second_moment",
         "tests/test_bounds.py::test_witness_of_the_printed_second_moment_in_parallel_worlds",
         "tests/worlds/test_radial.py::test_refuses_bad_input"),
        reason=(
            "It shares the errors of Lemmas 1 and 2, of β_u and of Theorem 3, and calls any "
            "radial kernel a matter of integration, though without a cutoff no surrogate exists."
        )),
)
# fmt: on
