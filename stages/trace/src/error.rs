//! What can go wrong.

use std::path::PathBuf;

use hopmap_artifact::ArtifactError;
use hopmap_model::NotBuilt;
use hopmap_text::FileError;
use miette::Diagnostic;

use crate::LIBOTF2;

/// Names behind a colon.
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        _ => format!(": {}", names.join(", ")),
    }
}

/// Most ranks of a generated trace.
pub(crate) const MOST_GENERATED_RANKS: u32 = 1 << 16;

/// A trace that cannot be generated.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum GenerateError {
    /// The parameter `ranks` is out of range.
    #[error("`ranks` asks for {ranks} ranks")]
    #[diagnostic(help("there are from 2 to {MOST_GENERATED_RANKS} ranks"))]
    Ranks {
        /// The parameter.
        ranks: u32,
    },
    /// The parameter `events` is less than a round.
    #[error("`events` asks for {events} events, but one round has {needed}")]
    #[diagnostic(help("ask for at least {needed} events, or for fewer ranks"))]
    TooFew {
        /// The parameter.
        events: u64,
        /// Events of one round.
        needed: u64,
    },
    /// The archive cannot be written.
    #[error("cannot write the trace below `{}`", path.display())]
    #[diagnostic(help("an event takes about 14 bytes; TMPDIR names another folder"))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The user or a deadline stopped the writing. Half a trace is no trace.
    #[error("stopped after {done} of {ranks} ranks")]
    Stopped {
        /// Ranks written.
        done: u32,
        /// Ranks there are.
        ranks: u32,
    },
}

/// A file of another tool that cannot be read.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ImportError {
    /// Something is wrong with a file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// Nothing in the file is known.
    #[error("`{}` looks like nothing that is known", path.display())]
    #[diagnostic(help("known are {known}; `format` says which it is"))]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The names of all formats.
        known: String,
    },
    /// The format is known, and gives no task graph here.
    #[error("`{}` is {what}: {why}", path.display())]
    #[diagnostic(help("{instead}"))]
    Refused {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// Why it gives no task graph.
        why: &'static str,
        /// What to do in its place.
        instead: &'static str,
    },
    /// The parameter `ranks` is out of range.
    #[error("`ranks` asks for {ranks} ranks")]
    #[diagnostic(help("a graph has from 1 to {most} ranks"))]
    Ranks {
        /// The parameter.
        ranks: u32,
        /// The most there can be.
        most: u32,
    },
    /// The file has more ranks than the parameter `ranks` allows.
    #[error("`{}` has {found} ranks, and `ranks` asks for {ranks}", path.display())]
    MoreRanks {
        /// The file.
        path: PathBuf,
        /// Ranks it has.
        found: usize,
        /// The parameter.
        ranks: u32,
    },
}

/// An OTF 1 archive that cannot be read.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum OtfError {
    /// Something is wrong with a file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// A folder holds no master file, or several.
    #[error("`{}` holds {} master files{}", path.display(), if names.is_empty() { "no" } else { "several" }, list(names))]
    #[diagnostic(help("give the master file, whose name ends in `.otf`"))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The master files in it.
        names: Vec<String>,
    },
    /// The archive is in the format after OTF 1.
    #[error("`{}` is an OTF2 archive", path.display())]
    #[diagnostic(help("use the stage `trace/otf2`: the master file of an OTF 1 archive ends in `.otf`"))]
    Otf2 {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a master file.
    #[error("`{}` is not the master file of an OTF 1 archive: {reason}", path.display())]
    #[diagnostic(help(
        "the master file NAME.otf lies beside NAME.0.def and NAME.1.events, NAME.2.events and so on"
    ))]
    NotAMaster {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: &'static str,
    },
    /// The archive is written in a way that is not read.
    #[error("`{}` {what}, which is not supported", path.display())]
    Unsupported {
        /// The master file.
        path: PathBuf,
        /// What it does.
        what: &'static str,
    },
    /// The definitions are not there.
    #[error("`{}` is missing, and so is the same with `.z`", path.display())]
    #[diagnostic(help(
        "copy all files of the archive; VampirTrace writes the definitions when `vtunify` has run"
    ))]
    NoDefinitions {
        /// The file.
        path: PathBuf,
    },
    /// The events of a stream are not there.
    #[error("`{}` is missing (stream {stream:x}), and so is the same with `.z`", path.display())]
    #[diagnostic(help(
        "copy all files of the archive; if the stream has no events, make an empty file of that name"
    ))]
    NoEvents {
        /// The file.
        path: PathBuf,
        /// The stream whose file it is.
        stream: u32,
    },
    /// The user or a deadline stopped the reading. Half a trace is no answer.
    #[error("stopped after {done} of {total} streams")]
    Stopped {
        /// Streams read.
        done: usize,
        /// Streams there are.
        total: usize,
    },
}

