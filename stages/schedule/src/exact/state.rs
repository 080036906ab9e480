//! A partial schedule that grows in the order in which tasks start.

use hopmap_model::DelayModel;

use crate::bounds::Relaxed;
use crate::plan::Plan;
use crate::problem::Problem;

/// Maximum number of tasks: one bit each.
pub(super) const MOST_TASKS: usize = 128;

/// Memory limit: numbers stored for all states on the path to a leaf.
const MOST_WINDOWS: usize = 1 << 23;

/// Whether a problem is small enough for the search.
pub(super) fn is_small(problem: &Problem) -> bool {
    let (tasks, processors) = (problem.tasks(), problem.processors());
    let columns = if problem.is_alike() { processors.min(tasks) } else { processors };
    tasks <= MOST_TASKS && (tasks + 1) * tasks * columns <= MOST_WINDOWS
}

/// Invariants of a search.
#[derive(Debug)]
pub(super) struct Fixed<'p> {
    pub(super) problem: &'p Problem,
    pub(super) receives: bool,
    /// Whether processors are interchangeable; then only one of the empty ones is tried.
    pub(super) alike: bool,
    /// Whether messages take no time and processors are identical.
    pub(super) silent: bool,
    pub(super) tasks: usize,
    /// Maximum number of processors in use.
    pub(super) processors: usize,
    /// Execution time of task `t` on processor `p`, at `t * processors + p`.
    pub(super) work: Vec<i64>,
    /// The position of every task in the topological order.
    pub(super) place: Vec<usize>,
    /// The rank of every task by remaining time: of swappable neighbours, the first one comes first.
    pub(super) rank: Vec<usize>,
    pub(super) relaxed: Relaxed,
    /// For every task the previous one that is identical in all respects.
    pub(super) twin: Vec<Option<u32>>,
    /// For a fork, a join or a fork-join of independent tasks: an order of these tasks that is optimal on every processor.
    pub(super) row: Option<Vec<u32>>,
    /// For every task the set of others that may finish later if this one finishes earlier: all their successors wait at least as
    /// long for this task.
    pub(super) yields: Vec<u128>,
}

impl<'p> Fixed<'p> {
    pub(super) fn new(problem: &'p Problem) -> Self {
        let tasks = problem.tasks();
        let alike = problem.is_alike();
        let processors = if alike { problem.processors().min(tasks) } else { problem.processors() };
        let work = (0..tasks as u32)
            .flat_map(|task| (0..processors as u32).map(move |processor| problem.work(task, processor)));
        let relaxed = Relaxed::new(problem);
        let mut place = vec![0; tasks];
        problem.order().iter().enumerate().for_each(|(at, &task)| place[task as usize] = at);
        let silent = alike && relaxed.parents.iter().flatten().all(|link| link.far == 0);
        Self {
            problem,
            receives: problem.model() == DelayModel::Receive,
            alike,
            silent,
            tasks,
            processors,
            work: work.collect(),
            rank: ranks(&relaxed, &place),
            place,
            row: if alike && problem.model() == DelayModel::Overlap { row(&relaxed) } else { None },
            twin: twins(problem),
            yields: yields(problem, &relaxed),
            relaxed,
        }
    }

    pub(super) fn work(&self, task: usize, processor: usize) -> i64 {
        self.work[task * self.processors + processor]
    }
}

/// The rank of every task by remaining time, then by its longest message, then by position.
fn ranks(relaxed: &Relaxed, place: &[usize]) -> Vec<usize> {
    let mut tasks: Vec<usize> = (0..place.len()).collect();
    let longest = |task: usize| relaxed.children[task].iter().map(|link| link.far).max().unwrap_or(-1);
    tasks.sort_by_key(|&task| (-relaxed.tail[task], -longest(task), place[task]));
    let mut ranks = vec![0; place.len()];
    tasks.into_iter().enumerate().for_each(|(rank, task)| ranks[task] = rank);
    ranks
}

