//! The stages of this crate.

use hopmap_model::{
    Artifact, Context, Dependency, Error, Events, InputPath, Inputs, Library, Outcome, Outputs, Port,
    Program, ProgramTotals, Stage, TaskDag, TaskGraph, TextFile, TraceArchive, TraceSummary,
};

use crate::archive::warn_of_silence;
use crate::error::TraceError;
use crate::import::{self, ImportParams};
use crate::params::{
    Algorithms, Collectives, DagParams, EventsParams, ExportFormat, ExportParams, GenerateParams, Otf2Params,
    OtfParams, ProgramParams, Reader, ReplayParams, SummaryParams,
};
use crate::{LIBOTF2, export, generate, otf1, otf2, program};

const PORTS: &[Port] = &[Port::output::<TaskGraph>("task-graph")];

/// Common parts of all stages that read OTF2 archives: output, input files and library.
macro_rules! reads_otf2 {
    ($params:ty, $port:literal: $artifact:ty) => {
        const PORTS: &'static [Port] = &[Port::output::<$artifact>($port)];

        fn reads(params: &$params) -> Result<Vec<InputPath>, Error> {
            Ok(otf2::files(params.path.path())?)
        }

        fn libraries() -> &'static [&'static Library] {
            &[LIBOTF2]
        }
    };
}

/// libotf2 is not in every build, and does not read truncated archives.
fn check_reader(reader: Reader, allow_truncated: bool) -> Result<(), Error> {
    match reader {
        Reader::Libotf2 if allow_truncated => {
            let problem = "`allow_truncated` cannot be combined with `reader = \"libotf2\"`";
            let help = "omit `reader`: libotf2 does not read truncated archives";
            Err(TraceError::refused(problem, help).into())
        }
        Reader::Libotf2 => Ok(LIBOTF2.require(Reader::NEEDS_LIBRARY)?),
        Reader::Auto | Reader::Native => Ok(()),
    }
}

fn check_loss(allow_loss: f64) -> Result<(), Error> {
    if (0.0..=1.0).contains(&allow_loss) {
        return Ok(());
    }
    let help = "expected a fraction of the sent bytes, from 0 to 1";
    Err(TraceError::refused(format!("`allow_loss` is {allow_loss}"), help).into())
}

fn check_speed(flops_per_s: f64) -> Result<(), Error> {
    if flops_per_s.is_finite() && flops_per_s > 0.0 {
        return Ok(());
    }
    let help = "expected the speed of a core, such as 1e9";
    Err(TraceError::refused(format!("`flops_per_s` is {flops_per_s}"), help).into())
}

/// Algorithms are those of expanded operations.
fn check_algorithms(collectives: Collectives, algorithms: Algorithms) -> Result<(), Error> {
    algorithms.check()?;
    if algorithms != Algorithms::default() && collectives != Collectives::Expand {
        let problem = "`algorithms` has no effect without `collectives = \"expand\"`";
        let help = "remove `algorithms`, or set `collectives = \"expand\"`";
        return Err(TraceError::refused(problem, help).into());
    }
    Ok(())
}

/// The outcome of a reader of task graphs, whichever it is; one without messages is worth a warning.
fn done(graph: TaskGraph, collectives: Collectives, cx: &Context<'_>) -> Outcome {
    let reason = match collectives {
        Collectives::Ignore => ", as collective operations are ignored",
        Collectives::Keep if !graph.collectives.calls.is_empty() => {
            ", only collective operations, which are kept and not counted as messages"
        }
        Collectives::Keep | Collectives::Expand => "",
    };
    warn_of_silence(graph.edges.iter().all(|edge| edge.source == edge.destination), reason, cx);
    Outcome::Done(Outputs::new().with("task-graph", graph))
}

