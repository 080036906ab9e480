//! The regions that a location is in, and its time in communication.

use std::collections::HashMap;

use crate::numbering::Numbering;
use crate::selection::{Call, Inside, Ledger, Matters, RegionKind, Selection};

/// Time that a location spent in its regions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Activity {
    /// Ticks in communication.
    pub(crate) communication: u64,
    /// Ticks of that in collective operations.
    pub(crate) collective: u64,
    /// Ticks of computation by phase; only with a selection or phases.
    pub(crate) compute: Option<Vec<u64>>,
    /// Calls of `MPI_Sendrecv` and its variants without a send event.
    pub(crate) silent_send_receives: u64,
}

impl Activity {
    /// Ticks of computation by phase of a location with this first and last event.
    pub(crate) fn computing(&self, (first, last): (u64, u64)) -> Vec<u64> {
        let all = || vec![last.saturating_sub(first).saturating_sub(self.communication)];
        self.compute.clone().unwrap_or_else(all)
    }
}

/// Open regions of one kind, and the time in any of them.
#[derive(Debug, Default)]
pub(crate) struct Nested {
    depth: u64,
    /// Time at which the outermost was entered.
    since: u64,
    /// Ticks in closed ones.
    ticks: u64,
}

impl Nested {
    /// Enters a region or leaves the innermost one. `time` is called only if needed.
    #[expect(clippy::inline_always, reason = "it is a part of the loop over all events")]
    #[inline(always)]
    pub(crate) fn turn(&mut self, entered: bool, time: impl Fn() -> u64) {
        if entered {
            if self.depth == 0 {
                self.since = time();
            }
            self.depth += 1;
        } else {
            if self.depth == 1 {
                self.ticks = self.until(time());
            }
            self.depth -= 1;
        }
    }

    /// Time at which the outermost was entered that was left last, if none is open.
    pub(crate) fn closed_since(&self) -> Option<u64> {
        (self.depth == 0).then_some(self.since)
    }

    /// Ticks until a time.
    pub(crate) fn until(&self, time: u64) -> u64 {
        // Clock corrections may wrap around.
        let open = if self.depth > 0 { time.saturating_sub(self.since) } else { 0 };
        self.ticks.saturating_add(open)
    }
}

/// A region of one location.
#[derive(Debug)]
struct Region {
    /// Number of times it is on the stack.
    open: u64,
    kind: RegionKind,
    matters: Matters,
}

/// The open regions of a location.
///
/// Leaving a region also closes regions that were entered inside it and never left. Leaving a region that is
/// not open has no effect. Regions inside communication are not counted twice.
#[derive(Debug)]
pub(crate) struct CallStack<'a> {
    kinds: &'a HashMap<u32, RegionKind>,
    /// Indices of regions in `regions`.
    places: Numbering<u32>,
    regions: Vec<Region>,
    /// Indices of the open regions.
    stack: Vec<u32>,
    /// Number of sends before each open `MPI_Sendrecv` or variant.
    sends_before: Vec<u64>,
    /// Open communication regions.
    communicating: Nested,
    /// Open collective operations.
    collecting: Nested,
    /// Open selected regions and phases, and the time per class; only with a selection or phases.
    selected: Nested,
    phases: Vec<u32>,
    ledger: Option<Ledger<'a>>,
    sends: u64,
    silent_send_receives: u64,
}

impl<'a> CallStack<'a> {
    pub(crate) fn new(kinds: &'a HashMap<u32, RegionKind>, selection: Option<&'a Selection>) -> Self {
        Self {
            kinds,
            places: Numbering::new(),
            regions: Vec::new(),
            stack: Vec::new(),
            sends_before: Vec::new(),
            communicating: Nested::default(),
            collecting: Nested::default(),
            selected: Nested::default(),
            phases: Vec::new(),
            ledger: selection.map(Ledger::new),
            sends: 0,
            silent_send_receives: 0,
        }
    }

    /// Index of a region, for fast calls of `enter_at` and `leave_at`.
    #[expect(clippy::inline_always, reason = "it is a part of the loop over all events")]
    #[inline(always)]
    pub(crate) fn place(&mut self, id: u32) -> u32 {
        let place = self.places.of(id);
        if place as usize == self.regions.len() {
            self.add_region(id);
        }
        place
    }

