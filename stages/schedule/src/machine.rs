//! Processors and what messages between them take.

mod files;
mod measured;
mod system;

use hopmap_model::{Processor, SystemGraph, WorkUnit};

use crate::problem::is_whole;
use crate::{MachineError, MachineParams};

pub use measured::Measured;

/// Most processors: pairs of them have to fit into memory.
pub(crate) const MOST_PROCESSORS: u32 = 1 << 13;
/// Bytes per second where nobody says it: 10 Gbit/s.
const DEFAULT_BANDWIDTH: f64 = 1.25e9;

/// Processors and what messages between them take, in units of time of the program.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The processors.
    pub processors: Vec<Processor>,
    /// What a unit of work takes on every processor.
    pub pace: Vec<f64>,
    /// What messages take.
    pub network: Network,
}

/// What messages take.
#[derive(Debug, Clone, PartialEq)]
pub enum Network {
    /// A latency and a time per byte for every class of pairs of processors.
    Linear {
        /// The class of every pair.
        distances: Distances,
        /// What messages of every class take.
        classes: Vec<Linear>,
    },
    /// What was measured between every two processors.
    Measured(Measured),
}

/// Which class every ordered pair of processors is in.
#[derive(Debug, Clone, PartialEq)]
pub enum Distances {
    /// Class 0 from a processor to itself, class 1 between any two others.
    Alike,
    /// The class from `a` to `b` of `processors` is at `a * processors + b`.
    Pairs {
        /// Number of processors.
        processors: usize,
        /// The classes.
        classes: Vec<u32>,
    },
}

/// What messages of a class take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    /// Every message.
    pub latency: f64,
    /// Every byte.
    pub per_byte: f64,
}

impl Distances {
    /// The class from one processor to another.
    #[inline]
    #[must_use]
    pub fn class(&self, from: u32, to: u32) -> usize {
        match self {
            Self::Alike => usize::from(from != to),
            Self::Pairs { processors, classes } => classes[from as usize * processors + to as usize] as usize,
        }
    }
}

impl Network {
    /// What a message takes from one processor to another, or from a processor to itself.
    #[must_use]
    pub fn time(&self, from: u32, to: u32, bytes: u64) -> f64 {
        match self {
            Self::Linear { distances, classes } => {
                let Linear { latency, per_byte } = classes[distances.class(from, to)];
                latency + bytes as f64 * per_byte
            }
            Self::Measured(measured) => measured.time(from, to, bytes),
        }
    }

    /// The longest that a message of so many bytes takes, and whether it takes whole units of time between all processors.
    pub(crate) fn longest(&self, bytes: u64) -> (f64, bool) {
        let both = |(longest, whole): (f64, bool), time: f64| (longest.max(time), whole && is_whole(time));
        match self {
            Self::Linear { classes, .. } => {
                let times = classes.iter().map(|one| one.latency + bytes as f64 * one.per_byte);
                times.fold((0.0, true), both)
            }
            Self::Measured(measured) => measured.times(bytes).fold((0.0, true), both),
        }
    }
}

impl Machine {
    /// The machine that parameters, and the connected system if there is one, describe.
    pub fn new(
        params: &MachineParams,
        system: Option<&SystemGraph>,
        unit: WorkUnit,
    ) -> Result<Self, MachineError> {
        let given_files = params.procs.is_some() || params.network.is_some();
        let machine = match (system, given_files) {
            (Some(_), true) => return Err(MachineError::TwoMachines),
            (Some(system), false) => system::machine(params, system, unit)?,
            (None, true) => files::machine(params, unit)?,
            (None, false) => Self::alike(params, unit)?,
        };
        machine.with_first(params.processors)?.with_speeds(&params.speeds)?.with_available(&params.available)
    }

    /// Processors that are all alike.
    fn alike(params: &MachineParams, unit: WorkUnit) -> Result<Self, MachineError> {
        let processors = params.processors.ok_or(MachineError::NoProcessors)?;
        if !(1..=MOST_PROCESSORS).contains(&processors) {
            return Err(MachineError::Processors { processors });
        }
        let processor = |number| Processor { name: format!("p{number}"), ..Processor::default() };
        let classes = vec![Linear { latency: 0.0, per_byte: 0.0 }, linear(params, unit)?];
        Ok(Self {
            processors: (0..processors).map(processor).collect(),
            pace: vec![1.0; processors as usize],
            network: Network::Linear { distances: Distances::Alike, classes },
        })
    }

    /// Only the first so many processors.
    fn with_first(mut self, processors: Option<u32>) -> Result<Self, MachineError> {
        let there = self.processors.len();
        let wanted = processors.map_or(there, |processors| processors as usize);
        if wanted == 0 || wanted > there {
            return Err(MachineError::TooFew { wanted, there });
        }
        self.processors.truncate(wanted);
        self.pace.truncate(wanted);
        match &mut self.network {
            Network::Linear { distances: Distances::Pairs { processors, classes }, .. } => {
                let rows = classes.chunks(*processors).take(wanted);
                *classes = rows.flat_map(|row| row[..wanted].iter().copied()).collect();
                *processors = wanted;
            }
            Network::Linear { .. } => {}
            Network::Measured(measured) => measured.keep(0..wanted),
        }
        Ok(self)
    }

    fn with_speeds(mut self, speeds: &[f64]) -> Result<Self, MachineError> {
        if speeds.is_empty() {
            return Ok(self);
        }
        self.of_every_processor("speeds", speeds, |speed| speed > 0.0)?;
        for (pace, speed) in self.pace.iter_mut().zip(speeds) {
            *pace /= speed;
        }
        Ok(self)
    }

    fn with_available(mut self, available: &[f64]) -> Result<Self, MachineError> {
        if available.is_empty() {
            return Ok(self);
        }
        self.of_every_processor("available", available, |time| time >= 0.0)?;
        for (processor, &time) in self.processors.iter_mut().zip(available) {
            processor.available = time;
        }
        Ok(self)
    }

    fn of_every_processor(
        &self,
        name: &'static str,
        values: &[f64],
        is_valid: impl Fn(f64) -> bool,
    ) -> Result<(), MachineError> {
        let processors = self.processors.len();
        if values.len() != processors {
            return Err(MachineError::Count { name, values: values.len(), processors });
        }
        match values.iter().find(|&&value| !(value.is_finite() && is_valid(value))) {
            Some(&value) => Err(MachineError::Value { name, value }),
            None => Ok(()),
        }
    }
}

/// What the parameters say of messages.
fn linear(params: &MachineParams, unit: WorkUnit) -> Result<Linear, MachineError> {
    let latency = params.latency.unwrap_or(0.0);
    if !(latency.is_finite() && latency >= 0.0) {
        return Err(MachineError::Value { name: "latency", value: latency });
    }
    let default = match unit {
        WorkUnit::Seconds => DEFAULT_BANDWIDTH,
        WorkUnit::Time => 1.0,
    };
    let bandwidth = params.bandwidth.unwrap_or(default);
    // An endless bandwidth is one: messages take their latency.
    if bandwidth.is_nan() || bandwidth <= 0.0 {
        return Err(MachineError::Value { name: "bandwidth", value: bandwidth });
    }
    Ok(Linear { latency, per_byte: 1.0 / bandwidth })
}