/// An OTF2 archive that cannot be read.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum Otf2Error {
    /// libotf2 is asked for, but not in this build.
    #[error(transparent)]
    #[diagnostic(transparent)]
    NotBuilt(#[from] NotBuilt),
    /// A file cannot be opened or read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A folder holds no anchor file, or several.
    #[error("`{}` holds {} anchor files{}", path.display(), if names.is_empty() { "no" } else { "several" }, list(names))]
    #[diagnostic(help("give the anchor file, whose name ends in `.otf2`"))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The anchor files in it.
        names: Vec<String>,
    },
    /// The archive is in the format before OTF2.
    #[error("`{}` is an OTF 1 archive", path.display())]
    #[diagnostic(help("use the stage `trace/otf`: the anchor file of an OTF2 archive ends in `.otf2`"))]
    Otf1 {
        /// The file.
        path: PathBuf,
    },
    /// The file is not an anchor file.
    #[error("`{}` is not the anchor file of an OTF2 archive: {reason}", path.display())]
    #[diagnostic(help(
        "the anchor file ends in `.otf2` and lies beside a `.def` file and a folder of the same name"
    ))]
    NotAnAnchor {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: &'static str,
    },
    /// The archive is stored in a way that no reader here takes.
    #[error("`{}` {what}, which is not supported", path.display())]
    Unsupported {
        /// The anchor file.
        path: PathBuf,
        /// What it does.
        what: &'static str,
    },
    /// A file of the archive is not there.
    #[error("`{}` is missing{}", path.display(), of_location(*location))]
    #[diagnostic(help(
        "an archive consists of the anchor file, NAME.def and the folder NAME: copy all of them"
    ))]
    Missing {
        /// The file.
        path: PathBuf,
        /// The location whose file it is.
        location: Option<u64>,
    },
    /// A file is cut off or its bytes make no sense.
    #[error("`{}`{} is damaged at byte {offset}: {what}", path.display(), of_location(*location))]
    #[diagnostic(help(
        "the trace was not written to its end, or not copied as a whole: copy or record it again, or take what comes before with `allow_truncated = true`"
    ))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The location whose file it is.
        location: Option<u64>,
        /// Where.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// libotf2 refuses a file that looks sound.
    #[error("libotf2 cannot read `{}`{}: {message}", path.display(), of_location(*location))]
    Library {
        /// The file.
        path: PathBuf,
        /// The location whose file it is.
        location: Option<u64>,
        /// What libotf2 says.
        message: String,
    },
    /// The definitions contradict each other.
    #[error("the definitions in `{}` make no sense: {what}", path.display())]
    Definitions {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// An event cannot be.
    #[error("event {event} of location {location} in `{}`: {what}", path.display())]
    Event {
        /// The file.
        path: PathBuf,
        /// The location.
        location: u64,
        /// The event, counted from one.
        event: u64,
        /// What is wrong.
        what: String,
    },
    /// A later version of the format is used, which only libotf2 may know.
    #[error("`{}` (location {location}) holds {what} of a kind that the native reader does not know", path.display())]
    #[diagnostic(help("{}", if LIBOTF2.is_built { "read the archive with `reader = \"libotf2\"`".into() } else { format!("libotf2 may know them: {}", LIBOTF2.hint()) }))]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The location.
        location: u64,
        /// What is not known.
        what: &'static str,
    },
    /// Only the native reader knows what comes before damage.
    #[error("`allow_truncated` and `reader = \"libotf2\"` do not go together")]
    #[diagnostic(help("leave `reader` out: libotf2 reads no archive that is cut off"))]
    TruncatedForLibrary,
    /// Algorithms matter only where operations become messages.
    #[error("`algorithms` are given, but collective operations do not become messages")]
    #[diagnostic(help("add `collectives = \"expand\"`"))]
    NothingToExpand,
    /// A table of what is read cannot be written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Table(#[from] ArtifactError),
    /// Sums do not fit.
    #[error("the messages or bytes of all pairs in `{}` exceed 64 bits", path.display())]
    Overflow {
        /// The anchor file.
        path: PathBuf,
    },
    /// The user or a deadline stopped the reading. Half a trace is no answer.
    #[error("stopped after {done} of {total} locations")]
    Stopped {
        /// Locations read.
        done: usize,
        /// Locations there are.
        total: usize,
    },
}

fn of_location(location: Option<u64>) -> String {
    location.map(|location| format!(" (location {location})")).unwrap_or_default()
}