/// The stage `trace/otf2`.
///
/// Messages are counted at the sender (`MPI_SEND`, `MPI_ISEND`), unless they are cancelled. A remote memory access counts as a message
/// in the direction of its bytes (`RMA_PUT`, `RMA_GET`; `RMA_ATOMIC` as one in each direction). Collective
/// operations count as the messages of published algorithms, unless `collectives` selects otherwise. Ranks within communicators are translated to world ranks; messages of threads
/// and devices count for their process. Without MPI the ranks of SHMEM, GASPI or UPC count, else every
/// defined process in order of ids.
///
/// `compute_s` of a process is the time from the first to the last event of its main thread minus the time
/// in communication: regions of MPI, GASPI, UPC or SHMEM, regions whose role is point-to-point, collective
/// or remote memory access, and regions whose name starts with `MPI_` or `PMPI_`, including `MPI_Init` and
/// `MPI_Finalize`. `host` is the name of the node in the trace. `duration_s` is the time from the first to
/// the last event of the trace; EZTrace does not synchronise the clocks of the processes.
#[derive(Debug)]
pub struct Otf2;

impl Stage for Otf2 {
    type Params = Otf2Params;
    const KIND: &'static str = "trace/otf2";
    const SUMMARY: &'static str = "Build the communication matrix of a program from an OTF2 trace";
    const REVISION: u32 = 5;

    reads_otf2!(Otf2Params, "task-graph": TaskGraph);

    fn check(params: &Otf2Params) -> Result<(), Error> {
        check_reader(params.reader, params.allow_truncated)?;
        check_algorithms(params.collectives, params.algorithms)?;
        Ok(params.request().check()?)
    }

    fn run(params: Otf2Params, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let Otf2Params { reader, collectives, algorithms, allow_truncated, .. } = params;
        let request = params.request();
        let options = otf2::Options { reader, collectives, algorithms, request, complete: !allow_truncated };
        let graph = otf2::read(params.path.path(), options, cx)?;
        Ok(done(graph, collectives, cx))
    }
}

/// The stage `trace/events`.
///
/// The table has a row per sent message and per remote memory access (two for `RMA_ATOMIC`, one in each
/// direction), but not for collective operations. Rows are grouped by location, in order of ids; those of
/// one location are in recorded order. Cancelled sends have no row. Rows are written while the trace is read, so memory use does not
/// depend on its length.
#[derive(Debug)]
pub struct ListEvents;

impl Stage for ListEvents {
    type Params = EventsParams;
    const KIND: &'static str = "trace/events";
    const SUMMARY: &'static str = "List every message of an OTF2 trace in a table";
    const REVISION: u32 = 2;

    reads_otf2!(EventsParams, "events": Events);

    fn check(params: &EventsParams) -> Result<(), Error> {
        check_reader(params.reader, params.allow_truncated)?;
        Ok(params.request().check()?)
    }

    fn run(params: EventsParams, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let events = otf2::list(&params, cx)?;
        Ok(Outcome::Done(Outputs::new().with("events", events)))
    }
}

/// The stage `trace/dag`.
///
/// A task is an interval of computation (`work`, in seconds) between two calls at which a process depends on
/// others. An edge with bytes is a message, from the task before the send to the task after the receive;
/// edges without bytes between tasks of a rank are the program order. A collective operation with a root
/// gives edges from every process to the root, or from the root to every process. Any other collective
/// operation is a task without work at its first process, for which all processes wait. Messages are matched
/// as in MPI, by communicator, ends, tag and order. The rest is matched across communicators, because
/// EZTrace records the wrong communicator in some receives, with the source rank of the right one. Remote
/// memory accesses do not give dependencies. `recorded_s` is the time of the longest process from its first
/// to its last event.
#[derive(Debug)]
pub struct Dag;

impl Stage for Dag {
    type Params = DagParams;
    const KIND: &'static str = "trace/dag";
    const SUMMARY: &'static str = "Build the task DAG of a program from an OTF2 trace";
    const REVISION: u32 = 4;

    reads_otf2!(DagParams, "task-dag": TaskDag);

