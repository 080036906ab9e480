use proptest::prelude::*;

use super::*;

fn chunk(name: &str) -> GrfChunk {
    GrfChunk {
        name: name.into(),
        kind: "GRAPH_DOUBLE".into(),
        left_offset: "0".into(),
        right_offset: "sizeof(x)/2".into(),
    }
}

/// A graph with the given numbers and weights of nodes, and edges between node indices.
fn graph(nodes: &[(u64, u64)], edges: &[(usize, usize, u64)]) -> Grf {
    let number = |node: usize| nodes[node].0;
    let edge = |(index, &(from, to, weight)): (u64, &(usize, usize, u64))| GrfEdge {
        number: 10 * index,
        weight,
        kind: "GRAPH_INT".into(),
        sender: number(from),
        receiver: number(to),
        sent: vec![chunk("x"); index as usize % 3],
        received: vec![chunk("y y"); index as usize % 3],
    };
    let edges: Vec<GrfEdge> = (0..).zip(edges).map(edge).collect();
    let of = |node: u64, end: fn(&GrfEdge) -> u64| {
        edges.iter().filter(|edge| end(edge) == node).map(|edge| edge.number).collect()
    };
    let node = |&(number, weight): &(u64, u64)| GrfNode {
        number,
        kind: 1,
        weight,
        layer: -1,
        input_edges: of(number, |edge| edge.receiver),
        output_edges: of(number, |edge| edge.sender),
        body: format!("node{number}.c"),
        ..GrfNode::default()
    };
    let nodes = nodes.iter().map(node).collect();
    Grf { header: "a/b.h".into(), nodes, edges, ..Grf::default() }
}

/// Node 7 sends to 3 twice, and 3 to the largest possible number.
fn small() -> Grf {
    graph(&[(7, 5), (3, 0), (u64::MAX, 9)], &[(0, 1, 4), (0, 1, 4), (1, 2, 0)])
}

#[test]
fn a_graph_is_tasks_with_names() {
    let dag = small().task_dag(1.0).unwrap();
    assert_eq!(dag.names, ["7", "3", "18446744073709551615"]);
    assert_eq!(dag.tasks.iter().map(|task| task.work).collect::<Vec<_>>(), [5.0, 0.0, 9.0]);
    let edges: Vec<_> =
        dag.dependencies.iter().map(|edge| (edge.source, edge.destination, edge.bytes)).collect();
    assert_eq!(edges, [(0, 1, 4), (0, 1, 4), (1, 2, 0)]);
    assert_eq!((dag.unit, dag.tasks[0].rank), (WorkUnit::Time, None));
    assert_eq!(small().task_dag(0.25).unwrap().dependencies[0].bytes, 1);
    assert!(small().task_dag(0.1).unwrap_err().problem.contains("edge 0 is 4, which is not an integer"));
    let huge = graph(&[(0, u64::MAX)], &[]).task_dag(1.0).unwrap_err();
    assert!(huge.problem.contains("node 0") && huge.problem.contains("too large to be exact"));
    let cycle = graph(&[(1, 1), (2, 1)], &[(0, 1, 0), (1, 0, 0)]).task_dag(1.0).unwrap_err();
    assert!(cycle.problem.contains("is part of a dependency cycle"));
    let mut dangling = small();
    dangling.edges[0].sender = 8;
    assert!(dangling.task_dag(1.0).unwrap_err().problem.contains("edge 0 connects to node 8"));
}

#[test]
fn capitals_and_comments_are_fine() {
    let text =
        small().write().replace("<NODE_END>", "<node_end> // of a node").replace("  layer", "/* \n */ LAYER");
    assert_eq!(Grf::read(text.as_bytes()), Ok(small()));
}

#[test]
fn contradictions_have_lines() {
    let text = small().write();
    let problem = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let error = Grf::read(text.replacen(from, to, 1).as_bytes()).unwrap_err();
        format!("{}: {}", error.line.unwrap(), error.problem)
    };
    assert_eq!(problem("num_nodes 3", "num_nodes 2"), "36: expected `<NODES_END>`, found `<NODE_BEGIN>`");
    assert_eq!(problem("num_edges 3", "num_edges 4"), "148: expected `<EDGE_BEGIN>`, found `<EDGES_END>`");
    assert_eq!(problem("number 3\n", "number 7\n"), "23: duplicate node 7");
    assert_eq!(problem("number 20\n", "number 10\n"), "104: duplicate edge 10");
    assert_eq!(
        problem("send_nodes ( 7 )", "send_nodes ( 8 )"),
        "56: edge 0 starts at node 8, which does not exist"
    );
    assert_eq!(
        problem("num_send_nodes 1\n  send_nodes ( 7 )", "num_send_nodes 2\n  send_nodes ( 7 3 )"),
        "61: `num_send_nodes` is 2, but an edge connects exactly two nodes"
    );
    assert_eq!(
        problem("recv_nodes ( 3 )", "recv_nodes ( 7 )"),
        "23: edge 0 is among the input edges of node 3, but no such edge ends there"
    );
    assert_eq!(
        problem("num_input_edges 2\n  edges ( 0 10 )", "num_input_edges 2\n  edges ( 0 0 )"),
        "23: node 3 lists edge 0 twice"
    );
    assert_eq!(
        problem("num_output_edges 2\n  edges ( 0 10 )", "num_output_edges 1\n  edges ( 0 )"),
        "73: edge 10 starts at node 7, which does not list it in its output edges"
    );
    assert!(
        problem("( 0 10 )", "( 0 )")
            .contains("`num_output_edges` is 2, but the list of `edges` has 1 numbers")
    );
    assert_eq!(problem("weight 5", "weight -5"), "11: `weight` is `-5`, which is negative");
    assert_eq!(problem("GRAPH_INT", "GRAPH_BOOL"), "58: unknown type `GRAPH_BOOL`");
    assert!(problem("left_offset \"0\"", "left_offset \"\"").contains("offsets"));
    assert_eq!(problem("num_nodes 3", "num_nodes 0"), "5: the graph has no nodes");
    assert_eq!(Grf::read(b"").unwrap_err().problem, "the file is empty");
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        nodes in prop::collection::btree_map(any::<u64>(), any::<u64>(), 1..12),
        pairs in prop::collection::vec((0usize..12, 0usize..12, any::<u64>()), 0..30),
    ) {
        let nodes: Vec<_> = nodes.into_iter().rev().collect();
        let edges: Vec<_> = pairs.into_iter().map(|(from, to, weight)| (from % nodes.len(), to % nodes.len(), weight)).collect();
        let graph = graph(&nodes, &edges);
        prop_assert_eq!(Grf::read(graph.write().as_bytes()), Ok(graph));
    }
}
