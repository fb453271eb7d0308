"""Parsing of arguments, once, where they enter the library.

A parser such as `radius = positive("radius", radius)` returns the value. A concrete value that is
wrong raises ValueError, whose message names the argument, the given value and the allowed ones. A
traced value (under `jit`, `vmap` or `grad`) cannot raise: where it is wrong it becomes NaN, so that
the run ends in NaN and `Rollout.diverged_at` gives the first such round.
"""
