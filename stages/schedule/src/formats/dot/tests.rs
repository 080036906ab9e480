use super::*;

fn options() -> DotOptions {
    DotOptions { node_weight: None, edge_weight: None, scale: 1.0 }
}

fn read(text: &str) -> Dot {
    Dot::read(text.as_bytes(), &options()).unwrap()
}

fn problem(text: &str) -> String {
    Dot::read(text.as_bytes(), &options()).unwrap_err().to_string()
}

fn edges(dot: &Dot) -> Vec<(String, String, u64)> {
    let name = |task| dot.dag.name(task).into_owned();
    dot.dag.dependencies.iter().map(|edge| (name(edge.source), name(edge.destination), edge.bytes)).collect()
}

fn of(edges: &[(&str, &str, u64)]) -> Vec<(String, String, u64)> {
    edges.iter().map(|&(from, to, bytes)| (from.into(), to.into(), bytes)).collect()
}

#[test]
fn a_graph_of_auckland_is_read() {
    let text = "digraph \"Fork#1\" {\n\tgraph [\"Max states\"=0,\n\t\tModes=\"a; SL\\\n) b\",\n\t\tTargetSystem=\"Homogeneous-2\"\n\t];\n\
                \t0\t[\"Start time\"=0,\n\t\tWeight=126];\n\t1\t[Processor=1, Weight=12.5];\n\t0 -> 1\t[Weight=5];\n}\n";
    let dot = read(text);
    assert_eq!(
        (dot.dag.names.as_slice(), dot.node_weight.as_str()),
        (&["0".into(), "1".into()][..], "Weight")
    );
    assert_eq!(
        dot.dag.tasks.iter().map(|task| (task.rank, task.work)).collect::<Vec<_>>(),
        [(None, 126.0), (None, 12.5)]
    );
    assert_eq!((edges(&dot), dot.edge_weight.as_deref()), (of(&[("0", "1", 5)]), Some("Weight")));
    assert_eq!(dot.dag.unit, WorkUnit::Time);
}

