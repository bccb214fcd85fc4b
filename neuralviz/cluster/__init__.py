"""Corpora beyond one machine: read, embedded and placed on maps by Ray, kept in the same store.

Needs the packages of ``neuralviz[ray]``. Everything that schedules, moves or repeats work is Ray's;
what is written here says what the work is, and commits what comes of it.
"""
