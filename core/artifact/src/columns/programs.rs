//! Columns of programs: communication matrix, tasks and trace.

use super::form::{KindForm, always, column, files, given};

pub(super) const TASK_GRAPH: KindForm = KindForm {
    kind: "task-graph",
    summary: "The communication matrix of a program: who sends how much to whom.",
    tables: &[
        always(
            "processes",
            &[
                column("rank", "u32", "MPI rank"),
                column("host", "text?", "host on which the rank ran"),
                column("compute_s", "f64?", "seconds outside of communication"),
                column("communication_s", "f64?", "seconds in communication calls"),
                column("collective_s", "f64?", "of these, seconds in collective operations"),
            ],
        ),
        always(
            "edges",
            &[
                column("source", "u32", "rank that sends"),
                column("destination", "u32", "rank that receives"),
                column("messages", "u64", "number of messages"),
                column("bytes", "u64", "sum of their lengths"),
            ],
        ),
        given(
            "sizes",
            "with `sizes = true`, and of recordings",
            &[
                column("source", "u32", "rank that sends"),
                column("destination", "u32", "rank that receives"),
                column("at_least_bytes", "u64", "lower end of the bin"),
                column("messages", "u64", "messages in the bin"),
                column("bytes", "u64", "sum of their lengths"),
            ],
        ),
        given(
            "phases",
            "with `phases`",
            &[
                column("phase", "u32", "phase, from 0"),
                column("name", "text?", "region that defines the phase"),
                column("begin_s", "f64?", "begin, in seconds after the first event"),
                column("end_s", "f64?", "end, in seconds after the first event"),
            ],
        ),
        given(
            "phase_processes",
            "with `phases`",
            &[
                column("phase", "u32", "phase"),
                column("rank", "u32", "MPI rank"),
                column("compute_s", "f64?", "seconds outside of communication in this phase"),
            ],
        ),
        given(
            "phase_edges",
            "with `phases`",
            &[
                column("phase", "u32", "phase"),
                column("source", "u32", "rank that sends"),
                column("destination", "u32", "rank that receives"),
                column("messages", "u64", "number of messages in this phase"),
                column("bytes", "u64", "sum of their lengths"),
            ],
        ),
        given(
            "communicators",
            "where collective operations are kept",
            &[
                column("communicator", "u32", "number of the communicator"),
                column("rank", "u32", "a member, as a rank in MPI_COMM_WORLD"),
            ],
        ),
        given(
            "collectives",
            "where collective operations are kept",
            &[
                column("communicator", "u32", "number of the communicator"),
                column("operation", "text", "operation, such as `allreduce`"),
                column("root", "u32?", "root, for operations that have one"),
                column("bytes", "u64", "bytes of a block"),
                column("calls", "u64", "number of calls"),
                column("uneven", "u64", "of these, calls whose blocks differ in length"),
            ],
        ),
        given(
            "demands",
            "where processes have demands (`route/*`)",
            &[
                column("rank", "u32", "process"),
                column("name", "text", "its name"),
                column("performance", "f64", "performance that it requires"),
                column("host", "text?", "host on which it must run"),
            ],
        ),
        given(
            "demanded_capabilities",
            "where processes have demands",
            &[
                column("rank", "u32", "process"),
                column("capability", "text", "capability that its host must have"),
            ],
        ),
        given(
            "demanded_devices",
            "where processes have demands",
            &[
                column("rank", "u32", "process"),
                column("device", "text", "kind of device"),
                column("count", "u32", "number of devices that it occupies"),
            ],
        ),
        given(
            "streams",
            "where a program has streams",
            &[
                column("stream", "u32", "stream, from 0"),
                column("source", "u32", "process that sends"),
                column("destination", "u32", "process that receives"),
                column("bandwidth_bytes_per_s", "f64", "bandwidth, in the unit of the links"),
            ],
        ),
    ],
    metrics: &[
        ("processes", "number of ranks"),
        ("pairs", "ordered pairs of ranks that exchange messages"),
        ("messages", "number of messages"),
        ("bytes", "sum of their lengths"),
        ("duration_s", "seconds from the first event of the trace to the last"),
        ("collectives", "calls of collective operations, where they are kept"),
        (
            "collective_bytes",
            "bytes of collective operations among those of all messages, where `hopmap record` counted them",
        ),
        ("incomplete", "1 where parts of the recording are missing"),
    ],
};

