"""What `python -m noisy_jax NAME` runs: one study in each module.

A study is a frozen dataclass `Settings`, from whose docstring and fields the command line is made,
and a function `run(settings)` that yields a `Report` for each part of the study: the text to print,
tables, pictures and configuration. `settings` and `runner` hold what all studies share,
`regret` what those of regret share.

A notebook can use a study as well::

    from noisy_jax.studies import one_copy

    (report,) = one_copy.run(one_copy.Settings(seeds=8))
    print(report)
    report.figures["one_copy"]()
"""
