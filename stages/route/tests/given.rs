//! Instances from the folder named by `HOPMAP_DATA`.

use std::path::PathBuf;

use hopmap_route::Instance;
use hopmap_test_support::given_data;

fn data() -> Option<PathBuf> {
    given_data().map(|folder| folder.join("route"))
}

#[test]
fn all_given_instances_are_read() {
    let Some(folder) = data() else { return };
    let mut read = 0;
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "json") {
            let instance = Instance::read(&file).unwrap();
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            let example = name.starts_with("example1");
            assert_eq!(instance.graph.ranks(), if example { 3 } else { 10 }, "{name}");
            assert_eq!(instance.graph.demands.streams.len(), if example { 2 } else { 8 }, "{name}");
            assert_eq!(instance.mapping.is_some(), name.contains("problem1"), "{name}");
            let slots = instance.system.slots.len();
            let per_host = if name.contains("perf20") {
                2
            } else if name.contains("perf30") {
                3
            } else if name.contains("perf60") {
                6
            } else {
                1
            };
            assert_eq!(slots, per_host * if example { 3 } else { 10 }, "{name}");
            read += 1;
        }
    }
    assert_eq!(read, 11);
}
