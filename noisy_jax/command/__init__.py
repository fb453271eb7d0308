"""Studies that `python -m noisy_jax NAME` runs, one in each module, and tools for scripts.

A study is a frozen dataclass `Settings`, from whose docstring and fields the command line is made,
and a function `run(settings)` that yields a `Report` for each part of the study: the text to print,
tables, pictures and configuration. `settings` and `runner` hold the parts shared
by all studies, `regret` the parts shared by studies of regret.

Figures and tables of the papers are scripts in colabs/papers/ of the repository. They have the same
parts, and end in `sys.exit(runner.script(Settings, run))`.
"""
