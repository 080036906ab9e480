//! ADCA as published: which checkpoint each of a series is told by, and what is stored.
