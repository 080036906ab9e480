//! hopmap
