//! Recordings of MPI programs: reading, merging, task graphs and summaries.
//!
//! A recording is a folder with a file `record.json` ([`Description`]) and, with the method `preload`, a file
//! `rank-N.bin` per rank ([`RankFile`]), and with `--events` a file `events-N.bin` ([`EventFile`]). With the method `openmpi` it has the profiles of Open MPI's
//! monitoring instead, `monitoring/x.N.prof`. Such profiles are also read without a `record.json`.
//!
//! `rank-N.bin`, in little endian:
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `HOPREC1\0` |
//! | u32 | version, 1 |
//! | u32 | rank in `MPI_COMM_WORLD` |
//! | u32 | number of ranks |
//! | u32 | flags: 1 `MPI_Finalize` was reached, 2 times were recorded, 4 something was dropped for lack of memory or disk space, 8 messages or calls to processes outside of `MPI_COMM_WORLD` were not counted, 16 the command line follows the cores |
//! | f64 | seconds from the end of `MPI_Init` to the begin of `MPI_Finalize` |
//! | f64 | of these, seconds inside MPI |
//! | u32, text | length of the host name, and the name, padded with zeros to a multiple of 4 bytes |
//! | u32, u32 each | number of cores of the rank, and the cores |
//! | u32, text | with flag 16: length of the command line, which may be cut, and the words of it with blanks between, padded likewise |
//! | u64, 32 each | number of pairs, and the pairs |
//! | u64, 40 each | number of collective operations, and the operations |
//! | u64, each | number of communicators, and the communicators |
//! | u64 | checksum of all bytes before it, FNV-1a |
//!
//! A pair is u32 world rank of the partner, u32 [`Kind`], u32 length of the messages (0 for empty ones, else
//! 1 + ⌊log₂ bytes⌋), u32 reserved, u64 messages, u64 bytes of all of them, which lie between both ends of
//! the length class. A partner has one pair per kind and length.
//!
//! A collective operation is u64 communicator, u32 [`CollectiveKind`], u32 root (its rank in the
//! communicator; `u32::MAX` without one), u64 bytes that this rank sent in all calls, u64 calls, u32 size of
//! the communicator, u32 reserved. Sent bytes are those of the arguments, count · size of the type: the vector
//! of a reduction, scan or allgather; the contribution to a gather; at the root, the vector of a broadcast and
//! all blocks of a scatter (elsewhere 0); the blocks for all ranks of an alltoall or reduce-scatter. Equal
//! operations may be split into several records, such as one per length. Those of intercommunicators are on the
//! members of both groups, in the same order on both sides; processes with the root `MPI_PROC_NULL` do not
//! count.
//!
//! A communicator is u64 number, u32 size, u32 world rank of each member. Numbers are those of this file; all
//! communicators of its collective operations are listed. Communicators of the same members in the same order
//! are one in the merged recording.

// What is read is untrusted: a number that does not fit is an error and not another number.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod collective;
mod description;
mod error;
mod events;
mod graph;
mod lengths;
mod monitoring;
mod names;
mod programs;
mod rank;
mod ranks;
mod read;
mod recording;
mod summary;
mod totals;

pub use collective::CollectiveKind;
pub use description::{Description, Method};
pub use error::RecordingError;
pub use events::{
    Call, CollectiveCall, Event, EventCommunicator, EventFile, Events, Message, Mode, OtherCall, event_files,
};
pub use graph::{Choice, Converted};
pub use monitoring::{PROFILE_ROWS, is_profiles, profiles};
pub use names::{DESCRIPTION, is_of_recording, profile_name, profile_prefix, rank_file_name};
pub use rank::{Communicator, Kind, MAX_RANKS, Operation, Pair, RankFile};
pub use read::{files, is_recording};
pub use recording::{Calls, Process, Recording, Traffic};
pub use summary::lines;
pub use totals::summarise;
