//! What of a trace counts, and in which class.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::TraceError;

/// What of a trace counts. Conditions that are not given hold always; all must hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Select {
    /// Only from so many seconds after the first event of the trace.
    pub from_s: Option<f64>,
    /// Only before so many seconds after the first event of the trace.
    pub to_s: Option<f64>,
    /// Only inside regions (functions) of these names, and all that they call.
    pub regions: Vec<String>,
    /// Only through communicators of these names, or with these numbers.
    pub communicators: Vec<String>,
    /// Only messages of at least so many bytes.
    pub min_bytes: Option<u64>,
    /// Only messages of at most so many bytes.
    pub max_bytes: Option<u64>,
}

/// What the phases of a program are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phases {
    /// Regions (functions) of these names with all that they call; the innermost counts. What is outside of all is
    /// phase 0, the first region is phase 1.
    Regions(Vec<String>),
    /// Slices of so many seconds, from the first event of the trace on.
    Seconds(f64),
}

/// More slices of time than anybody looks at.
const MOST_SLICES: u64 = 1 << 16;

/// Bits of a class that hold the magnitude of the length of a message.
const LENGTH_BITS: u32 = 7;

/// The class of a message: its phase and, if lengths are told apart, how many bits its length has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Class(u32);

impl Class {
    /// The class of everything that is not told apart.
    pub(crate) const ALL: Self = Self(0);

    /// The same class for a message of some length; 0 bits for an empty one.
    pub(crate) fn of_length(self, bytes: u64) -> Self {
        Self(self.phase() << LENGTH_BITS | (u64::BITS - bytes.leading_zeros()))
    }

    /// Number of the phase.
    pub(crate) fn phase(self) -> u32 {
        self.0 >> LENGTH_BITS
    }

    /// Bits in the length of a message.
    pub(crate) fn length_bits(self) -> u32 {
        self.0 & ((1 << LENGTH_BITS) - 1)
    }

    /// The class as a number.
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// What a user asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) select: &'a Select,
    pub(crate) phases: Option<&'a Phases>,
    pub(crate) sizes: bool,
}

impl Request<'_> {
    /// Whether everything counts and nothing is told apart.
    pub(crate) fn is_plain(&self) -> bool {
        *self.select == Select::default() && self.phases.is_none() && !self.sizes
    }

    /// Whether the times of events matter.
    pub(crate) fn needs_time(&self) -> bool {
        self.select.from_s.is_some()
            || self.select.to_s.is_some()
            || matches!(self.phases, Some(Phases::Seconds(_)))
    }

    /// Checks what does not depend on the trace.
    pub(crate) fn check(&self) -> Result<(), TraceError> {
        let Select { from_s, to_s, min_bytes, max_bytes, .. } = self.select;
        let negative = |time: &f64| !time.is_finite() || *time < 0.0;
        if let Some(time_s) = [from_s, to_s].into_iter().flatten().find(|time| negative(time)) {
            let problem = format!("`select` names {time_s} s, which is no time of the trace");
            return Err(TraceError::refused(
                problem,
                "`from_s` and `to_s` are seconds after the first event",
            ));
        }
        if let (Some(from_s), Some(to_s)) = (from_s, to_s)
            && from_s >= to_s
        {
            let problem = format!("`select` leaves no time: from {from_s} s to {to_s} s");
            return Err(TraceError::refused(problem, "`from_s` must be less than `to_s`"));
        }
        if let (Some(min_bytes), Some(max_bytes)) = (min_bytes, max_bytes)
            && min_bytes > max_bytes
        {
            let problem = format!("`select` leaves no length: from {min_bytes} to {max_bytes} bytes");
            return Err(TraceError::refused(problem, "`min_bytes` must not exceed `max_bytes`"));
        }
        match self.phases {
            Some(Phases::Seconds(width_s)) if !(width_s.is_finite() && *width_s > 0.0) => {
                let help = "give a positive number of seconds, such as `phases = { seconds = 0.5 }`";
                Err(TraceError::refused(format!("`phases` asks for slices of {width_s} s"), help))
            }
            Some(Phases::Regions(names)) if names.is_empty() => {
                let help =
                    "give the names of functions, such as `phases = { regions = [\"init\", \"solve\"] }`";
                Err(TraceError::refused("`phases` names no region", help))
            }
            Some(Phases::Regions(names)) if names.iter().collect::<BTreeSet<_>>().len() < names.len() => {
                Err(TraceError::refused("`phases` names a region twice", ""))
            }
            _ => Ok(()),
        }
    }
}

