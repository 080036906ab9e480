//! Published graphs and schedules, from the folder named by `HOPMAP_DATA`.

use std::fs;
use std::path::{Path, PathBuf};

use hopmap_model::{Context, TaskDag, WorkUnit};
use hopmap_schedule::formats::grf::Grf;
use hopmap_schedule::formats::procs::Procs;
use hopmap_schedule::formats::read_graph;
use hopmap_schedule::formats::sch::Sch;
use hopmap_schedule::{ImportParams, MachineParams};
use hopmap_test_support::given_data;

fn data() -> Option<PathBuf> {
    given_data().map(|folder| folder.join("schedule"))
}

/// The files of a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn import(file: &Path) -> TaskDag {
    let dag = read_graph(&ImportParams::of(file), &Context::detached());
    let dag = dag.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    dag.check().unwrap();
    dag
}

/// The number after the last of several texts in sequence.
fn number_after(text: &str, keys: &[&str]) -> f64 {
    let rest = keys.iter().fold(text, |rest, key| rest.split_once(key).unwrap().1);
    let end = rest.find(|char: char| !(char.is_ascii_digit() || char == '.')).unwrap_or(rest.len());
    rest[..end].parse().unwrap()
}

#[test]
fn all_graphs_of_auckland_are_read() {
    let Some(data) = data() else { return };
    let files = files(&data.join("auckland"));
    assert_eq!(files.len(), 389);
    for file in files {
        let (dag, text) = (import(&file), fs::read_to_string(&file).unwrap());
        let file = file.display();
        assert_eq!(dag.tasks.len() as f64, number_after(&text, &["NumberOfTasks="]), "{file}");
        assert_eq!(dag.work(), number_after(&text, &["\"Total sequential time\"="]), "{file}");
        assert_eq!(dag.dependencies.len(), text.matches("->").count(), "{file}");
        assert_eq!(dag.unit, WorkUnit::Time);
    }
}

#[test]
fn files_of_the_standard_task_graph_set_are_read() {
    let Some(data) = data() else { return };
    let files = files(&data.join("stg50"));
    assert_eq!(files.len(), 20);
    for file in files {
        let (dag, text) = (import(&file), fs::read_to_string(&file).unwrap());
        let file = file.display();
        assert_eq!(dag.tasks.len() as f64, number_after(&text, &["Tasks             : "]) + 2.0, "{file}");
        assert_eq!(dag.critical_work(), Some(number_after(&text, &["# CP Length           : "])), "{file}");
        let edges = number_after(&text, &["Edges             : "])
            + number_after(&text, &["Edges             : ", "(+dummy edges : "]);
        assert_eq!(dag.dependencies.len() as f64, edges, "{file}");
        assert!(dag.tasks[0].work == 0.0 && dag.tasks[51].work == 0.0 && dag.names.is_empty());
    }
}

#[test]
fn workflows_are_read() {
    let Some(data) = data() else { return };
    let files = files(&data.join("wfcommons"));
    let files: Vec<_> =
        files.iter().filter(|file| file.extension().is_some_and(|json| json == "json")).collect();
    assert_eq!(files.len(), 5);
    for file in files {
        let dag = import(file);
        let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        let specified = json["workflow"]["specification"]["tasks"].as_array().unwrap();
        let executed = json["workflow"]["execution"]["tasks"].as_array().unwrap();
        let seconds: f64 = executed.iter().map(|task| task["runtimeInSeconds"].as_f64().unwrap()).sum();
        let parents: usize = specified.iter().map(|task| task["parents"].as_array().unwrap().len()).sum();
        assert_eq!((dag.tasks.len(), dag.dependencies.len()), (specified.len(), parents));
        assert!((dag.work() - seconds).abs() < 1e-9 * seconds);
        // The files between two tasks, one by one.
        let size = |file: &str| {
            let mut files = json["workflow"]["specification"]["files"].as_array().unwrap().iter();
            files.find(|one| one["id"] == file).unwrap()["sizeInBytes"].as_u64().unwrap()
        };
        let task = |task: u32| specified.iter().find(|one| one["id"] == *dag.name(task)).unwrap();
        for edge in &dag.dependencies {
            let (source, destination) = (task(edge.source), task(edge.destination));
            let written = source["outputFiles"].as_array().unwrap();
            let both =
                written.iter().filter(|file| destination["inputFiles"].as_array().unwrap().contains(file));
            assert_eq!(edge.bytes, both.map(|file| size(file.as_str().unwrap())).sum::<u64>());
        }
        assert_eq!(dag.unit, WorkUnit::Seconds);
    }
}

/// Works, and edges with their weights.
type Plain = (Vec<f64>, Vec<(u32, u32, u64)>);