    fn check(params: &DagParams) -> Result<(), Error> {
        check_reader(params.reader, params.allow_truncated)?;
        let &DagParams { tiny_s, allow_loss, .. } = params;
        if !(tiny_s.is_finite() && tiny_s >= 0.0) {
            let help = "expected a non-negative number of seconds, such as 1e-6";
            return Err(TraceError::refused(format!("`tiny_s` is {tiny_s}"), help).into());
        }
        check_loss(allow_loss)
    }

    fn run(params: DagParams, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let dag = otf2::program_dag(&params, cx)?;
        let rank = |task: u32| dag.tasks[task as usize].rank;
        let is_within = |edge: &Dependency| rank(edge.source) == rank(edge.destination);
        warn_of_silence(dag.dependencies.iter().all(is_within), "", cx);
        Ok(Outcome::Done(Outputs::new().with("task-dag", dag)))
    }
}

/// The stage `trace/program`.
///
/// Every rank has its operations in order: computation in seconds, which is the time between calls of MPI;
/// sends and receives, blocking or with a request; waits; and collective operations with the bytes of a
/// block. Messages are matched as in `trace/dag`, so receives name the message that they received, and what
/// has no counterpart is left out with a warning. Remote memory accesses are left out. Nonblocking collective
/// operations block where they complete, or where all ranks have started them if ranks would wait for each other.
/// Recordings whose threads call MPI at the same time are refused. In a recording or an OTF2 archive a test or wait for several requests is one wait
/// for each request that completes.
///
/// The actions of a time-independent trace of SimGrid mean what `smpirun -replay` does. A `task-dag` becomes
/// a program of eager messages: a rank never waits for its sends.
#[derive(Debug)]
pub struct ProgramStage;

impl Stage for ProgramStage {
    type Params = ProgramParams;
    const KIND: &'static str = "trace/program";
    const SUMMARY: &'static str = "List what every rank of a program computes, sends and receives, in order";
    const REVISION: u32 = 7;
    const PORTS: &'static [Port] =
        &[Port::optional::<TaskDag>("task-dag"), Port::output::<Program>("program")];

    fn reads(params: &ProgramParams) -> Result<Vec<InputPath>, Error> {
        match &params.path {
            Some(path) => Ok(import::program_files(path.path(), params.format)?),
            None => Ok(Vec::new()),
        }
    }

    fn libraries() -> &'static [&'static Library] {
        &[LIBOTF2]
    }

    fn check(params: &ProgramParams) -> Result<(), Error> {
        check_reader(params.reader, params.allow_truncated)?;
        check_loss(params.allow_loss)?;
        check_speed(params.flops_per_s)
    }

    fn run(params: ProgramParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let dag = inputs.optional::<TaskDag>("task-dag")?;
        let program = match (&params.path, dag) {
            (Some(path), None) => import::program(path.path(), &params, cx)?,
            (None, Some(dag)) => program::of_dag(&dag.value, cx)?,
            (path, _) => {
                let both = path.is_some();
                let problem =
                    if both { "both `path` and `task-dag` are given" } else { "no program is given" };
                let help = "set `path` to a trace, or connect `task-dag`";
                return Err(TraceError::refused(problem, help).into());
            }
        };
        let ProgramTotals { messages, bytes, collectives, compute_s } = program.totals();
        let ranks = program.ranks();
        if messages == 0 && collectives == 0 {
            cx.log("warning: the program does not communicate");
        }
        cx.log(format_args!(
            "{ranks} ranks, {messages} messages ({bytes} bytes), {collectives} calls of collective operations, {compute_s:.6} s of computation"
        ));
        Ok(Outcome::Done(Outputs::new().with("program", program)))
    }
}