pub(super) const TASK_DAG: KindForm = KindForm {
    kind: "task-dag",
    summary: "Tasks, the work of each, and the dependencies between them.",
    tables: &[
        always(
            "tasks",
            &[
                column("task", "u32", "task, from 0"),
                column("rank", "u32?", "MPI rank that runs it, in a traced program"),
                column("work", "f64", "seconds, or the unit of the file"),
            ],
        ),
        always(
            "edges",
            &[
                column("source", "u32", "task that has to be done first"),
                column("destination", "u32", "task that depends on it"),
                column("bytes", "u64", "bytes sent from one to the other"),
            ],
        ),
        given("names", "where tasks have names", &[column("name", "text", "name of the task of this row")]),
    ],
    metrics: &[
        ("tasks", "number of tasks"),
        ("edges", "number of dependencies"),
        ("ranks", "number of ranks of the traced program"),
        ("bytes", "sum over all dependencies"),
        ("work", "sum of the work of all tasks"),
        ("critical_work", "work along the critical path, without communication"),
        (
            "recorded_s",
            "run time of the traced program: of its longest process, from the first to the last event",
        ),
    ],
};

pub(super) const PROGRAM: KindForm = KindForm {
    kind: "program",
    summary: "What every rank of a program computes, sends and receives, in order.",
    tables: &[
        always(
            "operations",
            &[
                column("rank", "u32", "MPI rank"),
                column("index", "u64", "number of the operation of this rank, from 0"),
                column(
                    "kind",
                    "text",
                    "`compute`, `send`, `isend`, `recv`, `irecv`, `wait`, `waitall`, `test` or `collective`",
                ),
                column("peer", "u32?", "rank that receives or sends the message, in MPI_COMM_WORLD"),
                column("tag", "u32?", "MPI tag"),
                column("communicator", "u32?", "number of the communicator; 0 is MPI_COMM_WORLD"),
                column("bytes", "u64?", "length of the message, or of a block of the collective operation"),
                column("operation", "text?", "collective operation, such as `allreduce`"),
                column("root", "u32?", "its root, as a rank in the communicator"),
                column("seconds", "f64?", "seconds of computation"),
                column("request", "u32?", "request of a nonblocking operation, unique while it is active"),
            ],
        ),
        always(
            "communicators",
            &[
                column("communicator", "u32", "number of the communicator"),
                column("rank", "u32", "a member, as a rank in MPI_COMM_WORLD"),
            ],
        ),
    ],
    metrics: &[
        ("ranks", "number of ranks"),
        ("operations", "number of operations of all ranks"),
        ("messages", "number of point-to-point messages"),
        ("bytes", "sum of their lengths"),
        ("collectives", "calls of collective operations, each counted once per rank"),
        ("compute_s", "seconds of computation of all ranks"),
        (
            "left_out_s",
            "if operations are missing: time of all ranks from their first missing operation to their end",
        ),
        ("recorded_s", "run time of the traced program, if the trace has it"),
        (
            "approximate",
            "1 if communication is left out, or threads call MPI at the same time: no bound holds for the program",
        ),
    ],
};

pub(super) const TRACE_SUMMARY: KindForm = KindForm {
    kind: "trace-summary",
    summary: "A program in a few numbers.",
    tables: &[
        always(
            "ranks",
            &[
                column("rank", "u32", "MPI rank"),
                column("messages_sent", "u64", "messages it sends"),
                column("bytes_sent", "u64", "bytes it sends"),
                column("messages_received", "u64", "messages it receives"),
                column("bytes_received", "u64", "bytes it receives"),
                column("partners", "u32", "ranks it exchanges messages with"),
                column("compute_s", "f64?", "seconds outside of communication"),
                column("communication_s", "f64?", "seconds in communication calls"),
                column("collective_s", "f64?", "of these, seconds in collective operations"),
            ],
        ),
        always(
            "heaviest",
            &[
                column("source", "u32", "rank that sends"),
                column("destination", "u32", "rank that receives"),
                column("messages", "u64", "number of messages"),
                column("bytes", "u64", "sum of their lengths"),
            ],
        ),
        given(
            "phases",
            "where the communication matrix has phases",
            &[
                column("phase", "u32", "phase"),
                column("name", "text?", "region that defines it"),
                column("messages", "u64", "messages in this phase"),
                column("bytes", "u64", "sum of their lengths"),
                column("compute_s", "f64?", "seconds outside of communication, over all ranks"),
            ],
        ),
    ],
    metrics: &[],
};

pub(super) const EVENTS: KindForm = KindForm {
    kind: "events",
    summary: "Every message of a trace.",
    tables: &[always(
        "messages",
        &[
            column("time_s", "f64?", "seconds after the first event of the trace"),
            column("source", "u32", "rank that sends"),
            column("destination", "u32", "rank that receives"),
            column("tag", "u32?", "MPI tag"),
            column("bytes", "u64", "length"),
            column("communicator", "text", "name of the communicator, else its number"),
            column("operation", "text?", "MPI call that sends it"),
            column("region", "text?", "function around the call"),
        ],
    )],
    metrics: &[("messages", "number of messages")],
};

pub(super) const TRACE: KindForm = files("trace", "The files of a trace.");
