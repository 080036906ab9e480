//! Events of every call: they add up to the counters, and every message is sent and received once.

use std::collections::BTreeMap;
use std::path::Path;

use hopmap_recording::{
    Call, CollectiveCall, Description, Event, EventFile, Kind, Message, OtherCall, RankFile, event_files,
};

use crate::support::{compiled, mpis, program_of, record, text};

/// Source, destination, tag, communicator and bytes of messages, with their number.
type Messages = BTreeMap<(u32, u32, u32, u64, u64), u64>;

/// The events of all ranks.
struct Events {
    files: Vec<(RankFile, EventFile, Vec<Event>)>,
}

impl Events {
    /// Runs a program with two ranks.
    fn of(folder: &Path, mpi: &str, program: &Path) -> Self {
        let arguments = format!("-o to --events -- mpirun.{mpi} -n 2 {} said", program.display());
        let output = record(folder, &arguments);
        assert!(output.status.success(), "{}", text(&output));
        let to = folder.join("to");
        assert!(Description::read(&to.join("record.json")).unwrap().events);
        let files = event_files(&to).unwrap();
        assert_eq!(files.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [0, 1]);
        let files = files.into_iter().map(|(rank, path)| {
            let file = EventFile::open(&path, rank, 2).unwrap();
            assert_eq!((file.incomplete(), file.threads()), (None, 1));
            let events = file.events().collect::<Result<_, _>>().unwrap();
            (RankFile::read(&to.join(format!("rank-{rank}.bin")), rank, 2).unwrap(), file, events)
        });
        Self { files: files.collect() }
    }

    fn events(&self, rank: usize) -> impl Iterator<Item = &Event> {
        self.files[rank].2.iter()
    }

    fn count(&self, rank: usize, is: impl Fn(&Call) -> bool) -> usize {
        self.events(rank).filter(|event| is(&event.call)).count()
    }

    /// What was sent and what was received.
    fn messages(&self) -> [Messages; 2] {
        let mut all = [Messages::new(), Messages::new()];
        for (rank, (_, file, events)) in (0..).zip(&self.files) {
            let mut add = |is_received: bool, message: &Message| {
                let (source, destination) =
                    if is_received { (message.peer, rank) } else { (rank, message.peer) };
                let id = file.communicators()[message.communicator as usize].id;
                // MPICH 4.0 does not say how much `MPI_Isendrecv` has received into 65536 bytes.
                let bytes = if message.bytes == 65536 { 16 } else { message.bytes };
                let key = (source, destination, message.tag, id, bytes);
                *all[usize::from(is_received)].entry(key).or_default() += 1;
            };
            for event in events {
                match &event.call {
                    Call::Send { message, .. } | Call::Isend { message, .. } => add(false, message),
                    Call::Recv { message } | Call::Received { message, .. } => add(true, message),
                    Call::Sendrecv { sent, received } => {
                        add(false, sent);
                        add(true, received);
                    }
                    _ => {}
                }
            }
        }
        all
    }

    /// The events add up to the counters of the same run, but for these messages by length class.
    fn check_counters(&self, left_out: &[(u32, u64)]) {
        let [sent, received] = self.messages();
        assert_eq!(sent, received);
        for (rank, (counters, file, events)) in (0..).zip(&self.files) {
            let mut pairs: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
            for ((_, destination, _, _, bytes), count) in sent.iter().filter(|(key, _)| key.0 == rank) {
                let length = u64::BITS - bytes.leading_zeros();
                let entry = pairs.entry((*destination, length)).or_default();
                *entry = (entry.0 + count, entry.1 + count * bytes);
            }
            for (length, bytes) in left_out {
                let entry = pairs.entry((1 - rank, *length)).or_default();
                *entry = (entry.0 + 1, entry.1 + bytes);
            }
            let counted = counters.pairs.iter().filter(|pair| pair.kind == Kind::PointToPoint);
            let counted = counted.map(|pair| ((pair.partner, pair.log2_bytes), (pair.messages, pair.bytes)));
            assert_eq!(pairs, counted.collect(), "rank {rank}");
            let mut operations = BTreeMap::new();
            for event in events {
                let (Call::Collective(operation) | Call::Icollective { operation, .. }) = event.call else {
                    continue;
                };
                let CollectiveCall { communicator, kind, root, bytes } = operation;
                let id = file.communicators()[communicator as usize].id;
                let entry: &mut (u64, u64) = operations.entry((id, kind, root)).or_default();
                *entry = (entry.0 + 1, entry.1 + bytes);
            }
            let counted = counters.operations.iter();
            let counted = counted.map(|one| ((one.communicator, one.kind, one.root), (one.calls, one.bytes)));
            assert_eq!(operations, counted.collect(), "rank {rank}");
        }
    }

