//! Where every rank runs: mappers.
