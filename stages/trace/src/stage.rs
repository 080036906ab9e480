//! The stages.

use hopmap_model::{
    Artifact, Context, Error, Events, InputPath, Inputs, Library, Outcome, Outputs, Port, Stage, TaskDag,
    TaskGraph, TextFile, TraceArchive, TraceSummary,
};

use crate::{
    Algorithms, Collectives, DagParams, EventsParams, ExportFormat, ExportParams, GenerateParams,
    ImportParams, LIBOTF2, Otf2Params, OtfParams, Reader, ReplayParams, SummaryParams, TraceError, export,
    generate, import, otf1, otf2, summary,
};

const PORTS: &[Port] = &[Port::output::<TaskGraph>("task-graph")];

/// What all stages that read an OTF2 archive are alike in: their output, their files and their library.
macro_rules! reads_otf2 {
    ($params:ty, $port:literal: $artifact:ty) => {
        fn ports() -> &'static [Port] {
            const { &[Port::output::<$artifact>($port)] }
        }

        fn reads(params: &$params) -> Result<Vec<InputPath>, Error> {
            Ok(otf2::files(params.path.path())?)
        }

        fn libraries() -> &'static [&'static Library] {
            &[LIBOTF2]
        }
    };
}

/// libotf2 is not in every build, and reads no archive that is cut off.
fn check_reader(reader: Reader, allow_truncated: bool) -> Result<(), Error> {
    match reader {
        Reader::Libotf2 if allow_truncated => {
            let problem = "`allow_truncated` and `reader = \"libotf2\"` do not go together";
            let help = "leave `reader` out: libotf2 reads no archive that is cut off";
            Err(TraceError::refused(problem, help).into())
        }
        Reader::Libotf2 => Ok(LIBOTF2.require(Reader::NEEDS_LIBRARY)?),
        Reader::Auto | Reader::Native => Ok(()),
    }
}

/// The stage `trace/otf2`.
///
/// Messages are counted where they are sent (`MPI_SEND`, `MPI_ISEND`). An access to remote memory counts as a message
/// in the direction of its bytes (`RMA_PUT`, `RMA_GET`; `RMA_ATOMIC` as one in each). Collective operations do not
/// count, are kept in a table of their own, or are kept and count as the messages of published algorithms. Ranks within communicators become ranks of the program;
/// threads and devices send for their process. Without MPI the ranks of SHMEM, GASPI or UPC count, else every process
/// that is defined, in the order of ids.
///
/// `compute_s` of a process is the time from the first to the last event of its main thread less the time inside
/// communication: regions of MPI, GASPI, UPC or SHMEM, regions whose role is point-to-point, collective or remote
/// memory access, and regions whose name begins with `MPI_` or `PMPI_`, `MPI_Init` and `MPI_Finalize` among them.
/// `host` is the node the trace names, or what it names in its place. `duration_s` goes from the first to the
/// last event of all; EZTrace does not align the clocks of the processes.
#[derive(Debug)]
pub struct Otf2;

impl Stage for Otf2 {
    type Params = Otf2Params;
    const KIND: &'static str = "trace/otf2";
    const SUMMARY: &'static str = "Messages and bytes between processes from an OTF2 trace";
    const REVISION: u32 = 3;

    reads_otf2!(Otf2Params, "task-graph": TaskGraph);

    fn check(params: &Otf2Params) -> Result<(), Error> {
        check_reader(params.reader, params.allow_truncated)?;
        params.algorithms.check()?;
        if params.algorithms != Algorithms::default() && params.collectives != Collectives::Expand {
            let problem = "`algorithms` are given, but collective operations do not become messages";
            return Err(TraceError::refused(problem, "add `collectives = \"expand\"`").into());
        }
        Ok(params.request().check()?)
    }

    fn run(params: Otf2Params, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let Otf2Params { reader, collectives, algorithms, allow_truncated, .. } = params;
        let request = params.request();
        let options = otf2::Options { reader, collectives, algorithms, request, whole: !allow_truncated };
        let graph = otf2::read(params.path.path(), options, cx)?;
        Ok(Outcome::Done(Outputs::new().with("task-graph", graph)))
    }
}

/// The stage `trace/events`.
///
/// A row for every message that is sent, and for every access to remote memory: two for `RMA_ATOMIC`, one in each
/// direction. Collective operations are not listed. Rows stand location by location, in the order of ids; those of
/// one location are in the order in which it recorded them. They are written as they are read, so a trace of any
/// length takes the same memory.
#[derive(Debug)]
pub struct ListEvents;

