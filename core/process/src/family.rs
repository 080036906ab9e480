//! Ends a program with all that it started: descendants are found in `/proc` (`proc_pid_stat(5)`) and remembered, because they lose their
//! parent when it ends first. Only one that a daemon's double fork cut off before the first look is out of reach.
//! `PR_SET_CHILD_SUBREAPER` would bring it back, but also strangers, whose zombies nobody here waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

/// Polling interval: short at first, because most programs end soon.
pub(crate) const SHORTEST_LOOK: Duration = Duration::from_millis(1);
pub(crate) const LONGEST_LOOK: Duration = Duration::from_millis(50);
/// Time to end after SIGKILL.
const LAST: Duration = Duration::from_secs(1);

/// By their numbers.
type Processes = BTreeMap<i32, Process>;

#[derive(Debug)]
struct Process {
    parent: i32,
    group: i32,
    /// In ticks since the boot.
    began: u64,
    /// A zombie, which only waits to be reaped.
    has_ended: bool,
}

impl Process {
    fn read(number: i32) -> Option<Self> {
        let status = fs::read(format!("/proc/{number}/stat")).ok()?;
        let status = String::from_utf8_lossy(&status);
        // The name, in parentheses, may hold anything.
        let fields: Vec<&str> = status.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |at: usize| fields.get(at)?.parse().ok();
        // A program whose first thread has ended is called a zombie, too.
        let has_ended = fields.first() == Some(&"Z") && fields.get(17) == Some(&"1");
        let (parent, group) = (field(1)?, field(2)?);
        Some(Self { parent, group, began: fields.get(19)?.parse().ok()?, has_ended })
    }
}

fn living() -> impl Iterator<Item = (i32, Process)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let processes = numbers.filter_map(|number| Some((number, Process::read(number)?)));
    processes.filter(|(_, process)| !process.has_ended)
}

/// When a process was started, in ticks since the boot.
pub(crate) fn started(process: Pid) -> Option<u64> {
    Process::read(process.as_raw_pid()).map(|process| process.began)
}

/// A process with all that it started, and with its group if it leads one.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) root: Pid,
    /// Group of the root. 0 if its leader is outside of the namespace of process numbers, as in a container.
    pub(crate) group: i32,
    /// When the root was started: its number is given to another process some time after it has been reaped. None without `/proc`, or
    /// with that of another namespace.
    pub(crate) began: Option<u64>,
    /// Those that live, as of the last look.
    members: Processes,
    told: BTreeSet<i32>,
}

impl Family {
    /// That of a child, which has not been reaped.
    pub(crate) fn of(child: Pid) -> Self {
        let is_ours = |own: PathBuf| own == Path::new(&std::process::id().to_string());
        let is_proc_ours = fs::read_link("/proc/self").is_ok_and(is_ours);
        let process = Process::read(child.as_raw_pid()).filter(|_| is_proc_ours);
        let group = process.as_ref().map_or(child.as_raw_pid(), |process| process.group);
        Self::new(child, group, process.map(|process| process.began))
    }

    pub(crate) fn new(root: Pid, group: i32, began: Option<u64>) -> Self {
        Self { root, group, began, members: Processes::new(), told: BTreeSet::new() }
    }

    /// Finds the processes; whether there is one.
    pub(crate) fn look(&mut self) -> bool {
        let (root, group) = (self.root.as_raw_pid(), self.group);
        let all: Processes = living().collect();
        let is_other = all.get(&root).is_some_and(|now| Some(now.began) != self.began);
        let is_member = |number: i32, now: &Process| {
            let is_of_root = number == root || (root == group && now.group == group);
            let is_known = |was: &Process| was.began == now.began;
            (is_of_root && !is_other) || self.members.get(&number).is_some_and(is_known)
        };
        let (mut members, mut others): (Processes, Processes) =
            all.into_iter().partition(|(number, now)| is_member(*number, now));
        loop {
            let is_child = |process: &Process| members.contains_key(&process.parent);
            let (children, rest): (Processes, Processes) =
                others.into_iter().partition(|(_, process)| is_child(process));
            if children.is_empty() {
                break;
            }
            members.extend(children);
            others = rest;
        }
        self.members = members;
        !self.members.is_empty()
    }

    /// Whether something may be left after the root has been reaped. Reads nothing from `/proc` if nobody has looked yet: a command
    /// per host has many of them.
    pub(crate) fn may_be_left(&self) -> bool {
        !self.members.is_empty()
            || (self.root.as_raw_pid() == self.group && test_kill_process_group(self.root).is_ok())
    }

    /// SIGTERM once to each of the root's group, as from a terminal, and later to those whose parent has ended. Others are their parent's
    /// to end, such as the ranks that mpirun has put into groups of their own, or what cleans up after the signal.
    pub(crate) fn terminate(&mut self) -> bool {
        let (is_left, is_first) = (self.look(), self.told.is_empty());
        for number in self.parents_first() {
            let process = &self.members[&number];
            let is_of_group = is_first && process.group == self.group;
            if (is_of_group || !self.members.contains_key(&process.parent)) && self.told.insert(number) {
                signal(number, Signal::TERM);
            }
        }
        self.signal_unseen(Signal::TERM);
        is_left
    }

    /// A shell whose child ends first goes on with its next command.
    fn parents_first(&self) -> Vec<i32> {
        let mut order: Vec<i32> = Vec::new();
        let mut rest: Vec<i32> = self.members.keys().copied().collect();
        while !rest.is_empty() {
            let waits = |number: &i32| rest.contains(&self.members[number].parent);
            let (later, next): (Vec<i32>, Vec<i32>) = rest.iter().partition(|number| waits(number));
            // Numbers that are given anew while `/proc` is read may make a circle.
            let is_circle = next.is_empty();
            order.extend(if is_circle { &later } else { &next });
            rest = if is_circle { Vec::new() } else { later };
        }
        order
    }

    pub(crate) fn kill(&mut self) -> bool {
        let is_left = self.look();
        self.parents_first().into_iter().for_each(|number| signal(number, Signal::KILL));
        self.signal_unseen(Signal::KILL);
        is_left
    }

    /// For what `/proc` does not show.
    fn signal_unseen(&self, signal: Signal) {
        let _ = match self.began {
            Some(_) => Ok(()),
            None if self.root.as_raw_pid() == self.group => kill_process_group(self.root, signal),
            None => kill_process(self.root, signal),
        };
    }

    /// SIGTERM, and after `grace` SIGKILL to those that are left.
    pub(crate) fn end(&mut self, grace: Duration) {
        if !self.is_gone_within(grace, Self::terminate) || self.began.is_none() {
            self.is_gone_within(LAST, Self::kill);
        }
    }

    /// Repeats what tells whether one is left until none is.
    pub(crate) fn is_gone_within(&mut self, time: Duration, is_left: fn(&mut Self) -> bool) -> bool {
        let (end, mut look) = (Instant::now() + time, SHORTEST_LOOK);
        while is_left(self) {
            if Instant::now() >= end {
                return false;
            }
            thread::sleep(look);
            look = (look * 2).min(LONGEST_LOOK);
        }
        true
    }
}

fn signal(process: i32, signal: Signal) {
    // An error means that it has ended.
    let _ = Pid::from_raw(process).map(|process| kill_process(process, signal));
}