    /// Every request completes once, and the times are in order.
    fn check_order(&self) {
        for (counters, _, events) in &self.files {
            let mut active = BTreeMap::new();
            let (mut last, mut elapsed) = (0.0, 0.0);
            for event in events {
                if !event.continues {
                    assert!(last <= event.enter && event.enter <= event.leave, "{event:?}");
                    assert!(event.outside <= event.enter - last + 1e-12, "{event:?}");
                    elapsed += event.outside + event.leave - event.enter;
                    last = event.leave;
                }
                match event.call {
                    Call::Isend { request, .. }
                    | Call::Irecv { request, .. }
                    | Call::Icollective { request, .. } => {
                        assert_eq!(active.insert(request, event.call), None, "{event:?}");
                    }
                    Call::Sent { request } => {
                        assert!(!matches!(active.remove(&request).unwrap(), Call::Irecv { .. }), "{event:?}");
                    }
                    Call::Received { request, message } => {
                        let communicator = message.communicator;
                        assert_eq!(active.remove(&request), Some(Call::Irecv { communicator, request }));
                    }
                    Call::Cancelled { request } | Call::Freed { request } => {
                        assert!(active.remove(&request).is_some(), "{event:?}");
                    }
                    _ => {}
                }
            }
            assert!(active.is_empty(), "{active:?}");
            let end = events.last().unwrap();
            assert_eq!(end.call, Call::Finalize);
            let (seconds, inside) = counters.times.unwrap();
            assert!(end.enter <= seconds * 1.001, "{} {seconds}", end.enter);
            assert!(elapsed <= seconds && inside <= elapsed, "{inside} {elapsed} {seconds}");
        }
    }
}

fn checked(source: &str, compiler: &str, options: &[&str], more: impl Fn(&str, &Events)) {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let program = compiled(folder.path(), &format!("{compiler}.{mpi}"), source, options);
        let events = Events::of(folder.path(), mpi, &program);
        events.check_order();
        more(mpi, &events);
    }
}

/// The programs that call every procedure once.
fn every(source: &str, compiler: &str, options: &[&str]) {
    checked(source, compiler, options, |mpi, events| {
        // A partitioned send of 32 bytes.
        let partitioned = events.count(0, |call| *call == Call::Other(OtherCall::Partitioned));
        let has_partitioned = mpi == "mpich" && source == "every.c";
        assert_eq!(partitioned > 0, has_partitioned, "{partitioned}");
        events.check_counters(if has_partitioned { &[(6, 32)] } else { &[] });
        assert!(events.count(0, |call| *call == Call::Other(OtherCall::OneSided)) > 10);
        assert!(events.count(1, |call| *call == Call::Other(OtherCall::Communicator)) > 5);
    });
}

fn receives(source: &str, compiler: &str, options: &[&str]) {
    checked(source, compiler, options, |_, events| {
        events.check_counters(&[]);
        for rank in 0..2 {
            assert_eq!(events.count(rank, |call| matches!(call, Call::Cancelled { .. })), 1);
            assert!(events.count(rank, |call| matches!(call, Call::Received { .. })) > 340);
            // Without waiting, the tests would be thousands.
            assert!(events.count(rank, |call| matches!(call, Call::Polls { .. })) < 100);
        }
    });
}

const FORTRAN: [&str; 2] = ["-ffree-line-length-none", "-fallow-argument-mismatch"];
const MODULE: [&str; 3] = [FORTRAN[0], FORTRAN[1], "-DMODULE=mpi"];
const F08: [&str; 4] = [FORTRAN[0], FORTRAN[1], "-DMODULE=mpi_f08", "-DF08"];

#[test]
fn every_procedure_of_c_has_its_events() {
    every("every.c", "mpicc", &[]);
}

#[test]
fn every_procedure_of_fortran_has_its_events() {
    for options in [&FORTRAN[..], &MODULE, &F08] {
        every("every.F90", "mpifort", options);
    }
}

#[test]
fn receives_of_c_have_their_actual_messages() {
    receives("events.c", "mpicc", &[]);
}

#[test]
fn receives_of_fortran_have_their_actual_messages() {
    for options in [&FORTRAN[..], &MODULE, &F08] {
        receives("events.F90", "mpifort", options);
    }
}

/// The events of rank 0 of a program with this body, however it ends.
fn of_body(mpi: &str, ranks: u32, body: &str) -> (EventFile, Vec<Event>, String) {
    let folder = tempfile::tempdir().unwrap();
    let program = format!(
        r"
        #include <mpi.h>
        #include <pthread.h>
        #include <signal.h>
        #include <stdlib.h>
        #include <sys/resource.h>
        #include <unistd.h>
        static char byte, received;
        static void send(int tag) {{
            MPI_Sendrecv(&byte, 1, MPI_BYTE, 0, tag, &received, 1, MPI_BYTE, 0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        }}
        {body}"
    );
    let binary = program_of(folder.path(), &format!("mpicc.{mpi}"), &program, &["-pthread"]);
    let arguments = format!("-o to --events -- mpirun.{mpi} -n {ranks} {}", binary.display());
    let said = text(&record(folder.path(), &arguments));
    let path = folder.path().join("to/events-0.bin");
    let file = EventFile::open(&path, 0, ranks).unwrap_or_else(|error| panic!("{error}: {said}"));
    let events = file.events().collect::<Result<_, _>>().unwrap();
    (file, events, said)
}

fn sendrecvs(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event.call, Call::Sendrecv { .. })).count()
}

