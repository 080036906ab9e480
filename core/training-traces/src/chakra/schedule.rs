//! When the nodes of a rank run, by their dependencies and recorded durations: a list schedule in which the
//! processor and the accelerator run one node at a time and every group one operation, as in ASTRA-sim.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use hopmap_model::{Context, to_u32};

use crate::calls::{Moment, Rank, What};
use crate::spans::merged;

const NONE: u32 = u32::MAX;

/// What runs one node at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Resource {
    Processor,
    Accelerator,
    Group(u32),
    /// Messages, of which any number are in flight.
    Message,
}

/// The nodes of a rank, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    /// Ids with their nodes.
    ids: Vec<(u64, u32)>,
    /// Resource by number, duration in seconds, and index of the call, of every node.
    all: Vec<(u32, f32, u32)>,
    resources: HashMap<Resource, u32>,
    kinds: Vec<Resource>,
    /// Dependencies by id, and where those of a node begin.
    dependencies: Vec<u64>,
    starts: Vec<u32>,
}

impl Nodes {
    pub(crate) fn add(
        &mut self,
        id: u64,
        resource: Resource,
        seconds: f64,
        call: Option<u32>,
        dependencies: impl Iterator<Item = u64>,
    ) {
        let number = *self.resources.entry(resource).or_insert_with(|| {
            self.kinds.push(resource);
            to_u32(self.kinds.len()) - 1
        });
        self.ids.push((id, to_u32(self.all.len())));
        #[expect(clippy::cast_possible_truncation, reason = "seven digits of a time are enough")]
        let seconds = seconds as f32;
        self.all.push((number, seconds, call.unwrap_or(NONE)));
        self.starts.push(to_u32(self.dependencies.len()));
        self.dependencies.extend(dependencies);
    }

    /// The rank: its calls in the order of their starts, and when it computes. The error is a dependency on a node
    /// that does not exist, or a cycle.
    pub(crate) fn schedule(mut self, calls: &[What], cx: &Context<'_>) -> Result<Rank, String> {
        let (before, starts) = self.resolve()?;
        let mut waiting: Vec<u32> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let after = Followers::new(&before, &starts);
        let mut state = State {
            nodes: &self.all,
            kinds: &self.kinds,
            ready: self.kinds.iter().map(|_| BinaryHeap::new()).collect(),
            busy: vec![false; self.kinds.len()],
            running: BinaryHeap::new(),
            time: 0.0,
            ended: 0,
            needed: vec![false; calls.len()],
            order: Vec::new(),
            moments: Vec::new(),
            computing: Vec::new(),
        };
        for node in (0..to_u32(self.all.len())).filter(|node| waiting[*node as usize] == 0) {
            state.make_ready(node);
        }
        loop {
            state.start(&before, &starts);
            let Some(Reverse((bits, node))) = state.running.pop() else { break };
            state.time = f64::from_bits(bits);
            state.ended += 1;
            state.busy[self.all[node as usize].0 as usize] = false;
            for follower in after.of(node) {
                waiting[*follower as usize] -= 1;
                if waiting[*follower as usize] == 0 {
                    state.make_ready(*follower);
                }
            }
            if state.ended.is_multiple_of(1 << 16) && cx.should_stop() {
                return Err("was not read: stopped".into());
            }
        }
        if state.ended < self.all.len() {
            let stuck = waiting.iter().position(|left| *left > 0).unwrap_or_default();
            let id = self.ids.iter().find(|(_, node)| *node as usize == stuck).map_or(0, |(id, _)| *id);
            return Err(format!("has dependencies in a circle, which node {id} waits for"));
        }
        Ok(state.into_rank(calls))
    }

