"""Claims of Subquantile Minimization for Kernel Learning in the Huber ε-Contamination Model."""

from noisy_jax.claims.claim import CONTRADICTED, CORRECTED, NOT_COMPUTABLE, REPRODUCED, Claim

PAPER = "Subquantile Minimization for Kernel Learning"

# fmt: off
CLAIMS = (
    Claim("SQ-Def1", f"{PAPER}, Definition 1", CORRECTED,
        "A share ε of the rows is corrupted.",
        ("tests/test_contaminations.py::test_rewrites_the_share_that_is_trimmed_and_nothing_else",
         "tests/test_contaminations.py::test_adaptive_turns_the_rows_that_pull_down_most"),
        reason=(
            "Printed both as a mixture and as an adversary who sees everything; the proofs need "
            "the second. The target is the minimiser of the expected loss, printed as that loss."
        )),
    Claim("SQ-quantile", f"{PAPER}, Sec. 3", CORRECTED,
        "The p-quantile is the smallest t that U does not exceed with probability p.",
        ("tests/test_claims_subquantile.py::test_subquantile_is_the_mean_of_the_quantiles_below",
         "tests/subquantile/test_trimmed_steps.py::test_threshold_is_the_quantile_and_maximises_the_variational_objective"),
        reason='Printed "largest", of which there is none.'),
    Claim("SQ-subquantile", f"{PAPER}, Sec. 3", CORRECTED,
        "The subquantile is the mean of the quantiles below p.",
        ("tests/test_claims_subquantile.py::test_subquantile_is_the_mean_of_the_quantiles_below",),
        reason=(
            "The integrand is printed as Q_p, a constant. It is the mean of what lies below Q_p "
            "only where that has probability p."
        )),
    Claim("SQ-minmax", f"{PAPER}, Sec. 3", CORRECTED,
        "Minimising the subquantile of the losses is a min-max problem in f and a threshold t.",
        ("tests/subquantile/test_trimmed_steps.py::test_threshold_is_the_quantile_and_maximises_the_variational_objective",
         "colabs/errata.ipynb::16"),
        reason=(
            "The sum lacks the weight 1/(n(1 − ε)): as printed, the smallest loss alone would "
            "count."
        )),
    Claim("SQ-Lemma3", f"{PAPER}, Lemma 3", REPRODUCED,
        "The best threshold is the (1 − ε)-quantile of the losses.",
        ("tests/subquantile/test_trimmed_steps.py::test_threshold_is_the_quantile_and_maximises_the_variational_objective",),
        reason="The subdifferential in its proof has the wrong total."),
    Claim("SQ-Lemma4", f"{PAPER}, Lemma 4", REPRODUCED,
        "The gradient is the mean of the gradients of the rows kept.",
        ("tests/subquantile/test_trimmed_steps.py::test_gradient_in_the_kernels_space",
         "tests/subquantile/test_trimmed_steps.py::test_selection_is_by_rank_and_ties_by_index"),
        reason="Printed with ∇f for the losses' gradients."),
    Claim("SQ-Alg1", f"{PAPER}, Algorithm 1", CORRECTED,
        "Subquantile ridge regression is gradient descent on the rows of smallest loss.",
        ("tests/subquantile/test_trimmed_steps.py::test_descent_equals_the_loop",
         "tests/subquantile/test_trimmed_steps.py::test_gradient_in_the_kernels_space",
         "tests/subquantile/test_trimmed_fits.py::test_fits_are_ridge_on_the_rows_kept"),
        reason=(
            "Three scales of C are printed; the library's is that of the algorithm and of the "
            "proof, (C/m)‖f‖²."
        )),
    Claim("SQ-Alg1-step", f"{PAPER}, Algorithm 1", CORRECTED,
        "The step of 1/ℓ descends.",
        ("tests/subquantile/test_trimmed_steps.py::test_the_printed_step_diverges_where_nothing_is_trimmed",
         "tests/subquantile/test_trimmed_steps.py::test_descent_equals_the_loop",
         "colabs/errata.ipynb::17"),
        reason=(
            "ℓ = ‖K‖/m lacks 2 and C: where nothing is trimmed and C > 0 the step diverges. 1/L "
            "with L = (2/m)(‖K‖ + C) is safe."
        )),
    Claim("SQ-descent", f"{PAPER}, Sec. 3", REPRODUCED,
        "The trimmed objective never rises.",
        ("tests/subquantile/test_trimmed_steps.py::test_the_objective_falls_by_the_certified_amount",),
        reason="At the safe step, by the amount that is certified in each iteration."),
    Claim("SQ-Lemma20", f"{PAPER}, Lemma 20", REPRODUCED,
        "f min(1, R/‖f‖) is the projection onto the ball.",
        ("tests/subquantile/test_trimmed_steps.py::test_descent_equals_the_loop",
         "tests/subquantile/test_trimmed_fits.py::test_a_linear_kernel_is_descent_on_its_weights")),
    Claim("SQ-Alg2", f"{PAPER}, Algorithm 2", CORRECTED,
        "Subquantile classification is the descent of Algorithm 1 on logistic losses.",
        ("tests/subquantile/test_trimmed_steps.py::test_descent_equals_the_loop",
         "tests/subquantile/test_trimmed_fits.py::test_flipped_labels_are_found"),
        reason=(
            "Its ℓ = ‖K‖/m is four times the smoothness, so that its step is safe and slow. Only "
            "the ball bounds the norm."
        )),
    Claim("SQ-T", f"{PAPER}, Algorithms 1 and 2", NOT_COMPUTABLE,
        "A number of iterations logarithmic in the accuracy suffices.",
        ("tests/subquantile/test_trimmed_fits.py::test_converged_fits_are_within_the_tolerance_in_float32",),
        reason=(
            "It needs ‖f*‖ and lacks the condition number that its own contraction shows. The "
            "library iterates to a certified tolerance."
        )),
    Claim("SQ-Prop10", f"{PAPER}, Proposition 10", CORRECTED,
        "The largest of n Gaussians exceeds s σ√(2 log n) with probability of at most (√2/log "
        "n)e^(−s²).",
        ("tests/test_claims_subquantile.py::test_largest_of_gaussians",
         "colabs/errata.ipynb::18"),
        reason="False near s = 1; n^(1 − s²)/(s√(π log n)) holds."),
    Claim("SQ-Prop11", f"{PAPER}, Proposition 11", REPRODUCED,
        "A sum of n squared Gaussians exceeds 8nσ²s with probability of at most 4e^(−s).",
        ("tests/test_claims_subquantile.py::test_sums_of_squared_gaussians",)),
    Claim("SQ-Lemma12", f"{PAPER}, Lemma 12", REPRODUCED,
        "Weighted sums of independent sub-Gaussian atoms have the proxy (Σa_i²)Γ.",
        ("tests/test_claims_subquantile.py::test_weighted_sums_are_as_sub_gaussian_as_their_squared_weights",),
        reason=(
            "Shown for coins. Its proof goes by Hölder, which loses a factor n; independence "
            "gives it."
        )),
    Claim("SQ-Thm13", f"{PAPER}, Theorem 13", NOT_COMPUTABLE,
        "Norms of sums of sub-Gaussian atoms concentrate (Hanson and Wright).",
        (),
        reason="A cited result, with a universal constant that is not given."),
    Claim("SQ-Fact14", f"{PAPER}, Fact 14", REPRODUCED,
        "Σ_{i ≤ k} C(n, i) ≤ (en/k)^k.",
        ("tests/test_claims_subquantile.py::test_sums_of_binomial_coefficients",)),
    Claim("SQ-Jensen", f"{PAPER}, Proposition 15", REPRODUCED,
        "Jensen's inequality.",
        ("tests/test_claims_subquantile.py::test_standard_inequalities",)),
    Claim("SQ-Prop16", f"{PAPER}, Proposition 16", CONTRADICTED,
        "Sums of features over any subset of the honest rows have a norm of lower order than the "
        "subset's size.",
        ("tests/test_claims_subquantile.py::test_sums_over_the_worst_subset_grow_with_the_square_of_its_size",),
        reason=(
            "The norm is printed without its square, and is then trivially small. Squared, as the "
            "proofs use it, it grows like n², not n^1.5."
        )),
    Claim("SQ-Prop17", f"{PAPER}, Proposition 17", REPRODUCED,
        "McDiarmid's inequality.",
        ("tests/test_claims_subquantile.py::test_standard_inequalities",),
        reason="Shown for means of coins."),
    Claim("SQ-Thm18", f"{PAPER}, Theorem 18", REPRODUCED,
        "The mean of n features is within √(C_k/n)(1 + √(2 log(1/δ))) of its expectation, with "
        "probability 1 − δ.",
        ("tests/test_claims_subquantile.py::test_means_of_features",),
        reason="Shown for all samples from three points."),
    Claim("SQ-Prop19", f"{PAPER}, Proposition 19", CORRECTED,
        "The empirical covariance of features is close to Γ.",
        ("tests/test_claims_subquantile.py::test_covariances_of_features",),
        reason=(
            "It takes E‖φ‖⁴ ≤ 2‖Γ‖², which is false for a Gaussian kernel; P_k² in its place "
            "gives 2P_k/√n. Its second display is not what is proved."
        )),
    Claim("SQ-Lemma21", f"{PAPER}, Lemma 21", CORRECTED,
        "The objective at a fixed threshold is smooth.",
        ("tests/test_claims_subquantile.py::test_the_objective_at_a_fixed_threshold_is_not_smooth",
         "tests/subquantile/test_trimmed_steps.py::test_the_objective_falls_by_the_certified_amount"),
        reason=(
            "Its gradient jumps where a loss crosses the threshold. The quadratic upper bound "
            "with L = 2‖K‖/m holds, and is what descent needs."
        )),
    Claim("SQ-Prop22", f"{PAPER}, Proposition 22", REPRODUCED,
        "Young's inequality.",
        ("tests/test_claims_subquantile.py::test_standard_inequalities",)),
    Claim("SQ-Lemma23", f"{PAPER}, Lemma 23", CORRECTED,
        "A step of descent shrinks the excess over the minimum by 1 − μ/ℓ.",
        ("tests/test_claims_subquantile.py::test_descent_lowers_the_excess_and_not_the_objective",),
        reason="Printed without the minimum, as if it were zero."),
    Claim("SQ-Lemma24", f"{PAPER}, Lemma 24", REPRODUCED,
        "The logistic objective has the Lipschitz constant (1/m)Σ‖φ(x_i)‖.",
        ("tests/test_claims_subquantile.py::test_logistic_gradients_are_bounded_by_the_norms_of_features",),
        reason=(
            "Its proof takes ‖Σc_iφ_i‖ ≤ max|c_i|·‖Σφ_i‖, which is false, and others use it too."
        )),
    Claim("SQ-Eq19", f"{PAPER}, Eq. 19", CORRECTED,
        "The logistic loss has a curvature of at least C_s in the ball.",
        ("tests/test_claims_subquantile.py::test_curvature_of_the_logistic_loss",
         "colabs/errata.ipynb::18"),
        reason="Printed with the factor ½, which fails near zero; it is ¼."),
    Claim("SQ-ζ", f"{PAPER}, App. C.2", CORRECTED,
        "ζ is the share of honest rows among those kept, at least.",
        ("tests/test_claims_subquantile.py::test_share_of_honest_rows_among_those_kept",),
        reason="Defined upside down: it is used as (1 − 2ε)/(1 − ε)."),
    Claim("SQ-Eqs13-14", f"{PAPER}, Eqs. 13 and 14", CORRECTED,
        "A step moves f by η times the mean gradient of the rows kept.",
        ("tests/subquantile/test_trimmed_steps.py::test_descent_equals_the_loop",
         "tests/subquantile/test_trimmed_steps.py::test_gradient_in_the_kernels_space"),
        reason="The mean is divided by m once more."),
    Claim("SQ-Eqs12,23", f"{PAPER}, Eqs. 12 and 23", CORRECTED,
        "What lies outside the leading eigenspace grows by the residuals in each step.",
        ("tests/subquantile/test_trimmed_steps.py::test_gradient_in_the_kernels_space",),
        reason="The residuals enter to the first power, printed squared."),
    Claim("SQ-Thm5", f"{PAPER}, Theorems 2 and 5, regression", NOT_COMPUTABLE,
        "Subquantile ridge regression comes close to f* in norm, arbitrarily so as n grows.",
        ("tests/test_claims_subquantile.py::test_the_error_of_trimmed_fits_does_not_vanish",
         "colabs/errata.ipynb::19"),
        reason=(
            "Its constants are not given, its condition on ε is vacuous beyond a few eigenvalues, "
            "and its proof rests on Proposition 16 and Lemma 23. At fixed ε the error does not "
            "vanish."
        )),
    Claim("SQ-Thm6", f"{PAPER}, Theorems 2 and 6, classification", NOT_COMPUTABLE,
        "Subquantile classification comes close to f* in norm.",
        (),
        reason="The constants are not given, and the proof has the gaps of Theorem 5."),
    Claim("SQ-related", f"{PAPER}, Sec. 3.1", REPRODUCED,
        "Alternating between the threshold and a fit is iterative thresholding, or trimmed "
        "likelihood.",
        ("tests/subquantile/test_trimmed_fits.py::test_fits_are_ridge_on_the_rows_kept",
         "tests/subquantile/test_trimmed_steps.py::test_the_objective_falls_by_the_certified_amount"),
        reason=(
            "The convergence that is cited for it is not checked; the certified descent takes its "
            "place."
        )),
)
# fmt: on