#[test]
fn a_full_disk_drops_events_and_says_so() {
    const BODY: &str = r"
        int main(int argc, char **argv)
        {
            MPI_Init(&argc, &argv);
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &(struct rlimit) { 200000, 200000 });
            for (int tag = 0; tag < 30000; tag++) send(tag);
            MPI_Finalize();
            return 0;
        }";
    for mpi in mpis() {
        let (file, events, said) = of_body(mpi, 1, BODY);
        let kept = sendrecvs(&events);
        assert!(file.dropped > 0 && kept > 5000, "{kept} {said}");
        // The end of MPI_Finalize is not an event.
        assert!((30001..30010).contains(&(kept as u64 + file.dropped)), "{kept} {}", file.dropped);
        assert!(file.incomplete().unwrap().ends_with("events were dropped since the disk was full"));
        assert!(said.contains("incomplete"), "{said}");
    }
}

#[test]
fn a_signal_keeps_the_events_before() {
    const BODY: &str = r"
        int main(int argc, char **argv)
        {
            MPI_Init(&argc, &argv);
            for (int tag = 0; tag < 9999; tag++) send(tag);
            raise(SIGSEGV);
            return 0;
        }";
    for mpi in mpis() {
        let (file, events, said) = of_body(mpi, 1, BODY);
        assert_eq!(sendrecvs(&events), 9999, "{said}");
        assert_eq!(file.incomplete().as_deref(), Some("MPI_Finalize was not reached"));
    }
}

/// What the handler of the recorder has written is replaced.
#[test]
fn a_program_that_goes_on_after_a_signal_has_all_events() {
    const BODY: &str = r"
        static void ignore(int number) { (void) number; }
        int main(int argc, char **argv)
        {
            signal(SIGILL, ignore);
            MPI_Init(&argc, &argv);
            for (int tag = 0; tag < 3000; tag++) send(tag);
            if (!fork()) exit(0);
            raise(SIGILL);
            for (int tag = 0; tag < 20000; tag++) send(tag);
            MPI_Finalize();
            return 0;
        }";
    for mpi in mpis() {
        let (file, events, said) = of_body(mpi, 1, BODY);
        assert_eq!((sendrecvs(&events), file.incomplete()), (23000, None), "{said}");
        assert_eq!(events.last().unwrap().call, Call::Finalize);
    }
}

#[test]
fn threads_share_requests() {
    const BODY: &str = r"
        enum { ROUNDS = 3000 };
        static MPI_Request requests[2][ROUNDS];
        static void *waits(void *given)
        {
            for (int at = 0; at < ROUNDS; at++) MPI_Wait(&requests[(long) given][at], MPI_STATUS_IGNORE);
            return NULL;
        }
        static void *sends(void *given)
        {
            static char in[2][ROUNDS];
            long own = (long) given;
            pthread_t other;
            for (int at = 0; at < ROUNDS; at++) {
                MPI_Irecv(&in[own][at], 1, MPI_BYTE, 0, (int) own, MPI_COMM_WORLD, &requests[own][at]);
                MPI_Send(&byte, 1, MPI_BYTE, 0, (int) own, MPI_COMM_WORLD);
            }
            pthread_create(&other, NULL, waits, given);
            pthread_join(other, NULL);
            return NULL;
        }
        int main(int argc, char **argv)
        {
            int level;
            pthread_t threads[2];
            MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
            if (level != MPI_THREAD_MULTIPLE) return 1;
            for (long at = 0; at < 2; at++) pthread_create(&threads[at], NULL, sends, (void *) at);
            for (int at = 0; at < 2; at++) pthread_join(threads[at], NULL);
            MPI_Finalize();
            return 0;
        }";
    for mpi in mpis() {
        let (file, events, said) = of_body(mpi, 1, BODY);
        assert!(file.threads() >= 3 && file.incomplete().is_none(), "{said}");
        assert!(events.is_sorted_by(|one, next| one.enter <= next.enter));
        let mut active = std::collections::BTreeSet::new();
        for event in &events {
            match event.call {
                Call::Irecv { request, .. } => assert!(active.insert(request), "{event:?}"),
                Call::Received { request, .. } => assert!(active.remove(&request), "{event:?}"),
                _ => {}
            }
        }
        assert!(active.is_empty());
        let of_thread = |number: u32| {
            let calls = events.iter().filter(|event| event.thread == number);
            calls.filter(|event| matches!(event.call, Call::Received { .. })).count()
        };
        let received: Vec<usize> = (0..16).map(of_thread).filter(|count| *count > 0).collect();
        assert_eq!(received.iter().sum::<usize>(), 6000, "{received:?}");
    }
}

#[test]
fn events_need_the_recorder() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in
        ["-o to --events --method openmpi -- mpirun -n 2 ./a", "-o to --events --no-times -- mpirun ./a"]
    {
        let output = record(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains("--events"), "{}", text(&output));
    }
}
