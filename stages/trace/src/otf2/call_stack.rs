//! Which regions a location is in, and how long it communicates.

use std::collections::HashMap;

use super::numbering::Numbering;

use otf2_sys::{
    OTF2_PARADIGM_GASPI, OTF2_PARADIGM_MPI, OTF2_PARADIGM_SHMEM, OTF2_PARADIGM_UPC,
    OTF2_REGION_ROLE_COLL_ALL2ALL, OTF2_REGION_ROLE_COLL_ALL2ONE, OTF2_REGION_ROLE_COLL_ONE2ALL,
    OTF2_REGION_ROLE_COLL_OTHER, OTF2_REGION_ROLE_POINT2POINT, OTF2_REGION_ROLE_RMA,
};

/// What matters about a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RegionKind {
    /// Time in it is not spent computing.
    pub(super) communication: bool,
    /// It is `MPI_Sendrecv` or one of its kin, which always send.
    pub(super) send_receive: bool,
}

impl RegionKind {
    /// Communication is every region of a library that passes messages or shares memory between processes (MPI,
    /// GASPI, UPC, SHMEM), by its paradigm; every region whose role is to send, to take part in a collective
    /// operation or to access remote memory; and, since EZTrace gives neither paradigm nor role, every region
    /// whose name begins with `MPI_` or `PMPI_` in small or capital letters (Fortran). `MPI_Init`, `MPI_Finalize`
    /// and files accessed through MPI are among them: no process computes there. Barriers between threads are
    /// not: they are part of how the process computes.
    pub(super) fn new(name: &str, paradigm: u8, role: u8) -> Self {
        let name = name.to_ascii_lowercase();
        let mpi = name.strip_prefix('p').filter(|name| name.starts_with("mpi_")).unwrap_or(&name);
        let called = |names: &[&str]| names.iter().any(|name| mpi.starts_with(name));
        let library = [OTF2_PARADIGM_MPI, OTF2_PARADIGM_GASPI, OTF2_PARADIGM_UPC, OTF2_PARADIGM_SHMEM];
        let roles = [
            OTF2_REGION_ROLE_COLL_ONE2ALL,
            OTF2_REGION_ROLE_COLL_ALL2ONE,
            OTF2_REGION_ROLE_COLL_ALL2ALL,
            OTF2_REGION_ROLE_COLL_OTHER,
            OTF2_REGION_ROLE_POINT2POINT,
            OTF2_REGION_ROLE_RMA,
        ];
        Self {
            communication: library.contains(&paradigm) || roles.contains(&role) || called(&["mpi_"]),
            send_receive: called(&["mpi_sendrecv", "mpi_isendrecv"]),
        }
    }
}

/// What a location did in its regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Activity {
    /// Ticks in communication.
    pub(super) communication: u64,
    /// Calls of `MPI_Sendrecv` and its kin in which nothing was sent.
    pub(super) silent_send_receives: u64,
}

/// A region as one location knows it.
#[derive(Debug)]
struct Region {
    kind: RegionKind,
    /// How many times it is on the stack.
    open: u64,
}

/// A region on the stack.
#[derive(Debug)]
struct Entry {
    region: u32,
    /// Sends before it was entered.
    sends: u64,
}

/// The regions a location is in.
///
/// Leaving a region closes those entered inside it and never left; leaving one that is not open changes
/// nothing. Regions inside communication are not counted twice.
#[derive(Debug)]
pub(super) struct CallStack<'a> {
    kinds: &'a HashMap<u32, RegionKind>,
    /// Places of regions in `regions`.
    places: Numbering<u32>,
    regions: Vec<Region>,
    stack: Vec<Entry>,
    /// Communication regions on the stack, and when the first of them was entered.
    communicating: u64,
    since: u64,
    sends: u64,
    activity: Activity,
}

impl<'a> CallStack<'a> {
    pub(super) fn new(kinds: &'a HashMap<u32, RegionKind>) -> Self {
        Self {
            kinds,
            places: Numbering::new(),
            regions: Vec::new(),
            stack: Vec::new(),
            communicating: 0,
            since: 0,
            sends: 0,
            activity: Activity::default(),
        }
    }

    /// Place of a region, by which it is entered and left faster.
    #[inline]
    pub(super) fn place(&mut self, id: u32) -> u32 {
        let place = self.places.of(id);
        if place as usize == self.regions.len() {
            let kind = self.kinds.get(&id).copied().unwrap_or_default();
            self.regions.push(Region { kind, open: 0 });
        }
        place
    }

    pub(super) fn enter(&mut self, id: u32, time: u64) {
        let place = self.place(id);
        self.enter_at(place, || time);
    }

    pub(super) fn leave(&mut self, id: u32, time: u64) {
        let place = self.place(id);
        self.leave_at(place, || time);
    }

    /// Enters the region of a place that [`CallStack::place`] gave. The time is asked for only when it matters.
    #[inline]
    pub(super) fn enter_at(&mut self, place: u32, time: impl Fn() -> u64) {
        let region = &mut self.regions[place as usize];
        region.open += 1;
        if region.kind.communication {
            if self.communicating == 0 {
                self.since = time();
            }
            self.communicating += 1;
        }
        self.stack.push(Entry { region: place, sends: self.sends });
    }

