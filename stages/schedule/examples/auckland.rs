//! Measures `schedule/auto` on graphs with known optima.
//!
//! `cargo run --release -p hopmap-schedule --example auckland -- FOLDER SECONDS` reads every `.dot` file of a folder in the form
//! published by the University of Auckland: weights of tasks and messages, the number of processors in `TargetSystem` and the
//! proven optimum in `Total schedule length`.
//!
//! `… --example auckland -- FOLDER SECONDS OPTIMA` reads graphs of the Standard Task Graph Set instead: the graph
//! `FOLDER/name.stg` for every line `name processors lower upper` of the file OPTIMA. The gap is relative to `lower`.
//!
//! `HOPMAP_EVALUATIONS` sets the budget in evaluations per island instead of SECONDS. `HOPMAP_GENETIC`, parameters as JSON such
//! as `{"admissible": "reject"}`, measures `schedule/genetic` with them. Prints the mean gap, the fraction of optimal results and
//! the worst gap of every class and of all, and the number of schedules evaluated per second.
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use hopmap_model::{Context, DelayModel, Observer, TaskDag};
use hopmap_schedule::formats::read_graph;
use hopmap_schedule::{
    AutoParams, GeneticParams, ImportParams, MachineParams, Plan, Problem, Scheduler, SearchResult,
};

/// A graph with its known optimum.
struct Instance {
    name: String,
    class: String,
    dag: TaskDag,
    processors: u32,
    optimum: i64,
}

/// Results of the instances of a class.
#[derive(Default)]
struct Tally {
    instances: u32,
    optimal: u32,
    proven: u32,
    /// Within 1 % of their lower bound.
    near: u32,
    sum: f64,
    worst: f64,
    worst_name: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, seconds, optima @ ..] = arguments.as_slice() else {
        return Err("usage: auckland FOLDER SECONDS [OPTIMA]".into());
    };
    let scheduler = scheduler(seconds.parse()?)?;
    let instances = match optima.first() {
        None => auckland(Path::new(folder))?,
        Some(file) => standard(Path::new(folder), file)?,
    };
    let mut classes: BTreeMap<String, Tally> = BTreeMap::new();
    let (mut evaluated, begin) = (0, Instant::now());
    for instance in &instances {
        let found = solve(instance, scheduler.as_ref())?;
        evaluated += found.evaluations;
        for class in [instance.class.as_str(), "all"] {
            classes.entry(class.to_owned()).or_default().note(instance, &found);
        }
        if found.makespan != instance.optimum {
            println!("{} {} for {}", instance.name, found.makespan, instance.optimum);
        }
        if !found.is_proven() {
            println!("{} {}, bound {}", instance.name, found.makespan, found.lower_bound);
        }
    }
    for (class, tally) in &classes {
        tally.print(class);
    }
    let (evaluated, seconds) = (evaluated as f64 / 1e6, begin.elapsed().as_secs_f64());
    println!("{evaluated:.3} M schedules in {seconds:.1} s: {:.3} M/s", evaluated / seconds);
    Ok(())
}

fn scheduler(seconds: f64) -> Result<Box<dyn Scheduler>, Box<dyn Error>> {
    let mut params = match std::env::var("HOPMAP_GENETIC") {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => serde_json::json!({}),
    };
    params["islands"] = 1.into();
    match std::env::var("HOPMAP_EVALUATIONS") {
        Ok(text) => params["evaluations"] = text.parse::<u64>()?.into(),
        Err(_) => params["time_limit_s"] = seconds.into(),
    }
    Ok(match std::env::var_os("HOPMAP_GENETIC") {
        Some(_) => Box::new(serde_json::from_value::<GeneticParams>(params)?),
        None => Box::new(serde_json::from_value::<AutoParams>(params)?),
    })
}

/// Prints the log of the scheduler.
struct Loud;

impl Observer for Loud {
    fn progress(&self, _: u64, _: u64) {}

    fn log(&self, text: &str) {
        println!("{text}");
    }