    #[cold]
    fn add_region(&mut self, id: u32) {
        let kind = self.kinds.get(&id).copied().unwrap_or_default();
        self.regions.push(Region { open: 0, kind, matters: kind.matters(self.ledger.is_none()) });
    }

    pub(crate) fn enter(&mut self, id: u32, time: u64) {
        let place = self.place(id);
        self.enter_at(place, || time);
    }

    pub(crate) fn leave(&mut self, id: u32, time: u64) {
        let place = self.place(id);
        self.leave_at(place, || time);
    }

    /// Enters a region by the index that [`CallStack::place`] returned. `time` is called only if needed.
    #[expect(clippy::inline_always, reason = "it is a part of the loop over all events")]
    #[inline(always)]
    pub(crate) fn enter_at(&mut self, place: u32, time: impl Fn() -> u64) {
        self.regions[place as usize].open += 1;
        self.pass_border(place, true, time);
        self.stack.push(place);
    }

    /// Leaves a region by its index. `time` is called only if needed.
    #[expect(clippy::inline_always, reason = "it is a part of the loop over all events")]
    #[inline(always)]
    pub(crate) fn leave_at(&mut self, place: u32, time: impl Fn() -> u64) {
        match self.stack.pop_if(|innermost| *innermost == place) {
            Some(place) => self.close(place, time),
            None => self.leave_around(place, time),
        }
    }

    /// Leaves a region that was not entered last; no effect if it is not open.
    #[cold]
    fn leave_around(&mut self, place: u32, time: impl Fn() -> u64) {
        if self.regions[place as usize].open == 0 {
            return;
        }
        while let Some(innermost) = self.stack.pop() {
            self.close(innermost, &time);
            if innermost == place {
                break;
            }
        }
    }

    /// Leaves the region entered last.
    pub(crate) fn leave_innermost(&mut self, time: u64) {
        if let Some(place) = self.stack.pop() {
            self.close(place, || time);
        }
    }

    /// Counts a send event.
    #[inline]
    pub(crate) fn send(&mut self) {
        self.sends += 1;
    }

    #[expect(clippy::inline_always, reason = "it is a part of the loop over all events")]
    #[inline(always)]
    fn close(&mut self, place: u32, time: impl Fn() -> u64) {
        self.regions[place as usize].open -= 1;
        self.pass_border(place, false, time);
    }

    /// Enters or leaves the region of an index.
    #[expect(clippy::inline_always, reason = "it is a part of the loop over all events")]
    #[inline(always)]
    fn pass_border(&mut self, place: u32, entered: bool, time: impl Fn() -> u64) {
        let region = &self.regions[place as usize];
        match region.matters {
            Matters::Never => {}
            Matters::AsCommunication => self.communicating.turn(entered, time),
            Matters::Otherwise => {
                let kind = region.kind;
                self.turn(kind, entered, time());
            }
        }
    }

    /// Enters or leaves a region that also affects times or the selection.
    fn turn(&mut self, kind: RegionKind, entered: bool, time: u64) {
        self.pass(time);
        if kind.communication {
            self.communicating.turn(entered, || time);
        }
        match kind.call {
            Call::Collective => self.collecting.turn(entered, || time),
            Call::SendReceive if entered => self.sends_before.push(self.sends),
            Call::SendReceive => {
                let is_silent = self.sends_before.pop() == Some(self.sends);
                self.silent_send_receives += u64::from(is_silent);
            }
            Call::Other => {}
        }
        if kind.selected {
            self.selected.turn(entered, || time);
        }
        match (kind.phase, entered) {
            (0, _) => {}
            (phase, true) => self.phases.push(phase),
            (_, false) => drop(self.phases.pop()),
        }
    }

    /// Accounts for the time up to now.
    fn pass(&mut self, time: u64) {
        let computing = (self.communicating.depth == 0).then(|| self.inside());
        if let Some(ledger) = &mut self.ledger {
            ledger.pass(time, computing);
        }
    }

    /// Position of the location for a selection.
    pub(crate) fn inside(&self) -> Inside {
        Inside { selected: self.selected.depth > 0, phase: self.phases.last().copied().unwrap_or(0) }
    }

