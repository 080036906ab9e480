//! How good a mapping is beside linear and random.
