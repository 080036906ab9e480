//! What launchers say that end because a host or its connection was lost, and not because of the stage.

use std::process::ExitStatus;

use hopmap_mpi_environment::LauncherKind;

/// Why a launcher gave no result, if the cause lies outside the stage and another attempt may go better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// A node failed.
    Node,
    /// The connection to a host broke or could not be made.
    Connection,
    /// A batch system made room for another job.
    Preempted,
    /// A signal on its host asked it for what it had.
    Stopped,
    /// The time that a batch system gave is over: worth another attempt where a search has saved its state.
    Time,
}

/// Words of Slurm (`srun`, `slurmstepd`), Open MPI 4 and 5, and `ssh`.
const WORDS: [(&str, Loss); 14] = [
    ("srun: error: Node failure on ", Loss::Node),
    (" DUE TO NODE FAILURE", Loss::Node),
    (" DUE TO PREEMPTION", Loss::Preempted),
    (" DUE TO TIME LIMIT", Loss::Time),
    ("ORTE has lost communication with a remote daemon", Loss::Connection),
    ("PRTE has lost communication with a remote daemon", Loss::Connection),
    ("An ORTE daemon has unexpectedly failed after launch", Loss::Connection),
    ("ORTE was unable to reliably start one or more daemons", Loss::Connection),
    ("PRTE was unable to reliably start one or more daemons", Loss::Connection),
    ("ssh: connect to host ", Loss::Connection),
    ("ssh_exchange_identification: ", Loss::Connection),
    ("kex_exchange_identification: ", Loss::Connection),
    ("client_loop: send disconnect: ", Loss::Connection),
    (" closed by remote host", Loss::Connection),
];

/// The status with which ssh ends when it could not connect, or lost its host.
const SSH: i32 = 255;

/// What ssh says with that status that will be the same next time.
const REFUSALS: [&str; 4] = [
    "Permission denied",
    "Host key verification failed",
    "Could not resolve hostname",
    "REMOTE HOST IDENTIFICATION HAS CHANGED",
];

impl Loss {
    /// What one line of a launcher says of it.
    pub(super) fn of_line(line: &str) -> Option<Self> {
        WORDS.iter().find(|(words, _)| line.contains(words)).map(|(_, loss)| *loss)
    }

    /// What the end of a launcher says of it.
    pub(super) fn of_status(program: &str, status: ExitStatus, last_lines: &[String]) -> Option<Self> {
        let is_refused = || last_lines.iter().any(|line| REFUSALS.iter().any(|words| line.contains(words)));
        (LauncherKind::of(program) == Some(LauncherKind::Remote)
            && status.code() == Some(SSH)
            && !is_refused())
        .then_some(Self::Connection)
    }

    /// What happened, behind the command.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Node => "was lost: its node failed",
            Self::Connection => "lost a host",
            Self::Stopped => "was asked to end where it runs",
            Self::Preempted => "was ended to make room for another",
            Self::Time => "ran out of its time",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn what_launchers_say_when_they_lose_a_node_is_known() {
        let losses = [
            ("srun: error: Node failure on n4", Some(Loss::Node)),
            (
                "slurmstepd: error: *** STEP 5.0 ON n4 CANCELLED AT 2026-11-23T01:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
                Some(Loss::Node),
            ),
            (
                "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-23T01:00:00 DUE TO TIME LIMIT ***",
                Some(Loss::Time),
            ),
            (
                "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-23T01:00:00 DUE TO PREEMPTION ***",
                Some(Loss::Preempted),
            ),
            ("ORTE has lost communication with a remote daemon.", Some(Loss::Connection)),
            ("ssh: connect to host node7 port 22: No route to host", Some(Loss::Connection)),
            ("slurmstepd: error: *** STEP 5.0 ON n4 CANCELLED AT 2026-11-23T01:00:00 ***", None),
            ("srun: error: n4: task 0: Exited with exit code 2", None),
            ("the node failed to be reached in the graph", None),
        ];
        for (line, loss) in losses {
            assert_eq!(Loss::of_line(line), loss, "{line}");
        }
    }

    #[test]
    fn ssh_says_by_its_status_that_it_has_no_host() {
        let ended = |code: i32| ExitStatus::from_raw(code << 8);
        assert_eq!(Loss::of_status("/usr/bin/ssh", ended(255), &[]), Some(Loss::Connection));
        assert_eq!(Loss::of_status("ssh", ended(1), &[]), None);
        assert_eq!(Loss::of_status("mpirun", ended(255), &[]), None);
        let refused = ["nobody@node7: Permission denied (publickey).".to_owned()];
        assert_eq!(Loss::of_status("ssh", ended(255), &refused), None);
    }
}
