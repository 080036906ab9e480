//! Columns of checkpoints: series, deltas and stores.

use super::form::{KindForm, always, column, files};

pub(super) const CHECKPOINTS: KindForm =
    files("checkpoints", "The files of a series of checkpoints, `CHECKPOINT/PATH`.");

pub(super) const DELTAS: KindForm = KindForm {
    kind: "deltas",
    summary: "What delta encoding of a series of checkpoints stores, by rule and block length.",
    tables: &[
        always(
            "checkpoints",
            &[
                column("rule", "text", "`first`, `incremental`, `adca` or `optimum`"),
                column("reading", "text", "reading of ADCA: `literal` or `immediate`"),
                column("block", "u32", "bytes of a block"),
                column("checkpoint", "u32", "checkpoint, from 1"),
                column("name", "text", "its name"),
                column("base", "u32?", "base that it is encoded against; missing for the first"),
                column("full_bytes", "u64", "size of the checkpoint"),
                column("blocks", "u64", "its blocks"),
                column("changed_blocks", "u64", "blocks that are stored"),
                column("stored_bytes", "u64", "bytes that are stored, S(C)"),
                column("depth", "u32", "deltas that a restore applies"),
                column("write_s", "f64", "seconds to write them, W(S(C))"),
                column("saving", "f64?", "fraction that ADCA compares with ε"),
            ],
        ),
        always(
            "rules",
            &[
                column("rule", "text", "rule"),
                column("reading", "text", "reading of ADCA"),
                column("block", "u32", "bytes of a block"),
                column("bases", "text", "base of every checkpoint from the second on: the vector b"),
                column("sum_of_bases", "u64", "Σ b"),
                column("base_changes", "u32", "number of times the base changes"),
                column("full_bytes", "u64", "size of all checkpoints"),
                column("stored_bytes", "u64", "bytes that are stored"),
                column("write_s", "f64", "E(C(b)) in seconds"),
                column("depth", "u32", "deltas of the longest chain"),
            ],
        ),
    ],
    metrics: &[],
};

pub(super) const CHECKPOINT_STORE: KindForm = KindForm {
    kind: "checkpoint-store",
    summary: "A checkpoint store, and what every checkpoint takes in it.",
    tables: &[always(
        "checkpoints",
        &[
            column("checkpoint", "u32", "checkpoint, from 1"),
            column("name", "text", "its name in the series"),
            column("files", "u32", "number of its files"),
            column("bytes", "u64", "bytes of all files"),
            column("zero_bytes", "u64", "of these, zeros"),
            column("unchanged_bytes", "u64", "of these, as in the previous checkpoint at the same place"),
            column("known_bytes", "u64", "of these, stored before elsewhere"),
            column("new_bytes", "u64", "of these, new"),
            column("stored_bytes", "u64", "bytes on disk, metadata included"),
        ],
    )],
    metrics: &[("bytes", "size of all checkpoints"), ("stored_bytes", "bytes on disk")],
};
