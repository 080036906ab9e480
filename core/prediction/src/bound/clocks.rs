//! Lower bounds of the clock of every rank: a pass over the program in (max, +) in which every rank chooses its
//! own surroundings.
//!
//! For every distance, and for each of its partners, a rank knows a bound of its clock *if that partner is
//! beyond the distance*. At most `ball` − 1 ranks can be nearer, so the `ball`-th largest of these bounds
//! holds in any mapping. The choice is consistent over the history of a rank: a partner that is near in one
//! iteration is near in all. It is not consistent between ranks, which makes the bound weaker, not wrong: all
//! clocks are monotone in each other.
//!
//! Messages that a rank receives in succession come over the links of its host. Those of all but `ball` − 1
//! partners are from other hosts, and no message arrives before the first of them was sent.

use super::machine::{Level, Machine};
use super::steps::{Length, Step, Steps};
use super::windows::{NO_WINDOW, Windows};

/// Distances with more slots nearer than this are left out: their lists would be long.
const MOST_NEAR: usize = 64;
/// Receives in succession up to which every one can be the first that counts.
const MOST_FIRST: usize = 32;

/// Bounds of clocks in seconds.
#[derive(Debug)]
pub(super) struct Clocks {
    /// When each message is sent, after the costs at the sender.
    pub(super) sent: Vec<f64>,
    /// When the receive of each rendezvous message is posted; zero for others.
    pub(super) posted: Vec<f64>,
    /// When each rank has ended.
    pub(super) ends: Vec<f64>,
}

impl Clocks {
    /// When the last rank has ended.
    pub(super) fn end(&self) -> f64 {
        self.ends.iter().copied().fold(0.0, f64::max)
    }

    /// When both ends are ready for a message.
    pub(super) fn ready(&self, message: u32) -> f64 {
        self.sent[message as usize].max(self.posted[message as usize])
    }
}

/// Follows all clocks. `seconds` are the least durations of windows by traffic.
pub(super) fn clocks(steps: &Steps<'_>, machine: &Machine, windows: &Windows, seconds: &[f64]) -> Clocks {
    let partners = partners(steps);
    let mut ranks: Vec<RankClock> = partners.iter().map(|&count| RankClock::new(machine, count)).collect();
    let zeros = || vec![0.0; steps.messages.len()];
    let mut clocks = Clocks { sent: zeros(), posted: zeros(), ends: Vec::new() };
    let mut windows = WindowClock::new(windows, seconds);
    steps.visit(|rank, index, step| {
        let clock = &mut ranks[rank as usize];
        if !matches!(step, Step::Receive(_) | Step::Finish(_)) {
            clock.end_of_transfers(machine);
        }
        match step {
            Step::Compute(number) => clock.offset += steps.seconds[number as usize],
            Step::Send(message) => {
                clock.offset += steps.length(message).send_s;
                clocks.sent[message as usize] = clock.now();
                windows.send(message, clock.now());
            }
            Step::Post(message) => clocks.posted[message as usize] = clock.now(),
            Step::Receive(message) | Step::Finish(message) => {
                let transfer = Transfer::new(steps, step, message, clocks.ready(message));
                clock.transfer(machine, transfer);
                if let Some(floor) = windows.enter(rank, index) {
                    clock.end_of_transfers(machine);
                    clock.raise(floor);
                }
            }
        }
    });
    let ends = ranks.iter_mut().map(|clock| {
        clock.end_of_transfers(machine);
        clock.now()
    });
    clocks.ends = ends.collect();
    clocks
}

/// An upper bound of the number of partners of each rank.
pub(super) fn partners(steps: &Steps<'_>) -> Vec<usize> {
    let mut partners = vec![0; steps.ranks()];
    for &(source, destination) in steps.pairs.iter().filter(|(source, destination)| source != destination) {
        partners[destination as usize] += 1;
        partners[source as usize] += 1;
    }
    partners
}

/// The clock of a rank. All bounds are relative to `offset`, the seconds of its computation.
pub(super) struct RankClock {
    pub(super) offset: f64,
    /// A bound in any mapping.
    bound: f64,
    near: Vec<Near>,
    /// Messages received and sent in succession.
    received: Vec<Transfer>,
    sent: Vec<Transfer>,
}

/// The largest bounds at a distance.
struct Near {
    level: usize,
    ball: usize,
    /// Up to `ball` partners, and the bound if the partner is beyond the distance.
    largest: Vec<(u32, f64)>,
    least: f64,
}

/// A message that a rank waits for, at either end.
#[derive(Clone, Copy)]
pub(super) struct Transfer {
    /// When both ends are ready.
    ready: f64,
    length: Length,
    partner: u32,
    is_receive: bool,
    is_own: bool,
}

impl Transfer {
    pub(super) fn new(steps: &Steps<'_>, step: Step, message: u32, ready: f64) -> Self {
        let (source, destination) = steps.ends(message);
        let is_receive = matches!(step, Step::Receive(_));
        let partner = if is_receive { source } else { destination };
        Self { ready, length: *steps.length(message), partner, is_receive, is_own: source == destination }
    }

    /// Its end if its ends are beyond a distance.
    pub(super) fn end(&self, level: &Level) -> f64 {
        let cost = level.latency_s * self.length.latency_factor + self.length.bytes * level.seconds_per_byte;
        self.ready + cost + if self.is_receive { self.length.receive_s } else { 0.0 }
    }
}

impl RankClock {
    pub(super) fn new(machine: &Machine, partners: usize) -> Self {
        let can_matter = |(level, ball): (usize, usize)| {
            (ball <= partners && ball <= MOST_NEAR).then(|| Near {
                level,
                ball,
                largest: Vec::with_capacity(ball),
                least: f64::NEG_INFINITY,
            })
        };
        let balls = machine.levels.iter().map(|level| level.ball).enumerate();
        let near = balls.filter_map(can_matter).collect();
        Self { offset: 0.0, bound: 0.0, near, received: Vec::new(), sent: Vec::new() }
    }