/// For every task the set of others that may finish later if this one finishes earlier.
fn yields(problem: &Problem, relaxed: &Relaxed) -> Vec<u128> {
    let uniform = problem.delays().uniform().is_some();
    let waits = |other: usize, task: u32, far: i64| {
        let mut children = relaxed.children[other].iter();
        children.any(|child| child.task == task && child.far >= far)
    };
    let of = |task: usize| {
        let children = &relaxed.children[task];
        let as_long = |other: usize| children.iter().all(|child| waits(other, child.task, child.far));
        let may = |other: usize| other != task && (uniform || children.is_empty()) && as_long(other);
        let others = (0..problem.tasks()).filter(|&other| may(other));
        others.fold(0, |set, other| set | 1 << other)
    };
    (0..problem.tasks()).map(of).collect()
}

/// The order of the tasks of a fork, a join or both: by arrival on other processors, if that is also the order of decreasing
/// outgoing messages (the fixed task order of Sinnen 2014).
fn row(relaxed: &Relaxed) -> Option<Vec<u32>> {
    let tasks = relaxed.work.len();
    let alone = |task: usize| relaxed.parents[task].len() <= 1 && relaxed.children[task].len() <= 1;
    let mut ends =
        (0..tasks).filter(|&task| relaxed.parents[task].len().max(relaxed.children[task].len()) > 1);
    let ends: Vec<usize> = ends.by_ref().take(3).collect();
    let is_source = |end: usize| relaxed.parents[end].is_empty();
    let is_sink = |end: usize| relaxed.children[end].is_empty();
    let (source, sink) = match ends[..] {
        [] => (None, None),
        [one] if is_source(one) => (Some(one), None),
        [one] if is_sink(one) => (None, Some(one)),
        [one, other] if is_source(one) && is_sink(other) => (Some(one), Some(other)),
        [one, other] if is_source(other) && is_sink(one) => (Some(other), Some(one)),
        _ => return None,
    };
    let mut middle: Vec<usize> =
        (0..tasks).filter(|&task| Some(task) != source && Some(task) != sink).collect();
    let sent = |task: usize| relaxed.parents[task].first().map(|link| (link.task as usize, link.far));
    let sends = |task: usize| relaxed.children[task].first().map(|link| (link.task as usize, link.far));
    let joins =
        |task: usize| sent(task).map(|sent| sent.0) == source && sends(task).map(|sends| sends.0) == sink;
    if !middle.iter().all(|&task| alone(task) && joins(task)) {
        return None;
    }
    let times = |task: usize| (sent(task).map_or(0, |sent| sent.1), -sends(task).map_or(0, |sends| sends.1));
    middle.sort_by_key(|&task| times(task));
    let falls = middle.windows(2).all(|pair| times(pair[0]).1 <= times(pair[1]).1);
    falls.then(|| middle.into_iter().map(|task| task as u32).collect())
}

/// For every task the previous one with the same execution times and messages.
fn twins(problem: &Problem) -> Vec<Option<u32>> {
    let same = |a: u32, b: u32| {
        problem.works(a) == problem.works(b)
            && problem.parents(a) == problem.parents(b)
            && problem.children(a) == problem.children(b)
    };
    let mut twins = vec![None; problem.tasks()];
    for (at, &task) in problem.order().iter().enumerate() {
        twins[task as usize] = problem.order()[..at].iter().rev().copied().find(|&other| same(other, task));
    }
    twins
}

/// The last task of a processor, and its options there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last {
    pub(super) task: u32,
    /// When the processor became free before it.
    pub(super) free: i64,
    /// Its earliest start there.
    pub(super) ready: i64,
    /// How long it occupies the processor.
    pub(super) takes: i64,
}

/// A candidate: a task on a processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) task: u32,
    pub(super) processor: usize,
    /// Its earliest start if nothing else ran there.
    pub(super) ready: i64,
    pub(super) start: i64,
    pub(super) takes: i64,
}

impl Step {
    /// Its start; ties go to tasks without duration, then to the topological order.
    pub(super) fn turn(&self, fixed: &Fixed<'_>) -> (i64, usize) {
        let later = if self.takes > 0 { fixed.tasks } else { 0 };
        (self.start, fixed.place[self.task as usize] + later)
    }
}

