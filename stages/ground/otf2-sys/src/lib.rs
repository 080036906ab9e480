//! Raw bindings to libotf2.