    fn cancelled(&self) -> bool {
        false
    }
}

fn solve(instance: &Instance, scheduler: &dyn Scheduler) -> Result<SearchResult<Plan>, Box<dyn Error>> {
    let machine = MachineParams { processors: Some(instance.processors), ..MachineParams::default() };
    let machine = machine.machine(None, instance.dag.unit)?;
    let problem = Problem::new(&instance.dag, &machine, DelayModel::Overlap)?;
    let found = scheduler.schedule(&problem, &Context::new(1, None, &Loud));
    let found = found.map_err(|error| error.to_string())?;
    assert!(found.best.is_admissible(&problem) && found.lower_bound <= found.makespan, "{}", instance.name);
    Ok(found)
}

impl Tally {
    fn note(&mut self, instance: &Instance, found: &SearchResult<Plan>) {
        let gap = found.makespan as f64 / instance.optimum as f64 - 1.0;
        self.instances += 1;
        self.optimal += u32::from(found.makespan <= instance.optimum);
        self.proven += u32::from(found.is_proven());
        self.near += u32::from(100 * found.makespan <= 101 * found.lower_bound);
        self.sum += gap;
        if gap > self.worst {
            (self.worst, self.worst_name) = (gap, instance.name.clone());
        }
    }

    fn print(&self, class: &str) {
        let instances = f64::from(self.instances);
        println!(
            "{class:24} {:5} instances, mean gap {:.4} %, {:6.2} % optimal, {:6.2} % proven, {:6.2} % within 1 % of the bound, worst {:.2} % {}",
            self.instances,
            100.0 * self.sum / instances,
            100.0 * f64::from(self.optimal) / instances,
            100.0 * f64::from(self.proven) / instances,
            100.0 * f64::from(self.near) / instances,
            100.0 * self.worst,
            self.worst_name
        );
    }
}

/// All `.dot` files of a folder.
fn auckland(folder: &Path) -> Result<Vec<Instance>, Box<dyn Error>> {
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    files.sort_by_key(fs::DirEntry::path);
    let dots =
        files.iter().map(fs::DirEntry::path).filter(|path| path.extension().is_some_and(|e| e == "dot"));
    dots.map(|path| dot(&path)).collect()
}

/// A graph, with the processors and the optimum from its attributes.
fn dot(file: &Path) -> Result<Instance, Box<dyn Error>> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = fs::read_to_string(file)?;
    let attribute = |key: &str| {
        let rest = text.split_once(key).map(|(_, rest)| rest.trim_start_matches('"'));
        rest.and_then(|rest| rest.split(['"', ',', ']']).next()).ok_or_else(|| format!("no {key} in {name}"))
    };
    let processors = attribute("TargetSystem=")?.rsplit('-').next().unwrap_or_default().parse()?;
    let optimum = attribute("\"Total schedule length\"=")?.trim().parse()?;
    let dag = graph(file)?;
    let class = name.split("_Nodes").next().unwrap_or_default().to_owned();
    Ok(Instance { name, class, dag, processors, optimum })
}

fn graph(file: &Path) -> Result<TaskDag, Box<dyn Error>> {
    let dag = read_graph(&ImportParams::of(file), &Context::detached());
    Ok(dag.map_err(|error| error.to_string())?)
}

/// The graphs listed in a file of optima.
fn standard(folder: &Path, optima: &str) -> Result<Vec<Instance>, Box<dyn Error>> {
    let mut instances = Vec::new();
    for line in fs::read_to_string(optima)?.lines() {
        let [name, processors, lower, ..] = line.split_whitespace().collect::<Vec<_>>()[..] else { continue };
        let dag = graph(&folder.join(name).with_extension("stg"))?;
        let class = format!("P={processors}");
        let (processors, optimum) = (processors.parse()?, lower.parse()?);
        instances.push(Instance { name: format!("{name} {class}"), class, dag, processors, optimum });
    }
    Ok(instances)
}
