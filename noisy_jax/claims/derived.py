"""What the library adds to the papers: sharper constants, other noise distributions, cheaper estimates."""

from noisy_jax.claims.claim import DERIVED, Claim

HERE = "Derived for this library"

# fmt: off
CLAIMS = (
    Claim("EXT-Rescue1", f"{HERE}, beside Theorem 1 of Noisy Data", DERIVED,
        "The residuals of descent from two copies are small on average, so that the printed bound "
        "of Theorem 1 holds up to 1 + O(T^(−½)).",
        ("tests/test_claims_noise.py::test_residuals_of_two_copies_are_small_on_average",)),
    Claim("EXT-Rescue3", f"{HERE}, beside Theorem 3 of Noisy Data", DERIVED,
        "The residuals in parallel worlds are small on average, so that the printed bound of "
        "Theorem 3 holds up to 1 + O(T^(−½)).",
        ("tests/test_claims_noise.py::test_residuals_in_parallel_worlds_are_small_on_average",)),
    Claim("EXT-CorrelatedNoise", f"{HERE}, beside Sec. 2 of Noisy Data", DERIVED,
        "Target noise that is correlated with the copy's needs +2E[n^y n^x] from one copy, and "
        "nothing from two.",
        ("tests/test_claims_noise.py::test_correlated_target_noise_needs_its_own_correction",)),
    Claim("EXT-Symmetrised", f"{HERE}, beside Algorithm 1 of Noisy Data", DERIVED,
        "The mean of the gradients over both orders of two copies has a smaller second moment.",
        ("tests/test_claims_noise.py::test_symmetrised_gradients_vary_less",)),
    Claim("EXT-Cloning", f"{HERE}, beside Secs. 4-6 of Noisy Data", DERIVED,
        "One copy under Gaussian noise of covariance Σ makes m independent ones of covariance mΣ.",
        ("tests/test_noise.py::test_cloned_copies_are_independent_with_the_law_of_cloned",
         "tests/learners/test_kernel.py::test_clones_are_independent_copies_of_the_stated_noise",
         "tests/test_claims_noise.py::test_clones_average_to_the_gradient_of_one_copy")),
    Claim("EXT-GeneralSigma", f"{HERE}, beside Eq. 5 of Noisy Data", DERIVED,
        "The surrogate of a Gaussian kernel for any covariance, R² = det(I − Σ/ℓ²)^(−½).",
        ("tests/worlds/test_gaussian.py::test_golden_values",
         "tests/worlds/test_gaussian.py::test_full_covariance_is_a_rotated_diagonal_one",
         "tests/worlds/test_gaussian.py::test_unbiased_where_the_clean_kernel_is_not")),
    Claim("EXT-IncrementalNorm", f"{HERE}, beside Algorithm 2 of Noisy Data", DERIVED,
        "The norm of the expansion follows by one kernel row a round, in place of a double sum.",
        ("tests/learners/test_kernel.py::test_parallel_worlds_equals_the_loop_with_the_double_sum",
         "tests/test_expansion.py::test_everything_kept_equals_the_loop_and_the_norm_the_double_sum",
         "tests/test_expansion.py::test_the_norm_holds_over_long_runs_in_float32")),
    Claim("EXT-HeteroscedasticAlg2", f"{HERE}, beside Algorithm 2 of Noisy Data", DERIVED,
        "Covariances that change from round to round, below a largest one, keep the guarantee of "
        "that one.",
        ("tests/worlds/test_heteroscedastic.py::test_unbiased_for_every_element_and_every_covariance",
         "tests/worlds/test_heteroscedastic.py::test_random_grams_are_psd_with_diagonals_below_the_worlds",
         "tests/learners/test_kernel.py::test_heteroscedastic_noise_equals_the_loop")),
    Claim("EXT-SingleCopyKernel", f"{HERE}, beside Sec. 6 of Noisy Data", DERIVED,
        "One Gaussian copy will do for kernels wherever 2‖Σ‖ < ℓ²: k(z, x)k(x, a) has an unbiased "
        "estimate, and two clones average to it.",
        ("tests/test_claims_noise.py::test_one_copy_has_a_product_of_kernels",
         "tests/learners/test_kernel_regret.py::test_regret_keeps_its_bound_where_the_noise_blind_one_is_linear",
         "tests/learners/test_kernel.py::test_cloned_refuses_what_it_cannot_clone")),
    Claim("EXT-FiniteMixture", f"{HERE}, beside Eq. 6 of Noisy Data", DERIVED,
        "A finite mixture of Gaussians has an exact surrogate, whatever integral it stands for.",
        ("tests/worlds/test_radial.py::test_unbiased",
         "tests/worlds/test_radial.py::test_grams_are_psd_and_within_the_ratio")),
    Claim("EXT-Measures", f"{HERE}, beside Sec. 6.1 of Noisy Data", DERIVED,
        "Laplacian, rational and Matérn kernels as mixtures, with the error of cutting them off.",
        ("tests/worlds/test_radial.py::test_equals_the_integral_by_adaptive_quadrature",
         "tests/worlds/test_radial.py::test_approximation_error_is_the_largest_difference",
         "tests/worlds/test_radial.py::test_matern_measures_have_the_mass_and_the_moments_of_their_law",
         "tests/worlds/test_radial.py::test_rational_mixtures_are_right_far_out")),
    Claim("EXT-LaplaceSurrogate", f"{HERE}, beside Sec. 6 of Noisy Data", DERIVED,
        "Under Laplace noise of any scale the Gaussian kernel has a surrogate, which takes "
        "negative values.",
        ("tests/worlds/test_gaussian.py::test_unbiased_where_the_clean_kernel_is_not",
         "tests/worlds/test_gaussian.py::test_golden_values",
         "tests/worlds/test_gaussian.py::test_the_laplace_surrogate_takes_negative_values",
         "tests/learners/test_kernel_regret.py::test_regret_keeps_its_bound_where_the_noise_blind_one_is_linear")),
    Claim("EXT-GeneralNoise", f"{HERE}, beside Sec. 6 of Noisy Data", DERIVED,
        "A surrogate is the kernel's spectrum over the noise's characteristic function: it exists "
        "where that ratio is integrable, and has bounded norms where the function is bounded "
        "below.",
        ("tests/worlds/test_gaussian.py::test_contaminated_surrogate_is_the_integral_of_its_spectral_density",
         "tests/worlds/test_gaussian.py::test_contaminated_surrogate_has_the_norm_ratio_and_negative_values",
         "tests/test_noise.py::test_uniform_characteristic_has_zeros")),
    Claim("EXT-FourierParallelWorlds", f"{HERE}, beside Sec. 6 of Noisy Data", DERIVED,
        "Random waves turn parallel worlds into a linear problem, for any noise of known "
        "characteristic function.",
        ("tests/worlds/test_fourier.py::test_noisy_features_have_the_clean_ones_for_their_mean",
         "tests/worlds/test_fourier.py::test_inner_products_tend_to_the_surrogate_and_to_the_kernel",
         "tests/worlds/test_fourier.py::test_every_noisy_copy_has_the_squared_norm",
         "tests/learners/test_kernel.py::test_fourier_worlds_converge_to_parallel_worlds")),
    Claim("EXT-OptimalN", f"{HERE}, beside Lemma 1 of Noisy Data with Kernels", DERIVED,
        "Orders drawn in proportion to |γ_n|(E X²)^(n/2) have the smallest second moment.",
        ("tests/estimators/test_orders.py::test_optimal_law_beats_every_other",
         "tests/estimators/test_means.py::test_golden_second_moments")),
    Claim("EXT-Centre", f"{HERE}, beside Lemma 1 of Noisy Data with Kernels", DERIVED,
        "A series about c, of copies less c, is estimated in the same way.",
        ("tests/estimators/test_means.py::test_mean_and_second_moment_by_enumeration",
         "tests/estimators/test_means.py::test_the_center_one_is_a_bad_one_for_the_smoothed_hinge"),
        reason="Not better in itself: about 1, the smoothed hinge is far worse."),
    Claim("EXT-OptimalGauss", f"{HERE}, beside Lemma 5 of Noisy Data with Kernels", DERIVED,
        "For the Gaussian kernel the best order of the envelope is Poisson.",
        ("tests/estimators/test_maps.py::test_poisson_law_of_the_envelope",
         "tests/estimators/test_maps.py::test_optimal_law_needs_less")),
    Claim("EXT-FloorNumbers", f"{HERE}, beside Theorem 3 of Noisy Data with Kernels", DERIVED,
        "With one copy of unknown noise, average squared-loss regret has the floor (1 − 1/√5)² = "
        "0.3056; other losses have others.",
        ("tests/test_bounds_one_copy.py::test_closed_forms",
         "tests/test_bounds_one_copy.py::test_floors_of_analytic_losses",
         "tests/test_bounds_one_copy.py::test_equals_a_search_over_a_grid",
         "tests/test_bounds_one_copy.py::test_a_fair_coin_between_the_adversaries_takes_less")),
)
# fmt: on
