//! `hopmap import` of what `hopmap export` wrote.

use std::path::Path;
use std::process::Command;

use hopmap_test_support::program;
use serde_json::Value;

use crate::sandbox::{Sandbox, project};

fn exported(arguments: &[&str]) -> Sandbox {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&[&["run"], arguments, &["-j1"]].concat());
    sandbox.stdout(&[&["export"], arguments, &["-o", "ring.crate.zip"]].concat());
    sandbox
}

/// Another machine, where there is nothing but the archive.
fn elsewhere(sandbox: Sandbox) -> Sandbox {
    let elsewhere = Sandbox::new();
    std::fs::rename(sandbox.path().join("ring.crate.zip"), elsewhere.path().join("ring.crate.zip")).unwrap();
    drop(sandbox);
    elsewhere
}

/// How the cells of a pipeline ended in a run of it.
fn states(sandbox: &Sandbox, pipeline: &str) -> Vec<String> {
    let run: Value = serde_json::from_str(&sandbox.stdout(&["run", pipeline, "--json"])).unwrap();
    let states = run["cells"].as_array().unwrap().iter();
    states.map(|cell| cell["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_archive_becomes_a_project_with_its_results() {
    let sandbox = elsewhere(exported(&["ring.toml"]));
    insta::assert_snapshot!(sandbox.seen(&["import", "ring.crate.zip"]), @r"
    ring: 2 files, 5 results
      run it       hopmap run ring/ring.toml
    ");
    assert!(sandbox.path().join("ring/ring.csv").is_file());
    assert_eq!(states(&sandbox, "ring/ring.toml"), ["cached"; 5]);
    assert!(sandbox.path().join("ring/out/rankfile").is_file());
    assert!(sandbox.output(&["run", "ring/ring.toml", "--locked"]).status.success());
    assert!(sandbox.output(&["show", "placement", "--store", "ring/.hopmap"]).status.success());
}

/// Values of `-p` become defaults; what they name is found, relative and absolute paths alike.
#[test]
fn parameters_of_the_run_become_defaults_of_the_project() {
    let sandbox = Sandbox::with_ring();
    sandbox.write("data/own.csv", sandbox.read("ring.csv"));
    sandbox.edit("ring.toml", "shape = \"tree:2x4\"", "shape = \"${params.shape}\"");
    sandbox.edit("ring.toml", "[params]", "[params]\nshape = \"tree:2x2\"");
    let absolute = sandbox.path().join("data/own.csv");
    let trace = project().join("sample-traces/rows-columns-16/eztrace_log.otf2");
    let stage =
        format!("\n[stages.other]\nuses = \"trace/otf2\"\nwith = {{ path = \"{}\" }}\n", trace.display());
    sandbox.write("ring.toml", sandbox.read("ring.toml") + &stage);
    for path in [Path::new("data/own.csv"), &absolute] {
        let parameter = format!("ranks={}", path.display());
        let given = ["ring.toml", "-p", &parameter, "-p", "shape=tree:2x4"];
        sandbox.stdout(&[&["run"], &given[..], &["-j1"]].concat());
        sandbox.stdout(&[&["export"], &given[..], &["-o", "ring.crate.zip"]].concat());
        let elsewhere = Sandbox::new();
        std::fs::copy(sandbox.path().join("ring.crate.zip"), elsewhere.path().join("ring.crate.zip"))
            .unwrap();
        elsewhere.stdout(&["import", "ring.crate.zip", "a/project"]);
        let text = elsewhere.read("a/project/ring.toml");
        assert!(text.contains("shape = \"tree:2x4\"") && !text.contains("= \"/"), "{text}");
        assert_eq!(states(&elsewhere, "a/project/ring.toml"), ["cached"; 6], "{text}");
    }
}

#[test]
fn archives_and_folders_that_do_not_fit_are_refused() {
    let sandbox = elsewhere(exported(&["ring.toml"]));
    sandbox.write("full/note.txt", "mine");
    let said = sandbox.seen(&["import", "ring.crate.zip", "full"]);
    assert!(said.contains("full is not an empty folder") && said.ends_with("[exit code 2]\n"), "{said}");
    assert_eq!(std::fs::read_dir(sandbox.path().join("full")).unwrap().count(), 1);
    std::fs::create_dir(sandbox.path().join("empty")).unwrap();
    sandbox.stdout(&["import", "ring.crate.zip", "empty"]);
    let whole = std::fs::read(sandbox.path().join("ring.crate.zip")).unwrap();
    for length in [0, 9, whole.len() / 2, whole.len() - 1] {
        sandbox.write("cut.zip", &whole[..length]);
        let said = sandbox.seen(&["import", "cut.zip"]);
        assert!(said.contains("[exit code 2]") && !sandbox.path().join("cut").exists(), "{length}: {said}");
    }
    let sandbox = exported(&["ring.toml"]);
    sandbox.stdout(&["export", "ring.toml", "-o", "bare.zip", "--no-inputs"]);
    let said = sandbox.seen(&["import", "bare.zip"]);
    assert!(said.contains("bare.zip has no input files") && said.ends_with("[exit code 2]\n"), "{said}");
}

/// Another program packs the files again, one of them changed.
#[test]
fn a_damaged_artifact_is_named_and_nothing_gets_out_of_the_folder() {
    if program("python3").is_none() {
        return;
    }
    let sandbox = exported(&["ring.toml"]);
    let packed = |change: &str| {
        let script = format!(
            "import zipfile\n\
             old = zipfile.ZipFile('ring.crate.zip')\n\
             files = {{name: old.read(name) for name in old.namelist()}}\n\
             table = [name for name in files if name.endswith('ranks.parquet')][0]\n\
             {change}\n\
             with zipfile.ZipFile('other.zip', 'w') as new:\n    for name in files: new.writestr(name, files[name])\n"
        );
        let output =
            Command::new("python3").args(["-c", &script]).current_dir(sandbox.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        sandbox.seen(&["import", "other.zip", "made"])
    };
    let said = packed("files[table] = files[table][:9] + b'x' + files[table][10:]");
    assert!(said.contains("artifacts/") && said.contains("ranks.parquet"), "{said}");
    let said = packed("files['pipeline/../../evil'] = b'x'");
    assert!(said.contains("its path points outside of the archive"), "{said}");
    let said = packed("files['pipeline/.hopmap/state.log'] = b'x'");
    assert!(said.contains("pipeline/.hopmap/state.log"), "{said}");
    assert!(!sandbox.path().join("made").exists());
}

#[test]
fn an_archive_is_not_an_artifact_and_the_error_names_import() {
    let sandbox = exported(&["ring.toml"]);
    for arguments in [&["show", "ring.crate.zip"][..], &["diff", "ring.crate.zip", "placement"]] {
        let said = sandbox.seen(arguments);
        assert!(said.contains("hopmap import ring.crate.zip") && said.ends_with("[exit code 2]\n"), "{said}");
    }
}