    /// Closes the open regions at the end of the trace, for a location with this first and last event.
    pub(crate) fn finish(mut self, (first, last): (u64, u64)) -> Activity {
        while let Some(place) = self.stack.pop() {
            self.close(place, || last);
        }
        self.pass(last);
        Activity {
            communication: self.communicating.ticks,
            collective: self.collecting.ticks,
            compute: self.ledger.map(|ledger| ledger.close(first)),
            silent_send_receives: self.silent_send_receives,
        }
    }
}

/// The open regions of a location, outermost first, each with a value.
///
/// As in [`CallStack`](CallStack): leaving a region also closes regions that were entered inside it and
/// never left, and leaving a region that is not open has no effect.
#[derive(Debug)]
pub(super) struct OpenRegions<T> {
    stack: Vec<(u32, T)>,
    /// Number of times each index is on the stack.
    times: Vec<u32>,
}

impl<T> OpenRegions<T> {
    pub(super) fn new() -> Self {
        Self { stack: Vec::new(), times: Vec::new() }
    }

    /// Enters a region.
    pub(super) fn enter(&mut self, place: u32, known: T) {
        if self.times.len() <= place as usize {
            self.times.resize(place as usize + 1, 0);
        }
        self.times[place as usize] += 1;
        self.stack.push((place, known));
    }

    /// Leaves a region; calls `closed` with the value of every region that this closes, innermost first.
    pub(super) fn leave(&mut self, place: u32, mut closed: impl FnMut(T)) {
        if self.times.get(place as usize).is_none_or(|times| *times == 0) {
            return;
        }
        while let Some((innermost, known)) = self.stack.pop() {
            self.times[innermost as usize] -= 1;
            closed(known);
            if innermost == place {
                break;
            }
        }
    }

