//! Stories of the running system: real binaries, real signals, a scratch home each. See `tests/`.
