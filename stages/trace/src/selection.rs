//! Selection and classes of trace events.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::TraceError;

/// Part of the trace that counts. All given conditions must hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Select {
    /// Start of the time window, in seconds after the first event of the trace.
    pub from_s: Option<f64>,
    /// End of the time window (exclusive), in seconds after the first event of the trace.
    pub to_s: Option<f64>,
    /// Names of regions (functions). Only events inside them, including their callees, count.
    pub regions: Vec<String>,
    /// Names or numbers of communicators. Only their messages count.
    pub communicators: Vec<String>,
    /// Minimum message length in bytes.
    pub min_bytes: Option<u64>,
    /// Maximum message length in bytes.
    pub max_bytes: Option<u64>,
}

/// Definition of the phases of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phases {
    /// Regions (functions) with these names, including their callees; the innermost one counts. Phase 0 is
    /// everything outside of them, phase 1 the first region.
    Regions(Vec<String>),
    /// Time slices of this many seconds, starting at the first event of the trace.
    Seconds(f64),
}

/// Maximum number of time slices.
const MOST_SLICES: u64 = 1 << 16;

/// Bits of a class for the magnitude of the message length.
const LENGTH_BITS: u32 = 7;

/// The class of a message: its phase, and the bit length of its length if recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Class(u32);

impl Class {
    /// The class if neither phases nor lengths are recorded.
    pub(crate) const ALL: Self = Self(0);

    /// The same class for a message of a given length; 0 bits for an empty one.
    pub(crate) fn of_length(self, bytes: u64) -> Self {
        Self(self.phase() << LENGTH_BITS | (u64::BITS - bytes.leading_zeros()))
    }

    /// Number of the phase.
    pub(crate) fn phase(self) -> u32 {
        self.0 >> LENGTH_BITS
    }

    /// Bit length of the message length.
    pub(crate) fn length_bits(self) -> u32 {
        self.0 & ((1 << LENGTH_BITS) - 1)
    }

    /// The class as a number.
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// Selection, phases and sizes that the user requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) select: &'a Select,
    pub(crate) phases: Option<&'a Phases>,
    pub(crate) sizes: bool,
}

impl Request<'_> {
    /// Whether everything counts in a single class.
    pub(crate) fn is_plain(&self) -> bool {
        *self.select == Select::default() && self.phases.is_none() && !self.sizes
    }

    /// Whether the times of events matter.
    pub(crate) fn needs_time(&self) -> bool {
        self.select.from_s.is_some()
            || self.select.to_s.is_some()
            || matches!(self.phases, Some(Phases::Seconds(_)))
    }

    /// Checks that do not depend on the trace.
    pub(crate) fn check(&self) -> Result<(), TraceError> {
        let Select { from_s, to_s, min_bytes, max_bytes, .. } = self.select;
        let negative = |time: &f64| !time.is_finite() || *time < 0.0;
        if let Some(time_s) = [from_s, to_s].into_iter().flatten().find(|time| negative(time)) {
            let problem = format!("`select` has an invalid time: {time_s} s");
            return Err(TraceError::refused(
                problem,
                "`from_s` and `to_s` are non-negative seconds after the first event",
            ));
        }
        if let (Some(from_s), Some(to_s)) = (from_s, to_s)
            && from_s >= to_s
        {
            let problem = format!("`select` has an empty time window: {from_s} s to {to_s} s");
            return Err(TraceError::refused(problem, "`from_s` must be less than `to_s`"));
        }
        if let (Some(min_bytes), Some(max_bytes)) = (min_bytes, max_bytes)
            && min_bytes > max_bytes
        {
            let problem = format!("`select` has an empty range of lengths: {min_bytes} to {max_bytes} bytes");
            return Err(TraceError::refused(problem, "`min_bytes` must not exceed `max_bytes`"));
        }
        match self.phases {
            Some(Phases::Seconds(width_s)) if !(width_s.is_finite() && *width_s > 0.0) => {
                let help = "expected a positive number of seconds, such as `phases = { seconds = 0.5 }`";
                Err(TraceError::refused(format!("`phases` has an invalid slice length: {width_s} s"), help))
            }
            Some(Phases::Regions(names)) if names.is_empty() => {
                let help =
                    "list the names of functions, such as `phases = { regions = [\"init\", \"solve\"] }`";
                Err(TraceError::refused("`phases` does not name regions", help))
            }
            Some(Phases::Regions(names)) if names.iter().collect::<BTreeSet<_>>().len() < names.len() => {
                Err(TraceError::refused("`phases` names a region more than once", ""))
            }
            _ => Ok(()),
        }
    }
}