/// A partial schedule.
#[derive(Debug)]
pub(super) struct State {
    pub(super) done: u128,
    pub(super) waits: Vec<u32>,
    pub(super) finish: Vec<i64>,
    pub(super) on: Vec<u32>,
    pub(super) free: Vec<i64>,
    pub(super) last: Vec<Option<Last>>,
    /// Number of processors in use; identical ones are used in order.
    pub(super) used: usize,
    /// Start and position of the last task: all later ones start later, or at the same time in a later position. None if tasks
    /// have a fixed order.
    pub(super) began: (i64, usize),
    pub(super) steps: Vec<(Step, (i64, usize), Option<Last>)>,
}

impl State {
    pub(super) fn new(fixed: &Fixed<'_>) -> Self {
        let waits = (0..fixed.tasks as u32).map(|task| fixed.problem.parents(task).len() as u32);
        Self {
            done: 0,
            waits: waits.collect(),
            finish: vec![0; fixed.tasks],
            on: vec![0; fixed.tasks],
            free: fixed.problem.available()[..fixed.processors].to_vec(),
            last: vec![None; fixed.processors],
            used: if fixed.alike { 0 } else { fixed.processors },
            began: (i64::MIN, 0),
            steps: Vec::with_capacity(fixed.tasks),
        }
    }

    pub(super) fn is_done(&self, task: usize) -> bool {
        self.done >> task & 1 == 1
    }

    /// Number of processors to try: those in use, and one empty one.
    pub(super) fn columns(&self, fixed: &Fixed<'_>) -> usize {
        fixed.processors.min(self.used + usize::from(fixed.alike))
    }

    /// The options of a task on a processor.
    pub(super) fn step(&self, fixed: &Fixed<'_>, task: u32, processor: usize) -> Step {
        let (mut ready, mut receives) = (0, 0);
        for message in fixed.problem.parents(task) {
            let from = message.task as usize;
            let delay = fixed.problem.delay(message.size, self.on[from], processor as u32);
            if fixed.receives {
                (ready, receives) = (self.finish[from].max(ready), delay.max(receives));
            } else {
                ready = ready.max(self.finish[from] + delay);
            }
        }
        let start = ready.max(self.free[processor]);
        Step { task, processor, ready, start, takes: receives + fixed.work(task as usize, processor) }
    }

    /// The next task if the order of tasks does not matter.
    pub(super) fn next_in_row(&self, fixed: &Fixed<'_>) -> Option<u32> {
        let next = fixed.row.as_ref()?.iter().copied().find(|&task| !self.is_done(task as usize))?;
        (self.waits[next as usize] == 0).then_some(next)
    }

    pub(super) fn put(&mut self, fixed: &Fixed<'_>, step: Step) {
        let Step { task, processor, ready, start, takes } = step;
        self.steps.push((step, self.began, self.last[processor]));
        self.done |= 1 << task;
        self.finish[task as usize] = start + takes;
        self.on[task as usize] = processor as u32;
        self.last[processor] = Some(Last { task, free: self.free[processor], ready, takes });
        self.free[processor] = start + takes;
        if fixed.row.is_none() {
            self.began = step.turn(fixed);
        }
        if fixed.alike && processor == self.used {
            self.used += 1;
        }
        for message in fixed.problem.children(task) {
            self.waits[message.task as usize] -= 1;
        }
    }

    pub(super) fn take_back(&mut self, fixed: &Fixed<'_>) {
        let Some((step, began, last)) = self.steps.pop() else { return };
        let Step { task, processor, .. } = step;
        self.done &= !(1 << task);
        self.free[processor] = self.last[processor].map_or(0, |last| last.free);
        self.last[processor] = last;
        self.began = began;
        if fixed.alike && last.is_none() {
            self.used -= 1;
        }
        for message in fixed.problem.children(task) {
            self.waits[message.task as usize] += 1;
        }
    }

    /// The plan of all steps.
    pub(super) fn plan(&self) -> Plan {
        Plan { order: self.steps.iter().map(|(step, ..)| step.task).collect(), processor: self.on.clone() }
    }