/// The stage `trace/replay`.
///
/// In a task DAG, a dependency between tasks of two ranks becomes a nonblocking message; one within a rank
/// becomes program order. Collective operations become the messages of the graph: one to the task that joins
/// them and one back.
///
/// A program keeps its operations, for `format = "simgrid"` only. Its collective operations must be those of
/// `MPI_COMM_WORLD`, and its messages become those of `MPI_COMM_WORLD`, with other tags if necessary.
#[derive(Debug)]
pub struct Replay;

impl Stage for Replay {
    type Params = ReplayParams;
    const KIND: &'static str = "trace/replay";
    const SUMMARY: &'static str = "Export a program or task DAG as a trace for SimGrid or LogGOPSim";
    const REVISION: u32 = 2;
    const PORTS: &'static [Port] = &[
        Port::optional::<TaskDag>("task-dag"),
        Port::optional::<Program>("program"),
        Port::output::<TraceArchive>("archive"),
    ];

    fn check(params: &ReplayParams) -> Result<(), Error> {
        check_speed(params.flops_per_s)
    }

    fn run(params: ReplayParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let dag = inputs.optional::<TaskDag>("task-dag")?;
        let program = inputs.optional::<Program>("program")?;
        let replayed = match (&program, &dag) {
            (Some(program), None) => export::Replayed::Program(&program.value),
            (None, Some(dag)) => export::Replayed::TaskDag(&dag.value),
            _ => {
                let problem = "exactly one of `task-dag` and `program` is needed";
                return Err(TraceError::refused(problem, "connect one of them").into());
            }
        };
        let archive = export::write(&replayed, &params, cx)?;
        Ok(Outcome::Done(Outputs::new().with("archive", archive)))
    }
}

/// The stage `trace/summary`.
///
/// Messages and bytes are those between different ranks; `self_messages` and `self_bytes` count messages of
/// ranks to themselves. `communication_share` and `collective_share` are fractions of the total time of all
/// ranks; `communication_share_min`, `_median` and `_max` are those of single ranks. No mapping gains more
/// than the share of the rank that computes longest, as the log says. `bytes_imbalance` and `compute_imbalance` are the maximum over ranks divided by the mean. Metrics
/// that the trace does not provide are missing.
#[derive(Debug)]
pub struct Summary;

impl Stage for Summary {
    type Params = SummaryParams;
    const KIND: &'static str = "trace/summary";
    const SUMMARY: &'static str = "Summarise a program: totals, imbalance, heaviest pairs, phases";
    const REVISION: u32 = 3;
    const PORTS: &'static [Port] =
        &[Port::input::<TaskGraph>("task-graph"), Port::output::<TraceSummary>("summary")];

    fn run(params: SummaryParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        hopmap_recording::lines(&graph, None).into_iter().for_each(|line| cx.log(line));
        let summary = hopmap_recording::summarise(&graph, params.pairs as usize);
        Ok(Outcome::Done(Outputs::new().with("summary", summary)))
    }
}

/// The stage `trace/otf`.
///
/// Messages are counted at the sender (records `S`); collective operations and remote memory accesses are
/// not counted. Senders and receivers are processes of the trace, so communicators do not matter. Ranks are
/// the positions in the group `MPI_COMM_WORLD` if it exists; else every process without a parent is a rank,
/// in order of ids. Messages of threads, which have a process as parent, count for that process.
///
/// `compute_s` of a process is the time from the first to the last event of its main thread minus the time
/// in communication: functions of the group `MPI` and those whose name starts with `MPI_` or `PMPI_`. `host`
/// is the node of the VampirTrace group, and `duration_s` is the time from the first to the last event of
/// the trace.
#[derive(Debug)]
pub struct Otf;

impl Stage for Otf {
    type Params = OtfParams;
    const KIND: &'static str = "trace/otf";
    const SUMMARY: &'static str = "Build the communication matrix of a program from an OTF 1 trace";
    const REVISION: u32 = 2;
    const PORTS: &'static [Port] = PORTS;

    fn reads(params: &OtfParams) -> Result<Vec<InputPath>, Error> {
        Ok(otf1::files(params.path.path())?)
    }

