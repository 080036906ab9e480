//! Programs that end in other ways than with `MPI_Finalize`, and those with threads.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hopmap_recording::Recording;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::support::{mpis, program_of, record, recording, text};

/// Rank 1 has sent a message to rank 0 when both run this.
fn program(ending: &str) -> String {
    format!(
        r"
        #include <mpi.h>
        #include <signal.h>
        #include <stdlib.h>
        #include <unistd.h>
        int main(int argc, char **argv)
        {{
            int rank;
            char byte = 0;
            MPI_Init(&argc, &argv);
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
            if (rank == 1) MPI_Send(&byte, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            else MPI_Recv(&byte, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Barrier(MPI_COMM_WORLD);
            {ending}
            MPI_Finalize();
            return 0;
        }}"
    )
}

/// Runs it; its exit status, output and recording.
fn ended(folder: &Path, mpi: &str, ending: &str) -> (i32, String, Recording) {
    let binary = program_of(folder, &format!("mpicc.{mpi}"), &program(ending), &[]);
    let output = record(folder, &format!("--events -o to -- mpirun.{mpi} -n 2 {}", binary.display()));
    let text = text(&output);
    let recording = Recording::read(&folder.join("to")).unwrap_or_else(|error| panic!("{error}: {text}"));
    (output.status.code().unwrap(), text, recording)
}

/// Messages from rank 1 to rank 0.
fn messages(recording: &Recording) -> u64 {
    recording
        .traffic
        .iter()
        .filter(|line| (line.source, line.destination) == (1, 0))
        .map(|line| line.messages)
        .sum()
}

#[test]
fn an_abort_keeps_what_was_counted() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let (status, text, recording) =
            ended(folder.path(), mpi, "if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 7); else pause();");
        assert_eq!(status, 7, "{text}");
        assert_eq!(messages(&recording), 1, "{mpi}");
        assert!(recording.incomplete.is_some());
        assert!(text.contains("incomplete: "), "{text}");
    }
}

#[test]
fn an_exit_without_finalize_is_incomplete() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        // Hydra kills the other rank, which may not have written its file yet.
        let (_, text, recording) = ended(folder.path(), mpi, "if (rank == 0) sleep(2); exit(0);");
        assert_eq!(messages(&recording), 1, "{mpi}");
        assert!(recording.incomplete.is_some(), "{text}");
    }
}

#[test]
fn a_crash_keeps_what_was_counted() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let ending = "if (rank == 1) kill(getpid(), SIGSEGV); else for (;;) pause();";
        let (status, text, recording) = ended(folder.path(), mpi, ending);
        assert_ne!(status, 0, "{text}");
        assert_eq!(messages(&recording), 1, "{mpi}: {text}");
        assert!(recording.incomplete.is_some());
    }
}

/// Only under Open MPI, which ends the others with SIGTERM: Hydra kills them too.
#[test]
fn a_killed_rank_leaves_the_record_of_the_others() {
    if !mpis().contains(&"openmpi") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ending = "if (rank == 1) kill(getpid(), SIGKILL); else for (;;) pause();";
    let (status, text, recording) = ended(folder.path(), "openmpi", ending);
    assert_ne!(status, 0, "{text}");
    assert_eq!((messages(&recording), recording.processes.len()), (0, 2));
    assert!(recording.incomplete.is_some());
    let said = text.lines().find(|line| line.contains("incomplete:")).unwrap_or_default();
    assert!(said.contains("`events-1.bin` is cut off"), "{text}");
}

/// A program with its own handler goes on after a signal.
#[test]
fn a_handled_signal_ends_no_record() {
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let text = program("raise(SIGTERM);").replace("MPI_Init(", "signal(SIGTERM, SIG_IGN); MPI_Init(");
        let binary = program_of(folder.path(), &format!("mpicc.{mpi}"), &text, &[]);
        let output = record(folder.path(), &format!("-o to -- mpirun.{mpi} -n 2 {}", binary.display()));
        assert!(output.status.success(), "{}", self::text(&output));
        assert_eq!(Recording::read(&folder.path().join("to")).unwrap().incomplete, None, "{mpi}");
    }
}