    /// Leaves the region of a place as [`CallStack::enter_at`] enters it.
    #[inline]
    pub(super) fn leave_at(&mut self, place: u32, time: impl Fn() -> u64) {
        if self.regions[place as usize].open == 0 {
            return;
        }
        while let Some(entry) = self.stack.pop() {
            self.close(&entry, &time);
            if entry.region == place {
                break;
            }
        }
    }

    /// A message is sent from where the location is.
    pub(super) fn send(&mut self) {
        self.sends += 1;
    }

    #[inline]
    fn close(&mut self, entry: &Entry, time: impl Fn() -> u64) {
        let region = &mut self.regions[entry.region as usize];
        region.open -= 1;
        if region.kind.send_receive && entry.sends == self.sends {
            self.activity.silent_send_receives += 1;
        }
        if region.kind.communication {
            self.communicating -= 1;
            if self.communicating == 0 {
                self.activity.communication += time().saturating_sub(self.since);
            }
        }
    }

    /// Closes what is open when the trace ends.
    pub(super) fn finish(mut self, end: u64) -> Activity {
        while let Some(entry) = self.stack.pop() {
            self.close(&entry, || end);
        }
        self.activity
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAIN: u32 = 1;
    const WAIT: u32 = 2;
    /// In the same slot of the cache as [`WAIT`].
    const ALLREDUCE: u32 = 258;
    const SENDRECV: u32 = 4;

    fn kinds() -> HashMap<u32, RegionKind> {
        let named = |name| RegionKind::new(name, 0, 0);
        [(MAIN, "main"), (WAIT, "MPI_Wait"), (ALLREDUCE, "mpi_allreduce_"), (SENDRECV, "MPI_Sendrecv")]
            .map(|(id, name)| (id, named(name)))
            .into()
    }

    /// Positive: enter; negative: leave.
    fn activity(calls: &[(i64, u64)], end: u64) -> Activity {
        let kinds = kinds();
        let mut stack = CallStack::new(&kinds);
        for &(region, time) in calls {
            match u32::try_from(region) {
                Ok(region) => stack.enter(region, time),
                Err(_) => stack.leave(region.unsigned_abs() as u32, time),
            }
        }
        stack.finish(end)
    }

    fn communication(calls: &[(i64, u64)]) -> u64 {
        activity(calls, 100).communication
    }

    #[test]
    fn communication_is_known_by_paradigm_role_or_name() {
        let communication = |name, paradigm, role| RegionKind::new(name, paradigm, role).communication;
        for name in ["MPI_Init", "MPI_Finalize", "mpi_send_", "PMPI_Wait", "pmpi_wait"] {
            assert!(communication(name, 0, 0), "{name}");
        }
        assert!(communication("x", OTF2_PARADIGM_MPI, 0) && communication("x", OTF2_PARADIGM_SHMEM, 0));
        assert!(communication("x", 0, OTF2_REGION_ROLE_POINT2POINT));
        assert!(
            !communication("main", 1, 1) && !communication("my_mpi_send", 0, 0) && !communication("p", 0, 0)
        );
        // A barrier of OpenMP.
        assert!(!communication("!$omp barrier", 3, 15));
    }

    #[test]
    fn sendrecv_is_known_by_name() {
        let send_receive = |name| RegionKind::new(name, 0, 0).send_receive;
        assert!(
            ["MPI_Sendrecv", "mpi_sendrecv_", "PMPI_Sendrecv_replace", "MPI_Isendrecv"].map(send_receive)
                == [true; 4]
        );
        assert!(!send_receive("MPI_Send"));
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
    fn unbalanced_regions_are_survived() {
        let (main, wait) = (i64::from(MAIN), i64::from(WAIT));
        assert_eq!(communication(&[(-wait, 10), (main, 20)]), 0);
        assert_eq!(communication(&[(wait, 90)]), 10);
        // The call that was never left ends with the function around it.
        assert_eq!(communication(&[(main, 0), (wait, 10), (-main, 30), (main, 40), (-main, 50)]), 20);
        // A clock that goes back does not make the time negative.
        assert_eq!(communication(&[(wait, 50), (-wait, 40)]), 0);
    }

    #[test]
    fn send_receives_without_a_send_are_counted() {
        let kinds = kinds();
        let mut stack = CallStack::new(&kinds);
        stack.enter(SENDRECV, 1);
        stack.leave(SENDRECV, 2);
        stack.enter(SENDRECV, 3);
        stack.send();
        stack.leave(SENDRECV, 4);
        stack.enter(SENDRECV, 5);
        assert_eq!(stack.finish(6).silent_send_receives, 2);
    }

    proptest! {
        #[test]
        fn communication_is_never_longer_than_the_trace(calls in prop::collection::vec((-6i64..6, 0..9u64), 0..60)) {
            let mut time = 0;
            let calls: Vec<_> = calls.into_iter().map(|(region, step)| { time += step; (region, time) }).collect();
            prop_assert!(activity(&calls, time).communication <= time);
        }
    }
}