/// Selected regions and phases by region name.
#[derive(Debug, Default)]
pub(crate) struct Marks<'a> {
    selected: BTreeSet<&'a str>,
    phases: BTreeMap<&'a str, u32>,
    missing: BTreeSet<&'a str>,
}

impl<'a> Marks<'a> {
    pub(crate) fn new(request: &Request<'a>) -> Self {
        let selected: BTreeSet<&str> = request.select.regions.iter().map(String::as_str).collect();
        let phases: BTreeMap<&str, u32> = match request.phases {
            Some(Phases::Regions(names)) => names.iter().map(String::as_str).zip(1..).collect(),
            _ => BTreeMap::new(),
        };
        let missing = selected.iter().chain(phases.keys()).copied().collect();
        Self { selected, phases, missing }
    }

    /// Adds the marks of a region to its kind.
    pub(crate) fn mark(&mut self, name: &str, kind: RegionKind) -> RegionKind {
        self.missing.remove(name);
        RegionKind {
            selected: self.selected.contains(name),
            phase: self.phases.get(name).copied().unwrap_or(0),
            ..kind
        }
    }

    /// Checks that every requested region exists.
    pub(crate) fn check(&self) -> Result<(), TraceError> {
        match self.missing.first() {
            Some(name) => {
                let help =
                    "`otf2-print -G` or `otfprint` lists the regions of a trace; names must match completely";
                Err(TraceError::refused(format!("the trace does not contain a region `{name}`"), help))
            }
            None => Ok(()),
        }
    }
}

/// A selection in terms of the trace.
#[derive(Debug)]
pub(crate) struct Selection {
    /// First tick, and first tick after the window.
    window: (u64, u64),
    inside_regions: bool,
    communicators: Option<BTreeSet<u32>>,
    lengths: (u64, u64),
    /// First tick, and ticks per slice.
    slices: Option<(u64, u64)>,
    pub(crate) sizes: bool,
}