impl Stage for ListEvents {
    type Params = EventsParams;
    const KIND: &'static str = "trace/events";
    const SUMMARY: &'static str = "The messages of an OTF2 trace one by one, as a table";
    const REVISION: u32 = 1;

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
/// A task is the time (`work`, in seconds) that a process computes between two calls at which it depends on others. An
/// edge with bytes is a message, from the task before it is sent to the task after it is received; edges without bytes
/// between tasks of a rank are the order of its program. A collective operation with a root leads from every process to
/// the root or from the root to every process; another one is a task without work at the first of its processes, for
/// which all wait. Messages are matched as MPI does, by communicator, ends, tag and order; what is left over is matched
/// across communicators, for EZTrace names the wrong one in some receives, whose sources it numbers as in the right one.
/// Access to remote memory makes nobody wait.
#[derive(Debug)]
pub struct Dag;

impl Stage for Dag {
    type Params = DagParams;
    const KIND: &'static str = "trace/dag";
    const SUMMARY: &'static str = "Tasks of an OTF2 trace and what each of them waits for";
    const REVISION: u32 = 3;

    reads_otf2!(DagParams, "task-dag": TaskDag);

    fn check(params: &DagParams) -> Result<(), Error> {
        check_reader(params.reader, params.allow_truncated)?;
        let &DagParams { tiny_s, allow_loss, .. } = params;
        if !(tiny_s.is_finite() && tiny_s >= 0.0) {
            let help = "give a number of seconds from zero, such as 1e-6";
            return Err(TraceError::refused(format!("`tiny_s` is {tiny_s}"), help).into());
        }
        if !(0.0..=1.0).contains(&allow_loss) {
            let help = "give a share of the bytes sent, from 0 to 1";
            return Err(TraceError::refused(format!("`allow_loss` is {allow_loss}"), help).into());
        }
        Ok(())
    }

    fn run(params: DagParams, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let dag = otf2::program_dag(&params, cx)?;
        Ok(Outcome::Done(Outputs::new().with("task-dag", dag)))
    }
}

/// The stage `trace/replay`.
///
/// A dependency between tasks of two ranks becomes a message that does not block its sender; one within a rank is order.
/// Collective operations are the messages that the graph has for them: one to the task that joins them and one back.
#[derive(Debug)]
pub struct Replay;

impl Stage for Replay {
    type Params = ReplayParams;
    const KIND: &'static str = "trace/replay";
    const SUMMARY: &'static str = "Tasks as a trace that SimGrid or LogGOPSim replays";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const PORTS: &[Port] = &[Port::input::<TaskDag>("task-dag"), Port::output::<TraceArchive>("archive")];
        PORTS
    }

    fn check(params: &ReplayParams) -> Result<(), Error> {
        let flops_per_s = params.flops_per_s;
        if flops_per_s.is_finite() && flops_per_s > 0.0 {
            return Ok(());
        }
        let help = "give the speed of a core of the simulated machine, such as 1e9";
        Err(TraceError::refused(format!("`flops_per_s` is {flops_per_s}"), help).into())
    }

    fn run(params: ReplayParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let dag = inputs.one::<TaskDag>("task-dag")?.value;
        let archive = export::write(&dag, &params, cx)?;
        Ok(Outcome::Done(Outputs::new().with("archive", archive)))
    }
}

/// The stage `trace/summary`.
///
/// Messages and bytes are those between different ranks; what ranks send to themselves is `self_messages` and `self_bytes`.
/// `communication_share` and `collective_share` are parts of the
/// time of all ranks together; `bytes_imbalance` and `compute_imbalance` are the largest share of a rank over the mean.
/// What the trace does not tell is missing.
#[derive(Debug)]
pub struct Summary;

impl Stage for Summary {
    type Params = SummaryParams;
    const KIND: &'static str = "trace/summary";
    const SUMMARY: &'static str = "A program in a few numbers: totals, imbalance, heaviest pairs, phases";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        const PORTS: &[Port] =
            &[Port::input::<TaskGraph>("task-graph"), Port::output::<TraceSummary>("summary")];
        PORTS
    }

    fn run(params: SummaryParams, inputs: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let summary = summary::summarise(&graph, params.pairs as usize);
        Ok(Outcome::Done(Outputs::new().with("summary", summary)))
    }
}

