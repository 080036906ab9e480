//! A selection that cannot be met.

use miette::Diagnostic;

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
