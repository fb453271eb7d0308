"""Claims of Online Learning with Kernels, and of the rival that it runs against."""

from noisy_jax.claims.claim import CONTRADICTED, CORRECTED, NOT_COMPUTABLE, REPRODUCED, Claim

PAPER = "Online Learning with Kernels"

# fmt: off
CLAIMS = (
    Claim("NORMA-Eq2-5", f"{PAPER}, Eqs. 2-5", REPRODUCED,
        "Regularised and instantaneous risk agree on average over the examples.",
        ("tests/test_comparators_regularized.py::test_instantaneous_risks_add_up",)),
    Claim("NORMA-Eq6", f"{PAPER}, Eq. 6", REPRODUCED,
        "Cumulative loss is that of predictions made before their examples are seen.",
        ("tests/learners/test_contract.py::test_predictions_do_not_depend_on_the_future",)),
    Claim("NORMA-Eq7-9", f"{PAPER}, Eqs. 7-9", CORRECTED,
        "A step of gradient descent on the instantaneous risk shrinks f and adds one term.",
        ("tests/test_claims_norma.py::test_the_step_shrinks_by_its_own_rate",
         "tests/learners/test_norma.py::test_schedule_and_decay_on_updates_equal_the_loop"),
        reason="Eq. 9 shrinks by a constant rate where it steps by η_t; both must be η_t."),
    Claim("NORMA-Eq10-12", f"{PAPER}, Eqs. 10-12", REPRODUCED,
        "f_t is a kernel expansion, whose coefficients decay as new ones join them.",
        ("tests/learners/test_norma.py::test_constant_rate_and_small_ring_equal_the_loop",
         "tests/learners/test_norma.py::test_the_recursion_equals_the_closed_form")),
    Claim("NORMA-Fig1", f"{PAPER}, Figure 1", REPRODUCED,
        "With a constant rate the coefficient of example i has shrunk by β^(t − 1 − i), and τ "
        "terms are kept.",
        ("tests/learners/test_norma.py::test_the_recursion_equals_the_closed_form",)),
    Claim("NORMA-II.D-speedup", f"{PAPER}, Sec. II.D", CORRECTED,
        "Coefficients stored at another scale need not be shrunk in every round.",
        ("tests/test_claims_norma.py::test_rescaled_storage",),
        reason="The factor is printed as 1 − η, which is 1 − ηλ, and its power is one too many."),
    Claim("NORMA-Prop1", f"{PAPER}, Proposition 1", REPRODUCED,
        "Dropping all but the τ newest terms of an expansion changes f by less than β^τ CX/λ.",
        ("tests/test_bounds_norma.py::test_proposition_1_is_attained",
         "tests/test_bounds_norma.py::test_proposition_1_holds_on_runs",
         "colabs/errata.ipynb::15"),
        reason=(
            "For constant rates and bounded slopes. It compares the whole with a part of one "
            "expansion, not two runs; the sum has one term too many."
        )),
    Claim("NORMA-offset", f"{PAPER}, Sec. III", REPRODUCED,
        "An offset learns by the same slopes, and is not regularised.",
        ("tests/learners/test_norma.py::test_constant_rate_and_small_ring_equal_the_loop",
         "tests/learners/test_norma.py::test_perceptron_makes_the_mistakes_of_river")),
    Claim("NORMA-Eq13-16,18", f"{PAPER}, Eqs. 13-16 and 18", REPRODUCED,
        "The soft margin loss gives an update where the margin is below ρ; without margin and "
        "decay it is the perceptron.",
        ("tests/learners/test_norma.py::test_constant_rate_and_small_ring_equal_the_loop",
         "tests/learners/test_norma.py::test_perceptron_is_norma_without_margin_and_decay",
         "tests/learners/test_norma.py::test_only_two_numbers_matter")),
    Claim("NORMA-Eq17", f"{PAPER}, Eq. 17", REPRODUCED,
        "f_t has a norm of at most X/λ, and values of at most X²/λ.",
        ("tests/test_bounds_norma.py::test_theorems_4_and_6_hold",
         "tests/test_bounds_norma.py::test_coefficients_stay_small_whatever_is_dropped",
         "tests/learners/test_norma.py::test_everything_kept_gives_a_norm_below_the_bound")),
    Claim("NORMA-Eq19", f"{PAPER}, Eq. 19", CORRECTED,
        "The ν-soft margin learns its margin, so that a share ν of rounds falls below it.",
        ("tests/learners/test_norma.py::test_printed_updates_of_other_scales_miss_their_share",
         "tests/learners/test_norma.py::test_constant_rate_and_small_ring_equal_the_loop",
         "tests/test_losses_adaptive.py::test_steps_are_minus_the_derivatives",
         "colabs/errata.ipynb::13"),
        reason="The margin's step has the wrong sign: as printed nearly all rounds do."),
    Claim("NORMA-λ=1", f"{PAPER}, Sec. III.A", REPRODUCED,
        "λ has no influence on ν-classification, and may be set to 1.",
        ("tests/test_claims_norma.py::test_regularization_only_scales_a_nu_classifier",),
        reason=(
            "Exactly so: it rescales f, b and ρ. It is not true of losses that are not "
            "homogeneous, such as Huber's."
        )),
    Claim("NORMA-Eq20", f"{PAPER}, Eq. 20", CORRECTED,
        "The novelty detector learns its threshold, so that a share ν of examples sounds an "
        "alarm.",
        ("tests/learners/test_norma.py::test_the_printed_sign_of_novelty_sounds_no_alarm_or_every_one",
         "tests/learners/test_norma.py::test_constant_rate_and_small_ring_equal_the_loop",
         "tests/learners/test_norma.py::test_warns_where_decay_leaves_few_support_vectors",
         "colabs/errata.ipynb::13"),
        reason=(
            "The threshold's step has the wrong sign: as printed either none or every example "
            "does. Where decay is fast beside ν, little is remembered."
        )),
    Claim("NORMA-Eq21", f"{PAPER}, Eq. 21", REPRODUCED,
        "The squared loss gives a leaky kernel LMS.",
        ("tests/learners/test_norma.py::test_squared_loss_on_the_linear_kernel_is_sgd_of_scikit_learn",)),
    Claim("NORMA-Eq22", f"{PAPER}, Eq. 22", CORRECTED,
        "The ε-insensitive loss learns its tube, so that a share ν of examples falls outside.",
        ("tests/learners/test_norma.py::test_printed_updates_of_other_scales_miss_their_share",
         "tests/test_losses_adaptive.py::test_steps_are_minus_the_derivatives"),
        reason=(
            "The update is right; the text below it swaps the amounts, by which a share 1 − ν "
            "would."
        )),
    Claim("NORMA-Eq23", f"{PAPER}, Eq. 23", REPRODUCED,
        "Huber's loss is quadratic within σ and linear beyond, with slopes of at most 1.",
        ("tests/test_losses.py::test_value_is_the_formula_and_derivative_its_gradient",
         "tests/test_losses_adaptive.py::test_huber_with_a_width_is_convex_in_both")),
    Claim("NORMA-Eq24", f"{PAPER}, Eq. 24", CORRECTED,
        "Huber's loss adds the clipped residual over σ, times η.",
        ("tests/test_claims_norma.py::test_the_printed_huber_update_is_no_gradient_step",
         "tests/learners/test_norma.py::test_constant_rate_and_small_ring_equal_the_loop",
         "colabs/errata.ipynb::14"),
        reason="The quadratic branch lacks η, and the decay is 1 − ηλ, printed 1 − η."),
    Claim("NORMA-adaptive-σ", f"{PAPER}, Sec. III.C", CORRECTED,
        "Huber's loss may learn its width as the tube does.",
        ("tests/test_losses_adaptive.py::test_steps_are_minus_the_derivatives",
         "tests/learners/test_norma.py::test_constant_rate_and_small_ring_equal_the_loop",
         "tests/learners/test_norma.py::test_scales_are_clamped"),
        reason=(
            "η and λ are missing as in Eq. 24. The width's step is no gradient of Huber's loss: "
            "it tracks a quantile. The joint gradient is another step, and the library has both."
        )),
    Claim("NORMA-Eq25-27", f"{PAPER}, Eqs. 25-27", REPRODUCED,
        "Mistakes and margin errors are counted by rounds at or below 0 and ρ; errors are "
        "updates.",
        ("tests/test_bounds_norma.py::test_theorems_2_and_3_hold_on_drifting_streams",
         "tests/learners/test_norma.py::test_perceptron_is_norma_without_margin_and_decay")),
    Claim("NORMA-IV.B", f"{PAPER}, Sec. IV.B", REPRODUCED,
        "A perceptron makes at most ‖g‖²X²/μ² mistakes where g separates with margin μ; drifting "
        "g are measured by the lengths of their moves.",
        ("tests/test_bounds_norma.py::test_mistake_bound_is_attained",
         "tests/test_bounds_norma.py::test_drift_in_the_space_of_a_kernel")),
    Claim("NORMA-Eq30", f"{PAPER}, Eq. 30", REPRODUCED,
        "h(x, K, C) is the rate that balances both terms of the mistake bound.",
        ("tests/test_bounds_norma.py::test_h_to_all_digits",),
        reason="As printed digits cancel; x/(1 + √(1 + xK/C)) is the same."),
    Claim("NORMA-Eq31-32", f"{PAPER}, Eqs. 31 and 32", REPRODUCED,
        "C, λ and η follow from the comparator's norm and drift.",
        ("tests/test_bounds_norma.py::test_constants_by_hand",)),
    Claim("NORMA-Thm2", f"{PAPER}, Theorem 2", REPRODUCED,
        "Tuned by Eqs. 31 and 32, NORMA makes no more margin errors than a bound in the "
        "comparator's loss and drift.",
        ("tests/test_bounds_norma.py::test_theorems_2_and_3_hold_on_drifting_streams",
         "tests/test_bounds_norma.py::test_mistake_bound_is_attained")),
    Claim("NORMA-Thm3", f"{PAPER}, Theorem 3", REPRODUCED,
        "Tuned by Eq. 32, with margin zero or μ − r, NORMA makes no more mistakes than a bound in "
        "the comparator's loss and drift.",
        ("tests/test_bounds_norma.py::test_theorems_2_and_3_hold_on_drifting_streams",
         "tests/test_bounds_norma.py::test_mistake_bound_is_attained")),
    Claim("NORMA-IV.C", f"{PAPER}, Sec. IV.C", CORRECTED,
        "For a comparator that stands still and separates, margin errors number at most X²B²/(μ − "
        "ρ)².",
        ("tests/test_bounds_norma.py::test_mistake_bound_is_attained",
         "colabs/errata.ipynb::15"),
        reason="At ρ = μ/2 that is 4X²B²/μ², printed 4X²B²/μ."),
    Claim("NORMA-Lemma7", f"{PAPER}, Lemma 7", CORRECTED,
        "K/(γ − z) + C/(z(γ − z)) is least at z = h(γ, K, C).",
        ("tests/test_bounds_norma.py::test_lemma_7_minimises",
         "colabs/errata.ipynb::15"),
        reason='Printed "maximised"; it has no maximum.'),
    Claim("NORMA-Eq33-34", f"{PAPER}, Eqs. 33 and 34", REPRODUCED,
        "Iterates and minimiser lie in a ball of radius cX/λ, and gradients in one of 2cX.",
        ("tests/test_bounds_norma.py::test_theorems_4_and_6_hold",
         "tests/test_bounds_norma.py::test_a_priori_by_hand")),
    Claim("NORMA-Thm4", f"{PAPER}, Theorem 4", REPRODUCED,
        "With η_t ∝ t^(−½) the instantaneous risks exceed m times any g's regularised risk by at "
        "most a√m + b.",
        ("tests/test_bounds_norma.py::test_theorems_4_and_6_hold",
         "tests/test_bounds_norma.py::test_regularized_risk_by_hand")),
    Claim("NORMA-Cor5", f"{PAPER}, Corollary 5", CORRECTED,
        "On independent examples the average hypothesis has a risk within (a + L√(2 log(1/δ)))/√m "
        "+ b/m of the best.",
        ("tests/test_claims_norma.py::test_the_average_is_over_the_hypotheses_that_predicted",
         "tests/learners/test_averaged.py::test_predicts_with_the_mean_of_played_iterates"),
        reason=(
            "The average is over the m hypotheses that predicted; printed, it leaves out the "
            "last. Its high probability is taken from the theorem that it cites."
        )),
    Claim("NORMA-Thm6", f"{PAPER}, Theorem 6", CORRECTED,
        "Dropping all but about t^(½ + ε) terms leaves the bound of Theorem 4 with a larger "
        "constant.",
        ("tests/test_bounds_norma.py::test_theorems_4_and_6_hold",
         "tests/test_memory.py::test_the_window_grows_from_where_the_three_conditions_hold",
         "tests/test_memory.py::test_growing_equals_the_loop",
         "colabs/errata.ipynb::15"),
        reason=(
            "The proof takes the norm to stay bounded, which the sum of the coefficients' sizes "
            "shows, with 6 for the printed 10; and its window shrinks at t₀, where it must hold."
        )),
    Claim("NORMA-Fig2", f"{PAPER}, Sec. VI.A, Figure 2", NOT_COMPUTABLE,
        "Numbers of mistakes of five learners on drifting and on switching classes.",
        ("tests/streams/test_mixtures.py::test_examples_agree_with_the_bayes_rule_of_their_period_by_the_margin",
         "tests/streams/test_mixtures.py::test_drift_is_of_its_size_every_ten_rounds_and_stays_in_the_box",
         "tests/streams/test_mixtures.py::test_a_switch_draws_everything_again"),
        reason=(
            "Number, place and width of the classes, size of the drift, kernel widths and tuned "
            "parameters are not given; the streams follow the procedure."
        )),
    Claim("NORMA-Fig2-repro", f"{PAPER}, Sec. VI.A", CONTRADICTED,
        "The learners do not differ decisively on drifting and switching classes.",
        ("tests/learners/test_norma.py::test_untuned_norma_beats_the_perceptron_on_what_drifts",
         "colabs/drift_and_novelty.ipynb::2"),
        reason=(
            "On drifting classes they do: with margin and decay NORMA makes under 0.8 of the "
            "perceptron's mistakes on every one of 20 streams. The command `drift` measures the "
            "rest."
        )),
    Claim("NORMA-ALMA_2", f"{PAPER}, Sec. VI.A, after Gentile", REPRODUCED,
        "The rival is ALMA₂, which updates within a margin that shrinks, and projects onto the "
        "unit ball.",
        ("tests/learners/test_alma.py::test_equals_the_pseudo_code",
         "tests/learners/test_alma.py::test_ends_in_the_margin_that_it_approximates"),
        reason="The paper names it alone; the pseudo-code is that of its own source."),
    Claim("NORMA-Fig3", f"{PAPER}, Sec. VI.B, Figure 3", NOT_COMPUTABLE,
        "The digits that a novelty detector rejects, ordinary ones early and odd ones late.",
        ("tests/learners/test_norma.py::test_warns_where_decay_leaves_few_support_vectors",
         "tests/commands/test_novelty_command.py::test_tables_are_those_of_a_plain_loop",
         "tests/commands/test_novelty_command.py::test_rejections_are_the_alarms_and_the_lowest_scores",
         "colabs/drift_and_novelty.ipynb::3"),
        reason=(
            "The pixels' scale is not given. With decay in every round its setting remembers less "
            "than one alarm, of which the library warns."
        )),
)
# fmt: on