/// The stage `trace/otf`.
///
/// Messages are counted where they are sent (records `S`); collective operations and access to remote memory are not.
/// Senders and receivers are processes of the whole trace, so communicators do not matter. Ranks are the places in the
/// group `MPI_COMM_WORLD` if there is one; else every process without a parent counts, in the order of ids. Threads,
/// which have a process as parent, send for it.
///
/// `compute_s` of a process is the time from the first to the last event of its main thread less the time inside
/// communication: functions of the group `MPI` and those whose name begins with `MPI_` or `PMPI_`. `host` is the node
/// for which VampirTrace has a group, and `duration_s` goes from the first to the last event of all.
#[derive(Debug)]
pub struct Otf;

impl Stage for Otf {
    type Params = OtfParams;
    const KIND: &'static str = "trace/otf";
    const SUMMARY: &'static str = "Messages and bytes between processes from an OTF 1 trace";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn reads(params: &OtfParams) -> Result<Vec<InputPath>, Error> {
        Ok(otf1::files(params.path.path())?)
    }

    fn check(params: &OtfParams) -> Result<(), Error> {
        Ok(params.request().check()?)
    }

    fn run(params: OtfParams, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = otf1::read(params.path.path(), &params.request(), cx)?;
        Ok(Outcome::Done(Outputs::new().with("task-graph", graph)))
    }
}

/// The stage `trace/import`.
///
/// Messages are counted where they are sent, between ranks of the whole program. Collective operations do not count;
/// where a file has some, the log says how many. `host`, `compute_s` and `duration_s` are what the file says of them,
/// and unknown where it says nothing. What a file cannot tell is not made up: files without pairs of processes are
/// refused by name.
#[derive(Debug)]
pub struct Import;

impl Stage for Import {
    type Params = ImportParams;
    const KIND: &'static str = "trace/import";
    const SUMMARY: &'static str = "Messages and bytes between processes from a file of another tool";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &ImportParams) -> Result<(), Error> {
        Ok(import::check(params.ranks)?)
    }

    fn reads(params: &ImportParams) -> Result<Vec<InputPath>, Error> {
        Ok(import::files(params.path.path(), params.format)?)
    }

    fn run(params: ImportParams, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = import::read(params.path.path(), params.format, params.ranks, cx)?;
        Ok(Outcome::Done(Outputs::new().with("task-graph", graph)))
    }
}

/// The stage `trace/export`.
///
/// The file holds the number of ranks, and messages and bytes per ordered pair: `trace/import` gives them back as they
/// were. The log says what else the task graph has.
#[derive(Debug)]
pub struct Export;

impl Stage for Export {
    type Params = ExportParams;
    const KIND: &'static str = "trace/export";
    const SUMMARY: &'static str = "A task graph as a text file for other tools";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        const PORTS: &[Port] = &[Port::input::<TaskGraph>("task-graph"), Port::output::<TextFile>("file")];
        PORTS
    }

    fn run(params: ExportParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?;
        let mut file = export::export(&graph.value, params.format, cx);
        if params.format == ExportFormat::MatrixMarket {
            // The header has to be the first line.
            let origin = format!("\n% hopmap {} {}\n", TaskGraph::KIND, graph.digest);
            file.text = file.text.replacen('\n', &origin, 1);
        }
        Ok(Outcome::Done(Outputs::new().with("file", file)))
    }
}

/// The stage `trace/generate`.
///
/// Every rank goes through rounds: it computes and sends to each of its partners, then receives from each and computes.
/// Ranks do not wait for each other, and their clocks agree. `task-graph` follows from the pattern alone, so it is what
/// reading the archive has to give.
#[derive(Debug)]
pub struct Generate;

impl Stage for Generate {
    type Params = GenerateParams;
    const KIND: &'static str = "trace/generate";
    const SUMMARY: &'static str = "An OTF2 trace of a program whose messages are known";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        const PORTS: &[Port] =
            &[Port::output::<TraceArchive>("archive"), Port::output::<TaskGraph>("task-graph")];
        PORTS
    }

    fn check(params: &GenerateParams) -> Result<(), Error> {
        Ok(generate::check(params)?)
    }

    fn run(params: GenerateParams, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let (archive, graph) = generate::generate(&params, cx)?;
        Ok(Outcome::Done(Outputs::new().with("archive", archive).with("task-graph", graph)))
    }
}