    /// Value of the region entered last.
    pub(super) fn innermost(&self) -> Option<&T> {
        self.stack.last().map(|(_, known)| known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAIN: u32 = 1;
    const WAIT: u32 = 2;
    /// Uses the same cache slot as [`WAIT`].
    const ALLREDUCE: u32 = 258;
    const SENDRECV: u32 = 4;

    fn kinds() -> HashMap<u32, RegionKind> {
        let named = |name| RegionKind::new(name, false, false);
        [(MAIN, "main"), (WAIT, "MPI_Wait"), (ALLREDUCE, "mpi_allreduce_"), (SENDRECV, "MPI_Sendrecv")]
            .map(|(id, name)| (id, named(name)))
            .into()
    }

    /// Positive: enter; negative: leave.
    fn activity(calls: &[(i64, u64)], end: u64) -> Activity {
        let kinds = kinds();
        let mut stack = CallStack::new(&kinds, None);
        for &(region, time) in calls {
            match u32::try_from(region) {
                Ok(region) => stack.enter(region, time),
                Err(_) => stack.leave(region.unsigned_abs() as u32, time),
            }
        }
        stack.finish((0, end))
    }

    fn communication(calls: &[(i64, u64)]) -> u64 {
        activity(calls, 100).communication
    }

    #[test]
    fn communication_is_recognised_by_name_or_mark() {
        let communication = |name, marked| RegionKind::new(name, marked, false).communication;
        for name in ["MPI_Init", "MPI_Finalize", "mpi_send_", "PMPI_Wait", "pmpi_wait"] {
            assert!(communication(name, false), "{name}");
        }
        assert!(communication("x", true));
        assert!(
            !communication("main", false)
                && !communication("my_mpi_send", false)
                && !communication("p", false)
        );
    }

    #[test]
    fn sendrecv_is_recognised_by_name() {
        let send_receive = |name| RegionKind::new(name, false, false).call == Call::SendReceive;
        assert!(
            ["MPI_Sendrecv", "mpi_sendrecv_", "PMPI_Sendrecv_replace", "MPI_Isendrecv"].map(send_receive)
                == [true; 4]
        );
        assert!(!send_receive("MPI_Send"));
    }

    #[test]
    fn collective_operations_are_recognised_by_name_and_timed() {
        let collective = |name| RegionKind::new(name, false, false).call == Call::Collective;
        for name in ["MPI_Barrier", "mpi_allreduce_", "PMPI_Ialltoallv", "MPI_Reduce_scatter_block"] {
            assert!(collective(name), "{name}");
        }
        assert!(collective("MPI_Neighbor_allgather") && collective("MPI_Ineighbor_alltoallw"));
        for name in ["MPI_Init", "MPI_Isend", "MPI_Reduce_local", "gather", "MPI_Iprobe", "MPI_Wait"] {
            assert!(!collective(name), "{name}");
        }
        let (all, wait) = (i64::from(ALLREDUCE), i64::from(WAIT));
        let calls = [(all, 10), (all, 12), (-all, 14), (-all, 20), (wait, 30), (-wait, 40), (all, 95)];
        assert_eq!(activity(&calls, 100).collective, 15);
        assert_eq!(activity(&calls, 100).communication, 25);
    }

    #[test]
    fn nested_communication_counts_once() {
        let (main, wait, all) = (i64::from(MAIN), i64::from(WAIT), i64::from(ALLREDUCE));
        assert_eq!(communication(&[(main, 0), (wait, 10), (-wait, 15), (-main, 20)]), 5);
        assert_eq!(
            communication(&[(all, 10), (wait, 12), (-wait, 14), (main, 15), (-main, 16), (-all, 20)]),
            10
        );
        assert_eq!(communication(&[(wait, 10), (wait, 12), (-wait, 14), (-wait, 20)]), 10);
    }

    #[test]
    fn unbalanced_regions_are_tolerated() {
        let (main, wait) = (i64::from(MAIN), i64::from(WAIT));
        assert_eq!(communication(&[(-wait, 10), (main, 20)]), 0);
        assert_eq!(communication(&[(wait, 90)]), 10);
        // The call that is never left ends with the enclosing function.
        assert_eq!(communication(&[(main, 0), (wait, 10), (-main, 30), (main, 40), (-main, 50)]), 20);
        // A region of which only the innermost end is recorded.
        let kinds = kinds();
        let mut stack = CallStack::new(&kinds, None);
        stack.leave_innermost(5);
        stack.enter(MAIN, 10);
        stack.enter(WAIT, 20);
        stack.leave_innermost(50);
        assert_eq!(stack.finish((0, 90)).communication, 30);
        // A clock that runs backwards gives neither negative nor excessive times.
        assert_eq!(communication(&[(wait, 50), (-wait, 40)]), 0);
        let round = [(wait, 0), (-wait, u64::MAX), (wait, 1), (-wait, 3)];
        assert_eq!(communication(&round), u64::MAX);
    }

    #[test]
    fn send_receives_without_a_send_are_counted() {
        let kinds = kinds();
        let mut stack = CallStack::new(&kinds, None);
        stack.enter(SENDRECV, 1);
        stack.leave(SENDRECV, 2);
        stack.enter(SENDRECV, 3);
        stack.send();
        stack.leave(SENDRECV, 4);
        stack.enter(SENDRECV, 5);
        assert_eq!(stack.finish((0, 6)).silent_send_receives, 2);
    }

    proptest! {
        #[test]
        fn communication_is_never_longer_than_the_trace(calls in prop::collection::vec((-6i64..6, 0..9u64), 0..60)) {
            let mut time = 0;
            let calls: Vec<_> = calls.into_iter().map(|(region, step)| { time += step; (region, time) }).collect();
            prop_assert!(activity(&calls, time).communication <= time);
        }
    }

    #[test]
    fn leaving_closes_what_is_inside_and_nothing_else() {
        let mut open = OpenRegions::new();
        for (place, name) in [(3, "a"), (5, "b"), (3, "c"), (4, "d")] {
            open.enter(place, name);
        }
        let mut closed = Vec::new();
        for place in [9, 5, 5, 3] {
            open.leave(place, |name| closed.push(name));
        }
        assert_eq!(closed, ["d", "c", "b", "a"]);
        assert_eq!(open.innermost(), None);
    }

    /// Takes hours if it searches the stack.
    #[test]
    fn leaving_a_closed_region_does_not_search_the_stack() {
        let mut open = OpenRegions::new();
        (0..300_000).for_each(|_| open.enter(1, ()));
        (0..300_000).for_each(|_| open.leave(2, |()| ()));
        assert_eq!(open.stack.len(), 300_000);
    }
}