impl Selection {
    /// Resolves a request for a trace that starts at tick `start`; `called` gives the ids of the
    /// communicators with a name.
    pub(crate) fn new(
        request: &Request<'_>,
        (ticks_per_second, start): (Option<f64>, u64),
        called: impl Fn(&str) -> Vec<u32>,
    ) -> Result<Self, TraceError> {
        let per_second = match ticks_per_second {
            None if request.needs_time() => {
                let problem =
                    "`select` or `phases` needs times, but the trace does not define its clock resolution";
                return Err(TraceError::refused(problem, ""));
            }
            known => known.unwrap_or(1.0),
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the conversion saturates, and negative times are zero"
        )]
        let ticks = |time_s: f64| (time_s * per_second).round() as u64;
        let since_start = |time_s: f64| start.saturating_add(ticks(time_s));
        let find = |name: &String| {
            let found = called(name);
            if !found.is_empty() {
                return Ok(found);
            }
            let problem = format!("the trace does not contain a communicator with name or number `{name}`");
            let help = "`otf2-print -G` or `otfprint` lists the communicators of a trace";
            Err(TraceError::refused(problem, help))
        };
        let select = request.select;
        let communicators = match select.communicators.as_slice() {
            [] => None,
            names => {
                let found = names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
                Some(found.into_iter().flatten().collect())
            }
        };
        let slices = match request.phases {
            Some(Phases::Seconds(width_s)) => Some((start, ticks(*width_s).max(1))),
            _ => None,
        };
        Ok(Self {
            window: (select.from_s.map_or(0, since_start), select.to_s.map_or(u64::MAX, since_start)),
            inside_regions: !select.regions.is_empty(),
            communicators,
            lengths: (select.min_bytes.unwrap_or(0), select.max_bytes.unwrap_or(u64::MAX)),
            slices,
            sizes: request.sizes,
        })
    }

    /// Whether messages of a length count.
    pub(crate) fn counts_length(&self, bytes: u64) -> bool {
        (self.lengths.0..=self.lengths.1).contains(&bytes)
    }

    /// Whether messages on a communicator count.
    pub(crate) fn counts_communicator(&self, id: u32) -> bool {
        self.communicators.as_ref().is_none_or(|ids| ids.contains(&id))
    }

    /// Class of an event at a time inside `regions`, if it counts.
    pub(crate) fn class(&self, regions: Inside, time: impl Fn() -> u64) -> Option<Class> {
        if self.inside_regions && !regions.selected {
            return None;
        }
        let mut phase = regions.phase;
        if self.slices.is_some() || self.window != (0, u64::MAX) {
            let time = time();
            if !(self.window.0..self.window.1).contains(&time) {
                return None;
            }
            phase = self.slice(time).unwrap_or(phase);
        }
        Some(Class(phase << LENGTH_BITS))
    }

    /// Class of a message on a communicator, if known, sent inside `regions`, if it counts.
    #[inline(never)]
    pub(crate) fn class_of_message(
        &self,
        communicator: Option<u32>,
        bytes: u64,
        regions: Inside,
        time: impl Fn() -> u64,
    ) -> Option<Class> {
        if !communicator.is_none_or(|id| self.counts_communicator(id)) || !self.counts_length(bytes) {
            return None;
        }
        let class = self.class(regions, time)?;
        Some(if self.sizes { class.of_length(bytes) } else { class })
    }

    /// Ticks per time slice, if phases are time slices.
    pub(crate) fn slice_ticks(&self) -> Option<u64> {
        self.slices.map(|(_, width)| width)
    }

    /// Slice of a time; the last slice is unbounded.
    fn slice(&self, time: u64) -> Option<u32> {
        let (start, width) = self.slices?;
        Some((time.saturating_sub(start) / width).min(MOST_SLICES - 1) as u32)
    }

    /// Rejects traces with too many time slices.
    pub(crate) fn check_length(&self, ticks: u64) -> Result<(), TraceError> {
        match self.slices {
            Some((_, width)) if ticks / width >= MOST_SLICES => {
                let slices = ticks / width + 1;
                let problem = format!("`phases` gives {slices} time slices, more than {MOST_SLICES}");
                Err(TraceError::refused(problem, "use longer slices"))
            }
            _ => Ok(()),
        }
    }

    /// Adds the selected ticks of an interval to their phases.
    fn add(&self, (from, to): (u64, u64), regions: Inside, ticks: &mut Vec<u64>) {
        let (mut from, to) = (from.max(self.window.0), to.min(self.window.1));
        if from >= to || self.inside_regions && !regions.selected {
            return;
        }
        while from < to {
            let (phase, end) = match (self.slices, self.slice(from)) {
                (Some((start, width)), Some(slice)) if u64::from(slice) < MOST_SLICES - 1 => {
                    (slice, start.saturating_add((u64::from(slice) + 1).saturating_mul(width)).min(to))
                }
                (_, slice) => (slice.unwrap_or(regions.phase), to),
            };
            if ticks.len() <= phase as usize {
                ticks.resize(phase as usize + 1, 0);
            }
            let ticks = &mut ticks[phase as usize];
            *ticks = ticks.saturating_add(end - from);
            from = end;
        }
    }
}

/// Position of a location for a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Inside {
    /// Inside a selected region.
    pub(crate) selected: bool,
    /// The phase of the innermost phase region; 0 outside of all.
    pub(crate) phase: u32,
}