#[test]
fn chains_subgraphs_and_defaults_are_understood() {
    let text = "strict DIGRAPH { rankdir = LR; node [weight=3][shape=box] edge [weight=\"1\"];
        a:n -> {b; subgraph x { node [weight=7]; c \"d e\":p:s [weight=2] }} -> f [color=red; weight=4]
        subgraph x -> g; a -> g [weight = 9,]; a -> g ; subgraph { edge [weight=5] <h<b/>> -> a } b; b [weight=8] }";
    let dot = read(text);
    let work: Vec<_> =
        dot.dag.names.iter().zip(&dot.dag.tasks).map(|(name, task)| (name.as_str(), task.work)).collect();
    let expected =
        [("a", 3.0), ("b", 8.0), ("c", 7.0), ("d e", 2.0), ("f", 3.0), ("g", 3.0), ("<h<b/>>", 3.0)];
    assert_eq!(work, expected);
    let expected = [
        ("a", "b", 4),
        ("a", "c", 4),
        ("a", "d e", 4),
        ("a", "g", 9),
        ("b", "f", 4),
        ("c", "f", 4),
        ("c", "g", 1),
        ("d e", "f", 4),
        ("d e", "g", 1),
        ("<h<b/>>", "a", 5),
    ];
    assert_eq!(edges(&dot), of(&expected));
}

#[test]
fn edges_may_repeat_unless_they_are_strict() {
    let text = "digraph { node [cost=1] a -> b [size=2]; a -> b [size=2]; a -> b [size=3] }";
    let dot = read(text);
    assert_eq!((dot.node_weight.as_str(), dot.edge_weight.as_deref()), ("cost", Some("size")));
    assert_eq!(edges(&dot), of(&[("a", "b", 2), ("a", "b", 2), ("a", "b", 3)]));
    let strict = text.replace("digraph", "strict digraph");
    assert_eq!(problem(&strict), "line 1: edge `a` -> `b` has a different `size` in line 1");
    assert_eq!(edges(&read(&strict.replace("=3", "=2"))).len(), 1);
}

#[test]
fn weights_are_given_or_detected() {
    let text =
        "digraph { a [Weight=1, label=\"10\"] b [Weight=2, label=20] a -> b [label=\"0.5\", cost=\"x\"] }";
    let label = Some("label".to_owned());
    let options = DotOptions { node_weight: label.clone(), edge_weight: label, scale: 10.0 };
    let dot = Dot::read(text.as_bytes(), &options).unwrap();
    assert_eq!((dot.dag.work(), dot.dag.dependencies[0].bytes), (30.0, 5));
    assert_eq!(problem(text), "line 1: `cost` of edge `a` -> `b` is `x`, which is not a number");
    let without = read("digraph { node [Weight=1] a -> b -> c }");
    assert_eq!((without.edge_weight.as_deref(), without.dag.dependencies[0].bytes), (None, 0));
    let error = Dot::read(b"digraph { node [label=1] a -> b }", &options).unwrap_err();
    assert_eq!(error.to_string(), "no edge has an attribute `label`");
}

#[test]
fn errors_are_reported() {
    assert_eq!(problem("graph { a -- b }"), "line 1: the graph is undirected");
    assert_eq!(problem("digraph {\na -- b }"), "line 2: `--` is an edge of an undirected graph");
    assert_eq!(problem("digraph {}"), "the graph has no nodes");
    assert_eq!(problem(" // x"), "the file is empty");
    assert_eq!(problem("digraph { a -> b }"), "no node has an attribute `Weight`, `weight`, `cost`, `size`");
    assert_eq!(
        problem("digraph { a [Weight=1]\n a -> b }"),
        "line 2: node `b` has no `Weight`, but others have one"
    );
    assert_eq!(
        problem("digraph { node [Weight=1] a -> b [Weight=1]\nb -> c }"),
        "line 2: edge `b` -> `c` has no `Weight`, but others have one"
    );
    assert_eq!(
        problem("digraph { a\n[Weight=-1] }"),
        "line 2: `Weight` of node `a` is `-1`, which is negative"
    );
    assert_eq!(
        problem("digraph { a [Weight=\"1e400\"] }"),
        "line 1: `Weight` of node `a` is `inf`, which is not a finite number"
    );
    assert_eq!(
        problem("digraph { a [Weight=1]\na [Weight=2] }"),
        "line 2: node `a` has a different `Weight` in line 1"
    );
    assert_eq!(
        problem("digraph { node [Weight=1] a -> b\n[Weight=.5] }"),
        "line 2: `Weight` of edge `a` -> `b` is `0.5`, which is not an integer"
    );
    let cycle = problem("digraph { node [Weight=1] a -> b -> c -> b }");
    assert!(cycle.ends_with("is part of a dependency cycle"), "{cycle}");
    assert_eq!(problem("digraph { a } digraph"), "line 1: unexpected `digraph` after the graph");
    assert_eq!(problem("digraph { a -> }"), "line 1: expected a node or a subgraph, found `}`");
    assert_eq!(
        problem("digraph { a"),
        "line 1: expected a node, an edge, a subgraph or an attribute, found the end of the file"
    );
    assert_eq!(problem("digraph { a [= 1] }"), "line 1: expected an attribute or `]`, found `=`");
    assert!(Dot::read(b"digraph {\n\xff}", &options()).unwrap_err().to_string().starts_with("line 2: "));
}

#[test]
fn a_short_file_does_not_exhaust_the_memory() {
    let deep = format!("digraph {}", "{".repeat(100_000));
    assert!(problem(&deep).contains("more than 100 nested subgraphs"));
    let many = (0..10_000).map(|node| format!("n{node}")).collect::<Vec<_>>().join(" ");
    let square = format!("digraph {{ subgraph x {{ {many} }} -> subgraph x }}");
    assert!(problem(&square).contains("more than 67108864 edges"));
}