    /// A hash that two states share only if they have the same continuations, except for collisions with a probability below 2⁻⁶⁴
    /// even with the stored half. It covers the set of completed tasks and the remaining effects on processors, independent of
    /// the names of identical processors.
    pub(super) fn key(&self, fixed: &Fixed<'_>) -> u128 {
        let began = self.began.0;
        let soonest = self.free.iter().copied().min().unwrap_or(0);
        let columns = self.columns(fixed);
        let mut own = [Mixer::default(); MOST_TASKS];
        let name = |processor: usize| if fixed.alike { 0 } else { processor as u64 + 1 };
        let mut more: Vec<Mixer> = Vec::new();
        let mixers = if columns <= MOST_TASKS {
            &mut own[..columns]
        } else {
            more.resize(columns, Mixer::default());
            &mut more[..]
        };
        for (processor, mixer) in mixers.iter_mut().enumerate().take(self.used) {
            mixer.take(name(processor));
            // The times before the last start do not matter.
            mixer.take_time(if self.free[processor] < began { i64::MIN } else { self.free[processor] });
            if let Some(last) = &self.last[processor]
                && fixed.row.is_none()
                && fixed.yields[last.task as usize] & !self.done != 0
            {
                mixer.take(u64::from(last.task));
                mixer.take_time(last.free);
                mixer.take_time(last.ready);
            }
        }
        if fixed.alike && !fixed.receives {
            self.arrivals(fixed, soonest, mixers);
        } else {
            self.messages(fixed, mixers);
        }
        let mut all = Mixer::default();
        all.take(self.done as u64);
        all.take((self.done >> 64) as u64);
        all.take_time(began);
        all.take(self.began.1 as u64);
        mixers.iter().fold(all.end(), |sum, mixer| sum.wrapping_add(mixer.end()))
    }

    /// Dependencies of remaining tasks: the last message to each, and the last one from any other processor.
    fn arrivals(&self, fixed: &Fixed<'_>, soonest: i64, mixers: &mut [Mixer]) {
        for task in (0..fixed.tasks).filter(|&task| !self.is_done(task)) {
            let (mut last, mut other) = ((i64::MIN, u32::MAX), i64::MIN);
            for link in &fixed.relaxed.parents[task] {
                if !self.is_done(link.task as usize) {
                    continue;
                }
                let (arrives, on) = (self.finish[link.task as usize] + link.far, self.on[link.task as usize]);
                if on == last.1 {
                    last.0 = last.0.max(arrives);
                } else if arrives > last.0 {
                    (other, last) = (last.0, (arrives, on));
                } else {
                    other = other.max(arrives);
                }
            }
            // A message that arrives before any possible start is irrelevant.
            if last.0 > soonest && last.0 >= self.began.0 {
                let mixer = &mut mixers[last.1 as usize];
                mixer.take(!(task as u64));
                mixer.take_time(last.0);
                let matters = other > self.free[last.1 as usize] && other >= self.began.0;
                mixer.take_time(if matters { other } else { i64::MIN });
            }
        }
    }

    /// Processors and finish times of completed tasks with remaining successors.
    fn messages(&self, fixed: &Fixed<'_>, mixers: &mut [Mixer]) {
        for task in (0..fixed.tasks).filter(|&task| self.is_done(task)) {
            let mut children = fixed.relaxed.children[task].iter();
            if children.any(|child| !self.is_done(child.task as usize)) {
                let mixer = &mut mixers[self.on[task] as usize];
                mixer.take(!(task as u64));
                mixer.take_time(self.finish[task]);
            }
        }
    }
}

/// Mixes numbers into 128 bits.
#[derive(Debug, Clone, Copy, Default)]
struct Mixer(u64, u64);

impl Mixer {
    #[inline]
    fn take_time(&mut self, value: i64) {
        self.take(value as u64);
    }

    #[inline]
    fn take(&mut self, value: u64) {
        self.0 =
            (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_add(0x1656_67B1);
        self.1 =
            (self.1.rotate_left(31) ^ value).wrapping_mul(0xD6E8_FEB8_6659_FD93).wrapping_add(0x2545_F491);
    }

    fn end(self) -> u128 {
        let spread = |mut value: u64| {
            value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            value ^ value >> 31
        };
        u128::from(spread(self.0)) << 64 | u128::from(spread(self.1 ^ self.0.rotate_left(17)))
    }
}