    /// The dependencies of all nodes by index, and where those of a node begin.
    fn resolve(&mut self) -> Result<(Vec<u32>, Vec<u32>), String> {
        self.ids.sort_unstable();
        if let Some(pair) = self.ids.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(format!("has node {} twice", pair[0].0));
        }
        let dependencies = std::mem::take(&mut self.dependencies);
        let mut starts = std::mem::take(&mut self.starts);
        starts.push(to_u32(dependencies.len()));
        let find = |id: u64| match self.ids.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(place) => Ok(self.ids[place].1),
            Err(_) => Err(format!("has a node that depends on node {id}, which does not exist")),
        };
        let before = dependencies.into_iter().map(find).collect::<Result<_, _>>()?;
        Ok((before, starts))
    }
}

/// The nodes that depend on each node.
struct Followers {
    starts: Vec<u32>,
    nodes: Vec<u32>,
}

impl Followers {
    fn new(before: &[u32], starts: &[u32]) -> Self {
        let count = starts.len() - 1;
        let mut ends = vec![0u32; count + 1];
        before.iter().for_each(|node| ends[*node as usize + 1] += 1);
        for node in 0..count {
            ends[node + 1] += ends[node];
        }
        let (mut places, mut nodes) = (ends.clone(), vec![0; before.len()]);
        for node in 0..count {
            for dependency in &before[starts[node] as usize..starts[node + 1] as usize] {
                nodes[places[*dependency as usize] as usize] = to_u32(node);
                places[*dependency as usize] += 1;
            }
        }
        Self { starts: ends, nodes }
    }

    fn of(&self, node: u32) -> &[u32] {
        &self.nodes[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }
}

/// A schedule in progress.
struct State<'a> {
    nodes: &'a [(u32, f32, u32)],
    kinds: &'a [Resource],
    /// Nodes that wait for each resource, the first in the file first.
    ready: Vec<BinaryHeap<Reverse<u32>>>,
    busy: Vec<bool>,
    /// Nodes by the bits of the time at which they end.
    running: BinaryHeap<Reverse<(u64, u32)>>,
    time: f64,
    ended: usize,
    /// Whether something has waited for each call.
    needed: Vec<bool>,
    /// Calls in the order of their starts.
    order: Vec<u32>,
    moments: Vec<(f64, Moment)>,
    computing: Vec<(f64, f64)>,
}

impl State<'_> {
    fn make_ready(&mut self, node: u32) {
        self.ready[self.nodes[node as usize].0 as usize].push(Reverse(node));
    }

    /// Starts what can start now.
    fn start(&mut self, before: &[u32], starts: &[u32]) {
        for resource in 0..self.kinds.len() {
            while !self.busy[resource] {
                let Some(Reverse(node)) = self.ready[resource].pop() else { break };
                let (_, seconds, call) = self.nodes[node as usize];
                let end = self.time + f64::from(seconds);
                for dependency in &before[starts[node as usize] as usize..starts[node as usize + 1] as usize]
                {
                    let (.., call) = self.nodes[*dependency as usize];
                    if call != NONE && !std::mem::replace(&mut self.needed[call as usize], true) {
                        self.moments.push((self.time, Moment::Needed(call)));
                    }
                }
                match call {
                    NONE if seconds > 0.0 => self.computing.push((self.time, end)),
                    NONE => {}
                    call => {
                        self.moments.push((self.time, Moment::Start(call)));
                        self.order.push(call);
                    }
                }
                self.busy[resource] = self.kinds[resource] != Resource::Message;
                self.running.push(Reverse((end.to_bits(), node)));
            }
        }
    }

    /// The rank, with its calls numbered by their starts.
    fn into_rank(mut self, calls: &[What]) -> Rank {
        let unneeded = self.order.iter().filter(|call| !self.needed[**call as usize]);
        self.moments.extend(unneeded.map(|call| (self.time, Moment::Needed(*call))));
        let mut numbers = vec![0; calls.len()];
        (0..).zip(&self.order).for_each(|(number, call)| numbers[*call as usize] = number);
        for (_, Moment::Start(call) | Moment::Needed(call)) in &mut self.moments {
            *call = numbers[*call as usize];
        }
        Rank {
            calls: self.order.iter().map(|call| calls[*call as usize]).collect(),
            moments: self.moments,
            computing: merged(self.computing),
            duration_s: Some(self.time),
            ..Rank::default()
        }
    }
}