/// What is special about the regions with some names.
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

    /// Marks a region by its name.
    pub(crate) fn mark(&mut self, name: &str, kind: RegionKind) -> RegionKind {
        self.missing.remove(name);
        RegionKind {
            selected: self.selected.contains(name),
            phase: self.phases.get(name).copied().unwrap_or(0),
            ..kind
        }
    }

    /// Checks that every region was there that is asked for.
    pub(crate) fn check(&self) -> Result<(), TraceError> {
        match self.missing.first() {
            Some(name) => {
                let help = "`otf2-print -G` or `otfprint` lists the regions of a trace; names are matched as a whole";
                Err(TraceError::refused(format!("no region of the trace is called `{name}`"), help))
            }
            None => Ok(()),
        }
    }
}

/// What of a trace counts, in its own terms.
#[derive(Debug)]
pub(crate) struct Selection {
    /// First and first not to count of the ticks.
    window: (u64, u64),
    inside_regions: bool,
    communicators: Option<BTreeSet<u32>>,
    lengths: (u64, u64),
    /// First tick and ticks of the slices.
    slices: Option<(u64, u64)>,
    pub(crate) sizes: bool,
}

impl Selection {
    /// Resolves a request for a trace that begins at tick `start`; `called` has the ids of the communicators of a name.
    pub(crate) fn new(
        request: &Request<'_>,
        (ticks_per_second, start): (Option<f64>, u64),
        called: impl Fn(&str) -> Vec<u32>,
    ) -> Result<Self, TraceError> {
        let per_second = match ticks_per_second {
            None if request.needs_time() => {
                let problem = "`select` or `phases` asks for times, but the trace does not say how long a tick of its clock is";
                return Err(TraceError::refused(problem, ""));
            }
            known => known.unwrap_or(1.0),
        };
        let since_start = |time_s: f64| start.saturating_add((time_s * per_second).round() as u64);
        let find = |name: &String| {
            let found = called(name);
            if !found.is_empty() {
                return Ok(found);
            }
            let problem = format!("no communicator of the trace is called `{name}` or has this number");
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
            Some(Phases::Seconds(width_s)) => Some((start, ((width_s * per_second).round() as u64).max(1))),
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

    /// Whether a message of some length counts.
    pub(crate) fn counts_length(&self, bytes: u64) -> bool {
        (self.lengths.0..=self.lengths.1).contains(&bytes)
    }

    /// Whether what goes through a communicator counts.
    pub(crate) fn counts_communicator(&self, id: u32) -> bool {
        self.communicators.as_ref().is_none_or(|ids| ids.contains(&id))
    }

    /// Class of what happens at some time inside `regions`, if it counts.
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

    /// Class of a message of some length through a communicator, if that is known, which is sent inside `regions`.
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

    /// Ticks of a slice of time, if phases are such.
    pub(crate) fn slice_ticks(&self) -> Option<u64> {
        self.slices.map(|(_, width)| width)
    }

    /// Slice of a time; the last one holds all that follows.
    fn slice(&self, time: u64) -> Option<u32> {
        let (start, width) = self.slices?;
        Some((time.saturating_sub(start) / width).min(MOST_SLICES - 1) as u32)
    }

    /// Whether two times are in so many slices that nobody asked for them.
    pub(crate) fn check_length(&self, ticks: u64) -> Result<(), TraceError> {
        match self.slices {
            Some((_, width)) if ticks / width >= MOST_SLICES => {
                let slices = ticks / width + 1;
                let problem =
                    format!("`phases` asks for {slices} slices of time, and there can be {MOST_SLICES}");
                Err(TraceError::refused(problem, "give longer slices"))
            }
            _ => Ok(()),
        }
    }

    /// Adds the ticks of an interval that count to those of its phases.
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

/// Where a location is, as far as a selection asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Inside {
    /// In one of the regions that are selected.
    pub(crate) selected: bool,
    /// The phase whose region is the innermost; 0 if it is in none.
    pub(crate) phase: u32,
}

/// The time that a location computes, by phase.
#[derive(Debug)]
pub(crate) struct Ledger<'a> {
    selection: &'a Selection,
    ticks: Vec<u64>,
    until: Option<u64>,
    /// The end of the first interval, and where it counts, if it does. Its beginning is the first event.
    opening: Option<(u64, Option<Inside>)>,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(selection: &'a Selection) -> Self {
        Self { selection, ticks: Vec::new(), until: None, opening: None }
    }

    /// The time up to `to` was spent computing inside some regions, or else communicating.
    pub(crate) fn pass(&mut self, to: u64, computing: Option<Inside>) {
        // A clock that goes back and forth passes no time twice.
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

/// What matters about a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RegionKind {
    /// Time in it is not spent computing.
    pub(crate) communication: bool,
    /// The kind of call that it is.
    pub(crate) call: Call,
    /// What happens inside counts, if not everything does.
    pub(crate) selected: bool,
    /// Number of the phase it stands for; 0 if it stands for none.
    pub(crate) phase: u32,
}

/// The kinds of calls that are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Call {
    /// Any other.
    #[default]
    Other,
    /// `MPI_Sendrecv` or one of its kin, which always send.
    SendReceive,
    /// A collective operation.
    Collective,
}

impl RegionKind {
    /// Communication is every region that the trace `marked` as such, and every region whose name begins with `MPI_`
    /// or `PMPI_` in small or capital letters (Fortran). `MPI_Init`, `MPI_Finalize` and files accessed through MPI
    /// are among them: no process computes there. Barriers between threads are not: they are part of how the
    /// process computes. Collective operations are known by their names in MPI, or `marked` too.
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

/// Whether entering and leaving a region changes anything but the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matters {
    Never,
    /// Only the time in communication.
    AsCommunication,
    /// More than that.
    Otherwise,
}

/// Whether a function of MPI, without its prefix, is a collective operation.
fn is_collective(function: &str) -> bool {
    const NAMES: &str = "barrier bcast gather scatter allgather alltoall allreduce reduce scan exscan";
    let function = function.strip_prefix("neighbor_").unwrap_or(function);
    let called = |function: &str| NAMES.split(' ').any(|name| function.starts_with(name));
    // Those that do not block begin with another letter, `reduce_local` sends nothing.
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
    fn a_window_counts_from_the_start_of_the_trace() {
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
    fn slices_hold_their_messages_and_their_share_of_the_time() {
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
    fn lengths_are_told_apart_by_their_bits() {
        let bits = |bytes| Class::ALL.of_length(bytes).length_bits();
        assert_eq!([0, 1, 2, 3, 4, 1024, u64::MAX].map(bits), [0, 1, 2, 2, 3, 11, 64]);
        assert_eq!(Class(5 << LENGTH_BITS).of_length(7).phase(), 5);
    }

    #[test]
    fn requests_that_cannot_be_met_are_refused() {
        let refused = |select: &Select, phases: Option<&Phases>| {
            Request { select, phases, sizes: false }.check().unwrap_err().to_string()
        };
        let none = Select::default();
        assert!(refused(&Select { from_s: Some(-1.0), ..none.clone() }, None).contains("-1"));
        let window = Select { from_s: Some(2.0), to_s: Some(2.0), ..none.clone() };
        assert!(refused(&window, None).contains("no time"));
        let lengths = Select { min_bytes: Some(2), max_bytes: Some(1), ..none.clone() };
        assert!(refused(&lengths, None).contains("no length"));
        assert!(refused(&none, Some(&Phases::Seconds(0.0))).contains("0 s"));
        assert!(refused(&none, Some(&Phases::Regions(Vec::new()))).contains("no region"));
        let twice = Phases::Regions(vec!["a".into(), "a".into()]);
        assert!(refused(&none, Some(&twice)).contains("twice"));
    }

    #[test]
    fn every_region_that_is_named_must_be_there() {
        let select = Select { regions: vec!["solve".into()], ..Select::default() };
        let request = Request { select: &select, phases: None, sizes: false };
        let mut marks = Marks::new(&request);
        assert!(!marks.mark("main", RegionKind::default()).selected);
        assert!(marks.check().unwrap_err().to_string().contains("solve"));
        assert!(marks.mark("solve", RegionKind::default()).selected);
        assert!(marks.check().is_ok());
    }
}
