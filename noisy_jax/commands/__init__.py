"""The commands of `python -m noisy_jax`, one a module.

A command is a module with `SUMMARY` and `DESCRIPTION`, `EXAMPLES` for its help,
`add_options(parser)`, and `run(options)`, which raises a ValueError for bad input.
"""