    fn check(params: &OtfParams) -> Result<(), Error> {
        Ok(params.request().check()?)
    }

    fn run(params: OtfParams, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = otf1::read(params.path.path(), &params.request(), cx)?;
        Ok(done(graph, Collectives::default(), cx))
    }
}

/// The stage `trace/import`.
///
/// Messages are counted at the sender, between world ranks. In recordings and OTF2 archives, collective
/// operations count as `collectives` selects; in other formats they are not counted, and the log reports
/// their number. `host`, `compute_s` and `duration_s` are taken from the file, and unknown without them.
/// Traces of training jobs have a phase per kind of process group, named as in `instance/parallel` where the trace
/// says the kind. Missing information is never estimated: formats without pairs of processes are rejected by name. Profiles
/// of Open MPI's monitoring do not have the bytes of messages by length; those of `sizes` add up.
#[derive(Debug)]
pub struct Import;

impl Stage for Import {
    type Params = ImportParams;
    const KIND: &'static str = "trace/import";
    const SUMMARY: &'static str =
        "Import the communication matrix of a recording, or of a file of another tool";
    const REVISION: u32 = 7;
    const PORTS: &'static [Port] = PORTS;

    fn check(params: &ImportParams) -> Result<(), Error> {
        import::check(params.ranks)?;
        check_algorithms(params.collectives, params.algorithms)
    }

    fn reads(params: &ImportParams) -> Result<Vec<InputPath>, Error> {
        Ok(import::files(params.path.path(), params.format)?)
    }

    fn run(params: ImportParams, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let ImportParams { path, format, ranks, ranks_per_host, collectives, algorithms, allow_truncated } =
            params;
        let options = import::Options { ranks, ranks_per_host, collectives, algorithms, allow_truncated };
        let graph = import::read(path.path(), format, options, cx)?;
        Ok(done(graph, collectives, cx))
    }
}

/// The stage `trace/export`.
///
/// The file has the number of ranks, and messages and bytes per ordered pair; `trace/import` restores them
/// exactly. The log lists what the file omits.
#[derive(Debug)]
pub struct Export;

impl Stage for Export {
    type Params = ExportParams;
    const KIND: &'static str = "trace/export";
    const SUMMARY: &'static str = "Export a communication matrix as a text file";
    const REVISION: u32 = 2;
    const PORTS: &'static [Port] =
        &[Port::input::<TaskGraph>("task-graph"), Port::output::<TextFile>("file")];

    fn run(params: ExportParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?;
        let mut file = export::export(&graph.value, params.format, cx);
        if params.format == ExportFormat::MatrixMarket {
            // The header must be the first line.
            let origin = format!("\n% hopmap {} {}\n", TaskGraph::KIND, graph.digest);
            file.text = file.text.replacen('\n', &origin, 1);
        }
        Ok(Outcome::Done(Outputs::new().with("file", file)))
    }
}

/// The stage `trace/generate`.
///
/// Every rank executes rounds: it computes and sends to each of its partners, then receives from each and
/// computes. Ranks do not wait for each other, and their clocks agree. `task-graph` is computed from the
/// pattern alone, as the expected result of reading the archive.
#[derive(Debug)]
pub struct Generate;

impl Stage for Generate {
    type Params = GenerateParams;
    const KIND: &'static str = "trace/generate";
    const SUMMARY: &'static str = "Generate an OTF2 trace of a program with known messages";
    const REVISION: u32 = 2;
    const PORTS: &'static [Port] =
        &[Port::output::<TraceArchive>("archive"), Port::output::<TaskGraph>("task-graph")];

    fn check(params: &GenerateParams) -> Result<(), Error> {
        generate::check(params)
    }

    fn run(params: GenerateParams, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let (archive, graph) = generate::generate(&params, cx)?;
        Ok(Outcome::Done(Outputs::new().with("archive", archive).with("task-graph", graph)))
    }
}