fn plain(dag: &TaskDag) -> Plain {
    let edges = dag.dependencies.iter().map(|edge| (edge.source, edge.destination, edge.bytes)).collect();
    (dag.tasks.iter().map(|task| task.work).collect(), edges)
}

/// Works and edges, sorted by task names, which are numbers from 0.
fn by_names(dag: &TaskDag) -> Plain {
    let number = |task: u32| dag.name(task).parse::<u32>().unwrap();
    let mut work = vec![0.0; dag.tasks.len()];
    (0..).zip(&dag.tasks).for_each(|(task, one)| work[number(task) as usize] = one.work);
    let named =
        dag.dependencies.iter().map(|edge| (number(edge.source), number(edge.destination), edge.bytes));
    let mut edges: Vec<_> = named.collect();
    edges.sort_unstable();
    (work, edges)
}

/// The graph from which a `.grf` was made: numbers of tasks and edges, works, and edges.
fn of_dag(file: &Path) -> Plain {
    let text = fs::read_to_string(file).unwrap();
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<u64>().unwrap());
    let mut next = || numbers.next().unwrap();
    let (tasks, edges) = (next(), next());
    let work = (0..tasks).map(|_| next() as f64).collect();
    let mut edges: Vec<_> = (0..edges).map(|_| (next() as u32, next() as u32, next())).collect();
    edges.sort_unstable();
    (work, edges)
}

const PARUS: [&str; 3] = ["r10c01p2", "r16c10p6", "stg50_rand0000_p4"];

#[test]
fn graphs_of_parus_match_their_originals() {
    let Some(data) = data() else { return };
    for name in PARUS {
        let folder = data.join("parus").join(name);
        let dag = import(&folder.join("graph.grf"));
        assert_eq!(plain(&dag), of_dag(&folder.join("g.dag")), "{name}");
        // Numbering starts from 1.
        let names: Vec<String> = (1..=dag.tasks.len()).map(|number| number.to_string()).collect();
        assert_eq!(dag.names, names);
    }
    let file = "auckland/Random_Nodes_10_Density_4.50_CCR_0.10_WeightType_Random#3_Homogeneous-4.dot";
    assert_eq!(by_names(&import(&data.join(file))), of_dag(&data.join("parus/r10c01p2/g.dag")));
    let stg = import(&data.join("stg50/rand0000.stg"));
    assert_eq!(plain(&stg), of_dag(&data.join("parus/stg50_rand0000_p4/g.dag")));
}

#[test]
fn graphs_of_parus_round_trip() {
    let Some(data) = data() else { return };
    for name in PARUS {
        let text = fs::read_to_string(data.join("parus").join(name).join("graph.grf")).unwrap();
        assert_eq!(Grf::read(text.as_bytes()).unwrap().write(), text, "{name}");
    }
}

#[test]
fn schedules_match_the_output_of_graph2sch() {
    let Some(data) = data() else { return };
    for name in PARUS {
        let folder = data.join("parus").join(name);
        let tasks = import(&folder.join("graph.grf")).tasks.len() as u64;
        for file in ["parus.sch", "parus_fix.sch", "old.sch"] {
            let text = fs::read_to_string(folder.join(file)).unwrap();
            let sch = Sch::read(text.as_bytes()).unwrap();
            let mut nodes: Vec<u64> = sch.processors.iter().flat_map(|one| one.nodes.clone()).collect();
            nodes.sort_unstable();
            assert_eq!(nodes, (1..=tasks).collect::<Vec<_>>(), "{name}/{file}");
            // The old program indents by one more space.
            let written = sch.write(|_| None);
            let plain = |text: &str| text.lines().map(str::trim_start).collect::<Vec<_>>().join("\n");
            match file {
                "old.sch" => assert_eq!(plain(&written), plain(&text), "{name}/{file}"),
                _ => assert_eq!(written, text, "{name}/{file}"),
            }
        }
    }
}

#[test]
fn measured_machines_are_read() {
    let Some(data) = data() else { return };
    for name in PARUS {
        let folder = data.join("parus").join(name);
        let procs = Procs::read(&fs::read(folder.join("procs.vct")).unwrap()).unwrap();
        let params = MachineParams {
            procs: Some(hopmap_model::InputPath::new(folder.join("procs.vct"))),
            network: Some(hopmap_model::InputPath::new(folder.join("network.average"))),
            coordinator: true,
            ..MachineParams::default()
        };
        let machine = params.machine(None, WorkUnit::Time).unwrap();
        // The time of a message equals its length, except for the coordinator, which is excluded.
        assert_eq!(machine.processors.len() + 1, procs.durations.len());
        assert_eq!(machine.pace, vec![1.0; machine.processors.len()]);
        assert_eq!((machine.network.time(0, 1, 6), machine.network.time(1, 1, 6)), (6.0, 0.0));
    }
}