    pub(super) fn now(&self) -> f64 {
        self.bound + self.offset
    }

    pub(super) fn raise(&mut self, clock: f64) {
        self.bound = self.bound.max(clock - self.offset);
    }

    pub(super) fn transfer(&mut self, machine: &Machine, transfer: Transfer) {
        self.raise(transfer.ready);
        if transfer.is_own {
            return;
        }
        if let Some(nearest) = machine.levels.first() {
            self.raise(transfer.end(nearest));
        }
        for near in &mut self.near {
            let end = transfer.end(&machine.levels[near.level]) - self.offset;
            self.bound = self.bound.max(near.add(transfer.partner, end));
        }
        let transfers = if transfer.is_receive { &mut self.received } else { &mut self.sent };
        transfers.push(transfer);
    }

    /// Adds the bounds of a succession of messages from or to other hosts: they share the links of the host.
    pub(super) fn end_of_transfers(&mut self, machine: &Machine) {
        let Some(hosts) = machine.divisions.first() else { return };
        let [received, sent] = [(&mut self.received, hosts.most_in), (&mut self.sent, hosts.most_out)].map(
            |(transfers, capacity)| {
                let end = together(machine, transfers, capacity);
                transfers.clear();
                end
            },
        );
        [received, sent].into_iter().flatten().for_each(|end| self.raise(end));
    }
}

impl Near {
    /// Adds a bound for a partner; gives one that holds in any mapping.
    fn add(&mut self, partner: u32, bound: f64) -> f64 {
        let is_full = self.largest.len() == self.ball;
        if is_full && bound <= self.least {
            return self.least;
        }
        if let Some(known) = self.largest.iter_mut().find(|known| known.0 == partner) {
            known.1 = known.1.max(bound);
        } else if !is_full {
            self.largest.push((partner, bound));
        } else if let Some(least) = self.largest.iter_mut().find(|known| known.1 <= self.least) {
            *least = (partner, bound);
        }
        if self.largest.len() == self.ball {
            self.least = self.largest.iter().map(|known| known.1).fold(f64::INFINITY, f64::min);
        }
        self.least
    }
}

/// When messages in succession have arrived: for any of them as the first whose ends were ready, the bytes of
/// those that were ready later, less those that can stay in the host, over its links, and the latency that they
/// share.
fn together(machine: &Machine, transfers: &mut [Transfer], capacity: f64) -> Option<f64> {
    let hosts = machine.divisions.first()?;
    if transfers.len() < hosts.slots.max(2) {
        return None;
    }
    let latency_s = machine.levels[hosts.level].latency_s;
    transfers.sort_unstable_by(|a, b| b.ready.total_cmp(&a.ready).then(a.partner.cmp(&b.partner)));
    let mut by_partner: Vec<(u32, f64)> = Vec::new();
    let (mut latest, mut least_factor): (Option<f64>, f64) = (None, f64::INFINITY);
    for (index, transfer) in transfers.iter().enumerate() {
        least_factor = least_factor.min(transfer.length.shared_latency_factor);
        match by_partner.iter_mut().find(|known| known.0 == transfer.partner) {
            Some(known) => known.1 += transfer.length.bytes,
            None => by_partner.push((transfer.partner, transfer.length.bytes)),
        }
        let is_last = index + 1 == transfers.len();
        if by_partner.len() < hosts.slots || (index >= MOST_FIRST && !is_last) {
            continue;
        }
        let mut bytes: Vec<f64> = by_partner.iter().map(|known| known.1).collect();
        bytes.sort_unstable_by(|a, b| b.total_cmp(a));
        let remote: f64 = bytes.iter().skip(hosts.slots - 1).sum();
        let end = transfer.ready + latency_s * least_factor + remote / capacity;
        latest = Some(latest.map_or(end, |latest| latest.max(end)));
    }
    latest
}

/// Windows as they pass: their first sends, and the entries of ranks into the next epoch.
struct WindowClock<'a> {
    windows: &'a Windows,
    seconds: &'a [f64],
    first_send: Vec<f64>,
    /// Number of entries of each rank so far.
    entered: Vec<usize>,
}

impl<'a> WindowClock<'a> {
    fn new(windows: &'a Windows, seconds: &'a [f64]) -> Self {
        Self {
            windows,
            seconds,
            first_send: vec![f64::INFINITY; windows.traffic_of.len()],
            entered: vec![0; windows.entries.len()],
        }
    }

    fn send(&mut self, message: u32, clock: f64) {
        let window = self.windows.of_message.get(message as usize).copied().unwrap_or(NO_WINDOW);
        if let Some(first) = self.first_send.get_mut(window as usize) {
            *first = first.min(clock);
        }
    }

    /// When all transfers of the windows before an entry have ended, if the step is one.
    fn enter(&mut self, rank: u32, index: usize) -> Option<f64> {
        let entries = &self.windows.entries[rank as usize];
        let mut floor = None;
        while entries.get(self.entered[rank as usize]) == Some(&index) {
            let window = self.entered[rank as usize];
            self.entered[rank as usize] += 1;
            let traffic = self.windows.traffic_of.get(window).copied().unwrap_or(NO_WINDOW);
            let seconds = self.seconds.get(traffic as usize).copied().unwrap_or(0.0);
            let end = self.first_send.get(window).copied().unwrap_or(f64::INFINITY) + seconds;
            if end.is_finite() {
                floor = Some(floor.map_or(end, |floor: f64| floor.max(end)));
            }
        }
        floor
    }
}
