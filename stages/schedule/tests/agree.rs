//! One graph, written in every format by this test, is read as the same tasks.

use std::collections::BTreeMap;

use hopmap_model::TaskDag;
use hopmap_schedule::formats::dot::{Dot, DotOptions};
use hopmap_schedule::formats::grf::{Grf, GrfEdge, GrfNode};
use hopmap_schedule::formats::{stg, wfformat};
use proptest::prelude::*;

/// Work of tasks, and messages between them.
type Graph = (Vec<u32>, BTreeMap<(usize, usize), u32>);

fn any_graph() -> impl Strategy<Value = Graph> {
    let edges = prop::collection::vec((0usize..15, 0usize..15, 0u32..1000), 0..40);
    (prop::collection::vec(any::<u32>(), 1..15), edges).prop_map(|(work, edges)| {
        let inside = edges.into_iter().filter(|&(from, to, _)| from < to && to < work.len());
        let edges = inside.map(|(from, to, weight)| ((from, to), weight)).collect();
        (work, edges)
    })
}

fn grf((work, edges): &Graph) -> TaskDag {
    let edge = |(number, (&(from, to), &weight)): (u64, (&(usize, usize), &u32))| GrfEdge {
        number,
        weight: weight.into(),
        kind: "GRAPH_CHAR".into(),
        sender: 90 - from as u64,
        receiver: 90 - to as u64,
        ..GrfEdge::default()
    };
    let edges: Vec<GrfEdge> = (0..).zip(edges).map(edge).collect();
    let node = |(task, &weight): (u64, &u32)| {
        let of = |end: fn(&GrfEdge) -> u64| {
            edges.iter().filter(|edge| end(edge) == 90 - task).map(|edge| edge.number).collect()
        };
        let (input_edges, output_edges) = (of(|edge| edge.receiver), of(|edge| edge.sender));
        GrfNode { number: 90 - task, weight: weight.into(), input_edges, output_edges, ..GrfNode::default() }
    };
    let nodes = (0..).zip(work).map(node).collect();
    let text = Grf { nodes, edges, ..Grf::default() }.write();
    Grf::read(text.as_bytes()).unwrap().task_dag(1.0).unwrap()
}

/// Edges first, so that nodes appear in another order unless they are listed before.
fn dot((work, edges): &Graph) -> TaskDag {
    let names: Vec<String> = (0..work.len()).map(|task| format!("t{task}")).collect();
    let mut text = format!("digraph {{ {} ", names.join("; "));
    edges.iter().for_each(|((from, to), weight)| text += &format!("t{from} -> t{to} [cost={weight}.0]\n"));
    work.iter().enumerate().for_each(|(task, work)| text += &format!("t{task} [Weight=\"{work}\"] "));
    let options = DotOptions { node_weight: None, edge_weight: None, scale: 1.0 };
    Dot::read((text + "}").as_bytes(), &options).unwrap().dag
}

fn stg_of((work, edges): &Graph) -> TaskDag {
    let announced = if work.len() < 2 { work.len() } else { work.len() - 2 };
    let mut text = announced.to_string();
    for (task, work) in work.iter().enumerate() {
        let parents = edges.keys().filter(|(_, to)| *to == task).map(|(from, _)| format!(" {from}"));
        let parents: Vec<String> = parents.collect();
        text += &format!("\n{task} {work} {}{}", parents.len(), parents.concat());
    }
    stg::read(text.as_bytes(), 1.0).unwrap()
}

/// With a file for every edge; half of the edges are listed only by the parent, the others only by the child.
fn wfformat_of((work, edges): &Graph) -> TaskDag {
    let listed = |of: &dyn Fn(usize, usize) -> Option<String>| -> Vec<String> {
        edges.keys().filter_map(|&(from, to)| of(from, to)).collect()
    };
    let id = |task: usize| format!("t{task}");
    let file = |from: usize, to: usize| format!("f{from}_{to}");
    let task = |task: usize| {
        serde_json::json!({
            "name": "t", "id": id(task),
            "parents": listed(&|from, to| (to == task && from % 2 == 0).then(|| id(from))),
            "children": listed(&|from, to| (from == task && from % 2 == 1).then(|| id(to))),
            "inputFiles": listed(&|from, to| (to == task).then(|| file(from, to))),
            "outputFiles": listed(&|from, to| (from == task).then(|| file(from, to))),
        })
    };
    let tasks: Vec<_> = (0..work.len()).map(task).collect();
    let files: Vec<_> = edges
        .iter()
        .map(|(&(from, to), weight)| serde_json::json!({"id": file(from, to), "sizeInBytes": weight}))
        .collect();
    let executed: Vec<_> = work
        .iter()
        .enumerate()
        .map(|(task, work)| serde_json::json!({"id": id(task), "runtimeInSeconds": work}))
        .collect();
    let workflow = serde_json::json!({"specification": {"tasks": tasks, "files": files}, "execution": {"tasks": executed}});
    wfformat::read(serde_json::json!({ "workflow": workflow }).to_string().as_bytes(), 1.0).unwrap()
}

/// Without names and units.
fn plain(dag: TaskDag) -> TaskDag {
    TaskDag { tasks: dag.tasks, dependencies: dag.dependencies, ..TaskDag::default() }
}

proptest! {
    #[test]
    fn all_formats_give_the_same_tasks(graph in any_graph()) {
        let expected = plain(grf(&graph));
        prop_assert_eq!(expected.tasks.iter().map(|task| task.work as u32).collect::<Vec<_>>(), graph.0.clone());
        prop_assert_eq!(expected.dependencies.len(), graph.1.len());
        prop_assert_eq!(&plain(dot(&graph)), &expected);
        prop_assert_eq!(&plain(wfformat_of(&graph)), &expected);
        let empty = expected.dependencies.iter().map(|edge| hopmap_model::Dependency { bytes: 0, ..*edge }).collect();
        prop_assert_eq!(plain(stg_of(&graph)), TaskDag { dependencies: empty, ..expected });
    }
}
