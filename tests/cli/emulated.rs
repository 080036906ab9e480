//! The emulated network takes the links that mappers expect: it reads the machine as hopmap exports it.

use hopmap_artifact::Folder;
use hopmap_model::{NodeKind, Paths, SystemGraph};
use hopmap_test_network::Description;

use crate::sandbox::Sandbox;

#[test]
fn an_emulated_machine_has_the_routes_of_the_mappers() {
    for shape in ["tree:2x3x2", "fat-tree:3x2x2", "torus:3x4", "mesh:3x2x2", "ring:5", "dragonfly:4x2x2"] {
        let sandbox = Sandbox::new();
        let shape_word = format!("shape={shape}");
        sandbox.stdout(&["exec", "topology/synthetic", "--with", &shape_word, "--out", "machine"]);
        let export = ["exec", "topology/export", "--in", "system=machine", "--with", "format=graph-json"];
        sandbox.stdout(&[&export[..], &["--out", "file"]].concat());
        let system: SystemGraph = Folder::read(&sandbox.path().join("machine")).unwrap();
        let emulated = Description::read_machine(&sandbox.path().join("file/files/machine.json")).unwrap();
        let paths = Paths::new(&system).unwrap();
        let hosts = (0..system.nodes.len() as u32)
            .filter(|&node| system.nodes[node as usize].kind == NodeKind::Host)
            .collect::<Vec<_>>();
        assert_eq!(hosts.len(), emulated.hosts.len(), "{shape}");
        for (from, &a) in hosts.iter().enumerate() {
            for (to, &b) in hosts.iter().enumerate().filter(|(_, b)| **b != a) {
                // All links are up, so they have the same numbers.
                let expected: Vec<usize> =
                    paths.path(a, b).unwrap().into_iter().map(|link| link as usize).collect();
                assert_eq!(emulated.route(from, to), expected, "{shape}: {from} to {to}");
            }
        }
    }
}