/// Computing time of a location by phase.
#[derive(Debug)]
pub(crate) struct Ledger<'a> {
    selection: &'a Selection,
    ticks: Vec<u64>,
    until: Option<u64>,
    /// End of the first interval, and its position if it counts. Its start is the first event.
    opening: Option<(u64, Option<Inside>)>,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(selection: &'a Selection) -> Self {
        Self { selection, ticks: Vec::new(), until: None, opening: None }
    }

    /// Accounts for the time up to `to`: computing inside some regions, or communicating.
    pub(crate) fn pass(&mut self, to: u64, computing: Option<Inside>) {
        // Clocks that run backwards must not count time twice.
        let to = self.until.map_or(to, |until| until.max(to));
        match (self.until.replace(to), computing) {
            (None, _) => self.opening = Some((to, computing)),
            (Some(from), Some(regions)) => self.selection.add((from, to), regions, &mut self.ticks),
            (Some(_), None) => {}
        }
    }

    /// Ticks by phase, once the first event is known.
    pub(crate) fn close(mut self, first: u64) -> Vec<u64> {
        if let Some((to, Some(regions))) = self.opening {
            self.selection.add((first, to), regions, &mut self.ticks);
        }
        self.ticks
    }
}

/// Properties of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RegionKind {
    /// Whether it is communication rather than computation.
    pub(crate) communication: bool,
    /// Kind of MPI call.
    pub(crate) call: Call,
    /// Whether it is selected.
    pub(crate) selected: bool,
    /// Its phase; 0 if none.
    pub(crate) phase: u32,
}

/// Kinds of MPI calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Call {
    /// Any other region.
    #[default]
    Other,
    /// `MPI_Sendrecv` or a variant, which always sends.
    SendReceive,
    /// A collective operation.
    Collective,
}

impl RegionKind {
    /// Regions are communication if the trace `marked` them or if their name starts with `MPI_` or `PMPI_`,
    /// in lower or upper case (Fortran). This includes `MPI_Init`, `MPI_Finalize` and MPI I/O, in which
    /// processes do not compute. It excludes barriers between threads, which are part of the computation.
    /// Collective operations are recognised by their MPI names, or `marked` too.
    pub(crate) fn new(name: &str, marked: bool, collective: bool) -> Self {
        let name = name.to_ascii_lowercase();
        let mpi = name.strip_prefix('p').filter(|name| name.starts_with("mpi_")).unwrap_or(&name);
        let called = |names: &[&str]| names.iter().any(|name| mpi.starts_with(name));
        let collective = collective || mpi.strip_prefix("mpi_").is_some_and(is_collective);
        Self {
            communication: marked || collective || called(&["mpi_"]),
            call: match called(&["mpi_sendrecv", "mpi_isendrecv"]) {
                _ if collective => Call::Collective,
                true => Call::SendReceive,
                false => Call::Other,
            },
            ..Self::default()
        }
    }

    pub(crate) fn matters(self, everything_counts_alike: bool) -> Matters {
        match self {
            Self { call: Call::Other, selected: false, phase: 0, communication } => match communication {
                true if everything_counts_alike => Matters::AsCommunication,
                true => Matters::Otherwise,
                false => Matters::Never,
            },
            _ => Matters::Otherwise,
        }
    }
}

/// Effect of entering and leaving a region besides the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matters {
    Never,
    /// Only on the time in communication.
    AsCommunication,
    /// On more than that.
    Otherwise,
}