/// A selection of what counts that cannot be met.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Diagnostic)]
pub enum SelectionError {
    /// A point in time that cannot be.
    #[error("`select` names {time_s} s, which is no time of the trace")]
    #[diagnostic(help("`from_s` and `to_s` are seconds after the first event"))]
    Time {
        /// The time.
        time_s: f64,
    },
    /// Nothing is in the window.
    #[error("`select` leaves no time: from {from_s} s to {to_s} s")]
    #[diagnostic(help("`from_s` must be less than `to_s`"))]
    Window {
        /// Its beginning.
        from_s: f64,
        /// Its end.
        to_s: f64,
    },
    /// No message is long enough and short enough.
    #[error("`select` leaves no length: from {min_bytes} to {max_bytes} bytes")]
    #[diagnostic(help("`min_bytes` must not exceed `max_bytes`"))]
    Lengths {
        /// Least length.
        min_bytes: u64,
        /// Greatest length.
        max_bytes: u64,
    },
    /// Slices without length.
    #[error("`phases` asks for slices of {width_s} s")]
    #[diagnostic(help("give a positive number of seconds, such as `phases = {{ seconds = 0.5 }}`"))]
    Slice {
        /// The length.
        width_s: f64,
    },
    /// Too many slices.
    #[error("`phases` asks for {slices} slices of time, and there can be {most}")]
    #[diagnostic(help("give longer slices"))]
    ManySlices {
        /// How many there would be.
        slices: u64,
        /// How many there can be.
        most: u64,
    },
    /// An empty list of phases.
    #[error("`phases` names no region")]
    #[diagnostic(help(
        "give the names of functions, such as `phases = {{ regions = [\"init\", \"solve\"] }}`"
    ))]
    NoPhases,
    /// A phase that stands twice.
    #[error("`phases` names a region twice")]
    TwicePhases,
    /// There are no times.
    #[error(
        "`select` or `phases` asks for times, but the trace does not say how long a tick of its clock is"
    )]
    NoClock,
    /// No region has this name.
    #[error("no region of the trace is called `{name}`")]
    #[diagnostic(help(
        "`otf2-print -G` or `otfprint` lists the regions of a trace; names are matched as a whole"
    ))]
    NoRegion {
        /// The name.
        name: String,
    },
    /// No communicator has this name or number.
    #[error("no communicator of the trace is called `{name}` or has this number")]
    #[diagnostic(help("`otf2-print -G` or `otfprint` lists the communicators of a trace"))]
    NoCommunicator {
        /// The name.
        name: String,
    },
}

/// A trace of which no graph of tasks can be made.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum DagError {
    /// A parameter is no number that can be.
    #[error("`tiny_s` is {tiny_s}")]
    #[diagnostic(help("give a number of seconds from zero, such as 1e-6"))]
    Tiny {
        /// The parameter.
        tiny_s: f64,
    },
    /// A parameter is no share.
    #[error("`allow_loss` is {allow_loss}")]
    #[diagnostic(help("give a share of the bytes sent, from 0 to 1"))]
    AllowedLoss {
        /// The parameter.
        allow_loss: f64,
    },
    /// Too much of what was sent is in no task.
    #[error(
        "`{}` does not say when {messages} messages were received: {bytes} of {of_bytes} bytes are lost", path.display()
    )]
    #[diagnostic(help(
        "EZTrace leaves out receives that do not block: record with Score-P; or set `allow_loss` to the share of bytes that may be missing, 1 for any"
    ))]
    Loss {
        /// The archive.
        path: PathBuf,
        /// Messages without a receive.
        messages: u64,
        /// Their bytes.
        bytes: u128,
        /// Bytes of all messages.
        of_bytes: u128,
    },
    /// There are no times.
    #[error("`{}` does not say how long a tick of its clock is, so nobody knows how long a task takes", path.display())]
    #[diagnostic(help(
        "record the trace again with a tool that writes the properties of its clock, such as Score-P"
    ))]
    NoClock {
        /// The archive.
        path: PathBuf,
    },
    /// Messages contradict each other.
    #[error("the messages in `{}` contradict each other: what rank {rank} does waits for itself", path.display())]
    #[diagnostic(help(
        "messages of some ranks are missing in the middle, so that others stand in their place: record the trace again"
    ))]
    Contradiction {
        /// The archive.
        path: PathBuf,
        /// One of the ranks.
        rank: u32,
    },
    /// The program would not end if messages waited to be asked for.
    #[error(
        "the program in `{}` hangs if messages of at least {bytes} bytes wait until they are asked for: what rank {rank} does waits for itself", path.display()
    )]
    #[diagnostic(help(
        "the program ran, so its MPI sent longer messages at once: raise `rendezvous_bytes`, or leave it out"
    ))]
    Deadlock {
        /// The archive.
        path: PathBuf,
        /// One of the ranks.
        rank: u32,
        /// From which length messages wait.
        bytes: u64,
    },
}

/// A graph of tasks that no simulator can replay.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ReplayError {
    /// The program has no steps.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Steps(#[from] hopmap_replay::StepsError),
    /// A speed that no machine has.
    #[error("`flops_per_s` is {flops_per_s}")]
    #[diagnostic(help("give the speed of a core of the simulated machine, such as 1e9"))]
    Speed {
        /// The parameter.
        flops_per_s: f64,
    },
    /// The files cannot be written.
    #[error("cannot write below `{}`", path.display())]
    #[diagnostic(help("TMPDIR names another folder"))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}
