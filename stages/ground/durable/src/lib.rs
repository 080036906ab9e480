//! Files that survive a crash: temp and rename, locks, append-only logs.
