//! The time of every process, cut into tasks.

use hopmap_model::Task;

use super::{At, Join, Link, Moment, Rules};

/// Something waits for the moment.
const AWAITED: u8 = 1;
/// The moment waits for something.
const WAITS: u8 = 2;

/// Which moments depend on others, and others on them, by rank.
pub(super) fn marks(ranks: &[Vec<Moment>], links: &[Link], joins: &[Join]) -> Vec<Vec<u8>> {
    let mut marks: Vec<Vec<u8>> = ranks.iter().map(|moments| vec![0; moments.len()]).collect();
    let mut add = |at: At, mark: u8| marks[at.rank as usize][at.moment as usize] |= mark;
    for link in links {
        add(link.before, AWAITED);
        add(link.after, WAITS);
    }
    for join in joins {
        join.before.iter().for_each(|(at, _)| add(*at, AWAITED));
        join.after.iter().for_each(|(at, _)| add(*at, WAITS));
    }
    marks
}

/// The tasks of all ranks, those of a rank one after the other.
pub(super) struct Segments {
    pub(super) tasks: Vec<Task>,
    /// The task before every moment, and the one after it, by rank.
    places: Vec<Vec<(u32, u32)>>,
    /// The first task of every rank.
    first: Vec<u32>,
}

impl Segments {
    /// The task that is done when the moment comes.
    pub(super) fn before(&self, at: At) -> u32 {
        self.places[at.rank as usize][at.moment as usize].0
    }

    /// The task that begins when the moment has passed.
    pub(super) fn after(&self, at: At) -> u32 {
        self.places[at.rank as usize][at.moment as usize].1
    }

    /// Each task of a rank with the next.
    pub(super) fn order(&self) -> impl Iterator<Item = (u32, u32)> {
        let ends = self.first.iter().skip(1).copied().chain([self.tasks.len() as u32]);
        self.first.iter().zip(ends).flat_map(|(first, end)| (*first + 1..end).map(|task| (task - 1, task)))
    }
}

/// A task while it is made.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    work: u64,
    /// Ticks of that since something waits for it.
    since: Option<u64>,
}

/// Cuts the time of every rank: a task waits, then computes, then is waited for.
///
/// Where a task is waited for and then computes a little more, it goes on, and what waits for it comes a little later;
/// where it has only just begun and waits again, it waits from the beginning. Neither makes a cycle: a task that goes
/// on waits for nothing new, and one that waits again is not waited for yet.
pub(super) fn cut(ranks: &[Vec<Moment>], marks: &[Vec<u8>], rules: Rules) -> Segments {
    let mut segments = Segments { tasks: Vec::new(), places: Vec::new(), first: Vec::new() };
    for ((rank, moments), marks) in (0..).zip(ranks).zip(marks) {
        segments.first.push(segments.tasks.len() as u32);
        let mut open = Open::default();
        let mut close = |open: &mut Open| {
            let work = open.work as f64 / rules.ticks_per_second;
            segments.tasks.push(Task { rank: Some(rank), work });
            *open = Open::default();
            segments.tasks.len() as u32
        };
        let mut number = segments.first[rank as usize];
        let mut places = Vec::with_capacity(moments.len());
        for (moment, mark) in moments.iter().zip(marks) {
            let compute = moment.compute;
            if open.since.is_some_and(|since| since.saturating_add(compute) > rules.tiny) {
                number = close(&mut open);
            }
            open.work = open.work.saturating_add(compute);
            open.since = open.since.map(|since| since.saturating_add(compute));
            let before = number;
            if mark & AWAITED != 0 {
                open.since.get_or_insert(0);
            }
            if mark & WAITS != 0 && (open.since.is_some() || open.work > rules.tiny) {
                number = close(&mut open);
            }
            places.push((before, number));
        }
        close(&mut open);
        segments.places.push(places);
    }
    segments
}
