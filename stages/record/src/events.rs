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
        let mut statements = String::new();
        for name in &self.kept {
            statements.extend(["KEEP_", language, name, "; "]);
        }
        statements
    }
}

/// Whether this argument is kept or replaced before the call: requests and messages where the call takes them
/// away, statuses where they are read.
pub(crate) fn is_kept(procedure: &Procedure, argument: &str) -> bool {
    let name = procedure.name;
    let takes = name.starts_with("Wait") || name.starts_with("Test") || name == "Request_free";
    procedure.has(argument)
        && match argument {
            "request" | "requests" | "statuses" => takes,
            "message" => ["Mrecv", "Imrecv"].contains(&name),
            "status" => takes || ["Recv", "Mrecv", "Sendrecv", "Sendrecv_replace"].contains(&name),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::procedures;

    fn of(name: &str) -> Event {
        let procedure = procedures().into_iter().find(|procedure| procedure.name == name).unwrap();
        Event::of(&procedure).unwrap()
    }

    #[test]
    fn what_a_call_takes_away_is_kept_before_it() {
        assert_eq!(of("Waitall").before(""), "KEEP_requests; KEEP_statuses; ");
        assert_eq!(of("Testany").before("FORTRAN_"), "KEEP_FORTRAN_requests; KEEP_FORTRAN_status; ");
        assert_eq!(of("Mrecv").kept, ["message", "status"]);
        assert_eq!(of("Request_free").kept, ["request"]);
        assert!(["Isend", "Irecv", "Start", "Cancel", "Iprobe"].iter().all(|name| of(name).kept.is_empty()));
    }

    #[test]
    fn every_procedure_has_its_event() {
        let after = |name: &str| of(name).after.unwrap_or_default();
        assert_eq!((after("Send"), after("Irsend")), ("EVENT_send(0)".into(), "EVENT_isend(3)".into()));
        assert_eq!(after("Bsend_init"), "EVENT_send_init(1)");
        assert_eq!(
            (after("Bcast"), after("Ibcast")),
            ("EVENT_collective".into(), "EVENT_icollective".into())
        );
        assert_eq!(after("Barrier_init"), "EVENT_collective_init");
        assert_eq!((after("Put"), of("Put").class), (String::new(), "CLASS_ONE_SIDED"));
        assert_eq!((after("Psend_init"), of("Psend_init").class), (String::new(), "CLASS_PARTITIONED"));
        let without = procedures().into_iter().filter(|procedure| Event::of(procedure).is_none());
        let without: Vec<&str> = without.map(|procedure| procedure.name).collect();
        assert_eq!(without, ["Init", "Init_thread", "Session_init", "Session_finalize", "Finalize", "Abort"]);
    }
}
