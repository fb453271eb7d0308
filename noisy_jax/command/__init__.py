"""What `python -m noisy_jax NAME` runs, one study in each module, and what scripts need for it.

A study is a frozen dataclass `Settings`, from whose docstring and fields the command line is made,
and a function `run(settings)` that yields a `Report` for each part of the study: the text to print,
tables, pictures and configuration. `settings` and `runner` hold what all studies share,
`regret` what those of regret share.

Figures and tables of the papers are scripts in colabs/papers/ of the repository. They have the same
parts, and end in `sys.exit(runner.script(Settings, run))`.
"""
