//! The same inputs, params and seed give the same bytes, with any number of threads.

use std::collections::BTreeMap;
use std::path::Path;

use crate::sandbox::{Sandbox, project, query_program};

/// Every file of every artifact, but for how it was made.
fn artifacts(store: &Path) -> BTreeMap<String, Vec<u8>> {
    fn collect(folder: &Path, root: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, root, files);
            } else if path.file_name().is_none_or(|name| name != "provenance.json") {
                // Of stages that make the same artifact, the first one is its provenance.
                files.insert(
                    path.strip_prefix(root).unwrap().display().to_string(),
                    std::fs::read(&path).unwrap(),
                );
            }
        }
    }
    let mut files = BTreeMap::new();
    collect(&store.join("artifacts"), store, &mut files);
    files
}

#[test]
fn one_thread_and_two_give_the_same_bytes() {
    let small = ["groups=[2, 2, 2]", "few=[2, 2, 2]", "processes=[1, 2]", "instances=1..1", "seeds=1..1"];
    let small: Vec<&str> = small.iter().flat_map(|parameter| ["-p", parameter]).collect();
    for (pipeline, params) in [("place", &[][..]), ("claims", &small)] {
        if pipeline == "claims" && query_program().is_none() {
            continue;
        }
        let sandbox = Sandbox::new();
        let file = project().join(format!("pipelines/{pipeline}.toml"));
        for jobs in ["1", "2", "7"] {
            let out = format!("out={}", sandbox.path().join("out").display());
            let store = format!("store-{jobs}");
            let run = ["run", file.to_str().unwrap(), "-j", jobs, "--store", &store, "-p", &out];
            sandbox.stdout(&[&run[..], params].concat());
        }
        let one = artifacts(&sandbox.path().join("store-1"));
        assert!(one.len() > 10);
        assert!(one == artifacts(&sandbox.path().join("store-2")), "-j2 gives other bytes");
        assert!(one == artifacts(&sandbox.path().join("store-7")), "-j7 gives other bytes");
    }
}

/// Rows in another order are other files and the same graph: all cells put one artifact into the store.
#[test]
fn cells_that_give_the_same_at_the_same_moment_do_not_get_in_each_others_way() {
    let sandbox = Sandbox::new();
    let rows: Vec<String> =
        (0..60).map(|rank| format!("{rank},{},3,{}\n", (rank + 1) % 60, 100 + rank)).collect();
    for file in 0..60 {
        let (last, first) = rows.split_at(file);
        let text = format!("source,destination,messages,bytes\n{}{}", first.concat(), last.concat());
        sandbox.write(&format!("{file}.csv"), text);
    }
    let stage = "uses = \"trace/import\"\nwith = { path = \"${matrix.n}.csv\", format = \"csv\" }\nmatrix = { n = \"0..59\" }\n";
    sandbox.write("p.toml", format!("[stages.program]\n{stage}"));
    for round in 0..5 {
        let store = format!("store-{round}");
        sandbox.stdout(&["run", "p.toml", "-j8", "--quiet", "--no-report", "--store", &store]);
        let artifacts = std::fs::read_dir(sandbox.path().join(store).join("artifacts")).unwrap().count();
        assert_eq!(artifacts, 1);
    }
}