/// Whether an MPI function, without its prefix, is a collective operation.
fn is_collective(function: &str) -> bool {
    const NAMES: &str = "barrier bcast gather scatter allgather alltoall allreduce reduce scan exscan";
    let function = function.strip_prefix("neighbor_").unwrap_or(function);
    let called = |function: &str| NAMES.split(' ').any(|name| function.starts_with(name));
    // Nonblocking ones have a prefix; `reduce_local` does not communicate.
    let waits = called(function) && !function.starts_with("reduce_local");
    waits
        || function.strip_prefix('i').is_some_and(|function| called(function.trim_start_matches("neighbor_")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(select: &Select, phases: Option<&Phases>) -> Selection {
        let request = Request { select, phases, sizes: false };
        request.check().unwrap();
        Selection::new(&request, (Some(10.0), 100), |name| name.parse().into_iter().collect()).unwrap()
    }

    const OUTSIDE: Inside = Inside { selected: false, phase: 0 };

    #[test]
    fn windows_are_relative_to_the_start_of_the_trace() {
        let select = Select { from_s: Some(1.0), to_s: Some(2.0), ..Select::default() };
        let selection = selection(&select, None);
        let counts = |time| selection.class(OUTSIDE, || time).is_some();
        assert_eq!([109, 110, 119, 120].map(counts), [false, true, true, false]);
    }

    #[test]
    fn regions_communicators_and_lengths_are_selected() {
        let select = Select {
            regions: vec!["solve".into()],
            communicators: vec!["7".into()],
            min_bytes: Some(8),
            max_bytes: Some(9),
            ..Select::default()
        };
        let selection = selection(&select, None);
        assert_eq!(selection.class(OUTSIDE, || 0), None);
        assert_eq!(selection.class(Inside { selected: true, phase: 0 }, || 0), Some(Class::ALL));
        assert!(selection.counts_communicator(7) && !selection.counts_communicator(8));
        assert_eq!([7, 8, 9, 10].map(|bytes| selection.counts_length(bytes)), [false, true, true, false]);
    }

    #[test]
    fn slices_have_their_messages_and_their_share_of_the_time() {
        let select = Select::default();
        let phases = Phases::Seconds(2.0);
        let selection = selection(&select, Some(&phases));
        let phase = |time| selection.class(OUTSIDE, || time).unwrap().phase();
        assert_eq!([100, 119, 120, 141].map(phase), [0, 0, 1, 2]);
        let mut ledger = Ledger::new(&selection);
        ledger.pass(110, Some(OUTSIDE));
        ledger.pass(130, None);
        ledger.pass(165, Some(OUTSIDE));
        assert_eq!(ledger.close(105), [5, 10, 20, 5]);
    }

    #[test]
    fn phases_are_the_innermost_region() {
        let select = Select::default();
        let phases = Phases::Regions(vec!["a".into(), "b".into()]);
        let selection = selection(&select, Some(&phases));
        assert_eq!(selection.class(Inside { selected: false, phase: 2 }, || 0).unwrap().phase(), 2);
    }

    #[test]
    fn lengths_are_classified_by_their_bits() {
        let bits = |bytes| Class::ALL.of_length(bytes).length_bits();
        assert_eq!([0, 1, 2, 3, 4, 1024, u64::MAX].map(bits), [0, 1, 2, 2, 3, 11, 64]);
        assert_eq!(Class(5 << LENGTH_BITS).of_length(7).phase(), 5);
    }

    #[test]
    fn invalid_requests_are_rejected() {
        let refused = |select: &Select, phases: Option<&Phases>| {
            Request { select, phases, sizes: false }.check().unwrap_err().to_string()
        };
        let none = Select::default();
        assert!(refused(&Select { from_s: Some(-1.0), ..none.clone() }, None).contains("-1"));
        let window = Select { from_s: Some(2.0), to_s: Some(2.0), ..none.clone() };
        assert!(refused(&window, None).contains("empty time window"));
        let lengths = Select { min_bytes: Some(2), max_bytes: Some(1), ..none.clone() };
        assert!(refused(&lengths, None).contains("empty range of lengths"));
        assert!(refused(&none, Some(&Phases::Seconds(0.0))).contains("0 s"));
        assert!(refused(&none, Some(&Phases::Regions(Vec::new()))).contains("does not name regions"));
        let twice = Phases::Regions(vec!["a".into(), "a".into()]);
        assert!(refused(&none, Some(&twice)).contains("more than once"));
    }

    #[test]
    fn every_named_region_must_exist() {
        let select = Select { regions: vec!["solve".into()], ..Select::default() };
        let request = Request { select: &select, phases: None, sizes: false };
        let mut marks = Marks::new(&request);
        assert!(!marks.mark("main", RegionKind::default()).selected);
        assert!(marks.check().unwrap_err().to_string().contains("solve"));
        assert!(marks.mark("solve", RegionKind::default()).selected);
        assert!(marks.check().is_ok());
    }
}
