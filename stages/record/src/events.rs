//! What `hopmap record --events` records of each procedure: which macros of `events.c` its wrappers call.

use crate::table::Procedure;

/// Names of arguments that a procedure may change, which are kept or replaced before the call.
const KEPT: [&str; 5] = ["request", "requests", "message", "statuses", "status"];

/// The part of a wrapper that concerns events.
pub(crate) struct Event {
    /// The macro after the call, without which it is recorded with its times alone.
    pub(crate) after: Option<String>,
    /// What is kept before the call, of `KEPT`.
    pub(crate) kept: Vec<&'static str>,
    /// What a call is that has only times: the number of a `CLASS_…`.
    pub(crate) class: &'static str,
}

impl Event {
    /// The event of a procedure; `None` of one that begins or ends the recording.
    pub(crate) fn of(procedure: &Procedure) -> Option<Self> {
        let ends = ["init", "session-init", "finalize", "session-finalize", "abort"];
        if ends.contains(&procedure.kind) {
            return None;
        }
        let after = after(procedure);
        let kept = KEPT.into_iter().filter(|name| is_kept(procedure, name)).collect();
        Some(Self { after, kept, class: class(procedure) })
    }

    /// The statements before the call of MPI, in C or in Fortran.
    pub(crate) fn before(&self, language: &str) -> String {
        self.kept.iter().map(|name| format!("KEEP_{language}{name}; ")).collect()
    }
}

/// Whether this argument is kept or replaced before the call: requests and messages where the call takes them
/// away, statuses where they are read.
pub(crate) fn is_kept(procedure: &Procedure, argument: &str) -> bool {
    let name = procedure.name;
    let takes = name.starts_with("Wait") || name.starts_with("Test") || name == "Request_free";
    procedure.has(argument)
        && match argument {
            "request" | "requests" => takes,
            "message" => ["Mrecv", "Imrecv"].contains(&name),
            "status" => takes || ["Recv", "Mrecv", "Sendrecv", "Sendrecv_replace"].contains(&name),
            "statuses" => takes,
            _ => false,
        }
}

/// The macro that records a procedure.
fn after(procedure: &Procedure) -> Option<String> {
    let name = procedure.name;
    let event = match name {
        "Sendrecv_replace" => "sendrecv",
        "Sendrecv" | "Isendrecv" | "Isendrecv_replace" | "Recv" | "Mrecv" | "Irecv" | "Recv_init"
        | "Imrecv" | "Mprobe" | "Improbe" | "Iprobe" | "Request_get_status" | "Start" | "Startall"
        | "Cancel" | "Request_free" => {
            return Some(format!("EVENT_{}", name.to_lowercase()));
        }
        _ if name.starts_with("Wait") || name.starts_with("Test") => {
            return Some(format!("EVENT_{}", name.to_lowercase()));
        }
        _ if procedure.kind == "send" => return Some(send(procedure)),
        _ if !hopmap_recording::CollectiveKind::ALL.iter().any(|kind| kind.name() == procedure.kind) => {
            return None;
        }
        _ if procedure.is_persistent => "collective_init",
        _ if procedure.has("request") => "icollective",
        _ => "collective",
    };
    Some(format!("EVENT_{event}"))
}

/// A send, with its mode: standard, buffered, synchronous, ready.
fn send(procedure: &Procedure) -> String {
    let start = procedure.name.trim_end_matches("_init").trim_start_matches('I').to_lowercase();
    let mode = ["send", "bsend", "ssend", "rsend"].iter().position(|name| *name == start).unwrap_or(0);
    let event = match procedure.has("request") {
        true if procedure.is_persistent => "send_init",
        true => "isend",
        false => "send",
    };
    format!("EVENT_{event}({mode})")
}

fn class(procedure: &Procedure) -> &'static str {
    match procedure.kind {
        "put" | "get" | "update" | "fetch" | "swap" | "window" | "free-window" => "CLASS_ONE_SIDED",
        "communicator" | "duplicate" | "free" => "CLASS_COMMUNICATOR",
        "partitioned" => "CLASS_PARTITIONED",
        _ if procedure.name.starts_with("Win_") => "CLASS_ONE_SIDED",
        _ if procedure.has("partitions")
            || procedure.has("partition")
            || procedure.name.starts_with("Pready") =>
        {
            "CLASS_PARTITIONED"
        }
        _ if procedure.name.ends_with("probe") => "CLASS_PROBE",
        _ => "CLASS_OTHER",
    }
}