/// Two messages, with a signal between them whose handler comes from before `MPI_Init`.
fn signalled(handler: &str, flags: &str, between: &str) -> String {
    let text = r"
        #define _GNU_SOURCE
        #include <mpi.h>
        #include <setjmp.h>
        #include <signal.h>
        #include <stdlib.h>
        #include <unistd.h>
        static sigjmp_buf place;
        static volatile int depth;
        static int overflow(volatile char *before)
        {
            volatile char more[4096];
            more[0] = before[0];
            return depth++ < 0 ? 0 : overflow(more) + more[0];
        }
        static void handler(int number) { HANDLER; }
        int main(int argc, char **argv)
        {
            int rank;
            char byte = 0, back;
            stack_t stack = { .ss_sp = malloc(16384), .ss_size = 16384 };
            struct sigaction action = { .sa_handler = handler, .sa_flags = FLAGS };
            sigaltstack(&stack, NULL);
            sigaction(SIGSEGV, &action, NULL);
            sigaction(SIGTERM, &action, NULL);
            MPI_Init(&argc, &argv);
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
            for (int round = 0; round < 2; round++) {
                if (rank == 1) MPI_Send(&byte, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
                else MPI_Recv(&back, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Barrier(MPI_COMM_WORLD);
                if (round) continue;
                BETWEEN;
            }
            MPI_Finalize();
            return 0;
        }";
    text.replace("HANDLER", handler).replace("FLAGS", flags).replace("BETWEEN", between)
}

#[test]
fn recording_goes_on_after_a_handler_of_the_program() {
    let jumping = "siglongjmp(place, 1)";
    for mpi in mpis() {
        for (handler, flags, between) in [
            ("(void) number", "0", "raise(SIGTERM); raise(SIGSEGV)"),
            (jumping, "0", "if (!sigsetjmp(place, 1)) *(volatile int *) 8 = 1"),
            (jumping, "SA_ONSTACK", "if (!sigsetjmp(place, 1)) overflow(&byte)"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let program = signalled(handler, flags, between);
            let binary = program_of(folder.path(), &format!("mpicc.{mpi}"), &program, &["-O0"]);
            let output = record(folder.path(), &format!("-o to -- mpirun.{mpi} -n 2 {}", binary.display()));
            assert!(output.status.success(), "{mpi}, {between}: {}", self::text(&output));
            let recording = Recording::read(&folder.path().join("to")).unwrap();
            assert_eq!((messages(&recording), recording.incomplete), (2, None), "{mpi}, {between}");
        }
    }
}

#[test]
fn what_was_counted_is_kept_if_a_handler_of_the_program_ends_it() {
    for mpi in mpis() {
        for (signal, flags, between) in [
            ("_exit(3)", "0", "if (rank == 0) sleep(1); raise(SIGTERM)"),
            ("_exit(3)", "SA_ONSTACK", "if (rank == 0) sleep(1); overflow(&byte)"),
            // The second one has no handler any more.
            ("(void) number", "SA_RESETHAND", "if (rank == 0) sleep(1); *(volatile int *) 8 = 1"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let program = signalled(signal, flags, between);
            let binary = program_of(folder.path(), &format!("mpicc.{mpi}"), &program, &["-O0"]);
            let output = record(folder.path(), &format!("-o to -- mpirun.{mpi} -n 2 {}", binary.display()));
            assert!(!output.status.success(), "{mpi}, {between}: {}", self::text(&output));
            let recording = Recording::read(&folder.path().join("to")).unwrap();
            assert_eq!(messages(&recording), 1, "{mpi}, {between}");
            assert!(recording.incomplete.is_some(), "{mpi}, {between}");
        }
    }
}

#[test]
fn sessions_are_recorded_without_mpi_init() {
    const PROGRAM: &str = r#"
        #include <mpi.h>
        int main(void)
        {
            MPI_Session session;
            MPI_Group group;
            MPI_Comm comm;
            int rank;
            char byte = 0;
            MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
            MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
            MPI_Comm_create_from_group(group, "test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
            MPI_Comm_rank(comm, &rank);
            if (rank == 1) MPI_Send(&byte, 1, MPI_BYTE, 0, 0, comm);
            else MPI_Recv(&byte, 1, MPI_BYTE, 1, 0, comm, MPI_STATUS_IGNORE);
            MPI_Group_free(&group);
            MPI_Comm_free(&comm);
            return MPI_Session_finalize(&session);
        }"#;
    // Open MPI 4.1 has no sessions.
    if mpis().contains(&"mpich") {
        let folder = tempfile::tempdir().unwrap();
        let binary = program_of(folder.path(), "mpicc.mpich", PROGRAM, &[]);
        let output = record(folder.path(), &format!("-o to -- mpirun.mpich -n 2 {}", binary.display()));
        assert!(output.status.success(), "{}", text(&output));
        let recording = Recording::read(&folder.path().join("to")).unwrap();
        assert_eq!((messages(&recording), recording.incomplete), (1, None));
        let times = |process: &hopmap_recording::Process| process.times.unwrap();
        assert!(recording.processes.iter().map(times).all(|(all, inside)| 0.0 < inside && inside <= all));
    }
}

/// The first session, from which the recorder has the group of the world, ends before the second one.
#[test]
fn all_sessions_are_recorded() {
    const PROGRAM: &str = r#"
        #include <mpi.h>
        static void send(MPI_Session session, const char *name)
        {
            MPI_Group group;
            MPI_Comm comm;
            int rank;
            char byte = 0;
            MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
            MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
            MPI_Comm_rank(comm, &rank);
            if (rank == 1) MPI_Send(&byte, 1, MPI_BYTE, 0, 0, comm);
            else MPI_Recv(&byte, 1, MPI_BYTE, 1, 0, comm, MPI_STATUS_IGNORE);
            MPI_Group_free(&group);
            MPI_Comm_free(&comm);
        }
        int main(void)
        {
            MPI_Session first, second;
            MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &first);
            MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &second);
            send(first, "first");
            MPI_Session_finalize(&first);
            send(second, "second");
            send(second, "again");
            return MPI_Session_finalize(&second);
        }"#;
    if mpis().contains(&"mpich") {
        let folder = tempfile::tempdir().unwrap();
        let binary = program_of(folder.path(), "mpicc.mpich", PROGRAM, &[]);
        let output = record(folder.path(), &format!("-o to -- mpirun.mpich -n 2 {}", binary.display()));
        assert!(output.status.success(), "{}", text(&output));
        let recording = Recording::read(&folder.path().join("to")).unwrap();
        assert_eq!((messages(&recording), recording.incomplete), (3, None));
    }
}

#[test]
fn threads_count_for_themselves() {
    const PROGRAM: &str = r"
        #include <mpi.h>
        #include <pthread.h>
        static int rank;
        static void *run(void *tag)
        {
            char byte = 0;
            for (int i = 0; i < 1000; i++)
                MPI_Sendrecv(&byte, 1, MPI_BYTE, 1 - rank, (int) (long) tag, &byte, 1, MPI_BYTE, 1 - rank, (int) (long) tag,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            return 0;
        }
        int main(int argc, char **argv)
        {
            int provided;
            pthread_t threads[4];
            MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
            if (provided != MPI_THREAD_MULTIPLE) return 1;
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
            for (int round = 0; round < 2; round++) {
                for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, run, (void *) i);
                for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
            }
            MPI_Finalize();
            return 0;
        }";
    for mpi in mpis() {
        let folder = tempfile::tempdir().unwrap();
        let binary = program_of(folder.path(), &format!("mpicc.{mpi}"), PROGRAM, &["-pthread"]);
        let output = record(folder.path(), &format!("-o to -- mpirun.{mpi} -n 2 {}", binary.display()));
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(messages(&Recording::read(&folder.path().join("to")).unwrap()), 8000, "{mpi}");
    }
}

/// A terminal sends Ctrl-C to all programs in it, `kill` to hopmap alone.
#[test]
fn an_interrupted_program_keeps_what_it_has_counted() {
    for mpi in mpis() {
        for is_of_terminal in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let ending = r#"MPI_Barrier(MPI_COMM_WORLD); if (rank == 1) fclose(fopen("ready", "w")); for (;;) pause();"#;
            let source = program(ending).replacen("#include", "#include <stdio.h>\n#include", 1);
            let binary = program_of(folder.path(), &format!("mpicc.{mpi}"), &source, &[]);
            let arguments = format!("-o to -- mpirun.{mpi} -n 2 {}", binary.display());
            let mut command = recording(folder.path(), &arguments);
            command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
            let child = command.spawn().unwrap();
            let begin = Instant::now();
            while !folder.path().join("ready").exists() {
                assert!(begin.elapsed() < Duration::from_mins(2), "the program does not start");
                sleep(Duration::from_millis(20));
            }
            let id = Pid::from_child(&child);
            match is_of_terminal {
                true => kill_process_group(id, Signal::INT).unwrap(),
                false => kill_process(id, Signal::TERM).unwrap(),
            }
            let output = child.wait_with_output().unwrap();
            let said = text(&output);
            assert!(!output.status.success(), "{mpi}: {said}");
            assert!(said.contains("incomplete: it was interrupted"), "{mpi}: {said}");
            assert!(said.contains(r#""ranks": 2.0"#), "{mpi}: {said}");
            let recording = Recording::read(&folder.path().join("to")).unwrap();
            assert_eq!((messages(&recording), recording.processes.len()), (1, 2), "{mpi}");
        }
    }
}

/// The launcher of a script that did not `exec` it went on, and hopmap waited for one that ignored SIGTERM.
#[test]
fn a_launcher_behind_a_script_ends_with_hopmap_also_if_it_ignores_sigterm() {
    [Signal::TERM, Signal::KILL].into_iter().for_each(ends_by);
}

fn ends_by(signal: Signal) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("script"), "sh launcher; exit 1").unwrap();
    std::fs::write(path("launcher"), "trap '' TERM; echo $$ > begun; while :; do sleep 0.1; done").unwrap();
    let mut command = recording(folder.path(), "--method openmpi -o to -- sh script");
    let mut hopmap = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + Duration::from_mins(1);
    let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let wait = |is_so: &mut dyn FnMut() -> bool| {
        while !is_so() {
            assert!(Instant::now() < until, "{signal:?}");
            sleep(Duration::from_millis(20));
        }
    };
    wait(&mut || text(&path("begun")).ends_with('\n'));
    let status = Path::new("/proc").join(text(&path("begun")).trim()).join("stat");
    assert!(!text(&status).is_empty());
    kill_process(Pid::from_child(&hopmap), signal).unwrap();
    wait(&mut || hopmap.try_wait().unwrap().is_some());
    wait(&mut || text(&status).is_empty() || text(&status).contains(") Z "));
}
