//! `hopmap export`, and `hopmap verify` of archives.

use hopmap_test_support::{Random, program, seeds, skipped};
use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::sandbox::{Sandbox, project};

/// Names and bytes of the files of an archive.
type Members = BTreeMap<String, Vec<u8>>;

fn exported() -> Sandbox {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    sandbox.stdout(&["export", "ring.toml", "-o", "ring.crate.zip"]);
    sandbox
}

/// Files of an archive by name, read with a program that is not ours.
fn listed(sandbox: &Sandbox) -> Vec<String> {
    let script = "import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; print('\\n'.join(z.namelist()))";
    let output = Command::new("python3")
        .args(["-c", script, "ring.crate.zip"])
        .current_dir(sandbox.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_run_is_packed_and_checked() {
    if program("python3").is_none() {
        return;
    }
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    let seen = sandbox.seen(&["export", "ring.toml", "-o", "ring.crate.zip"]);
    assert!(seen.starts_with("ring.crate.zip: "), "{seen}");
    let verified = sandbox.seen(&["verify", "ring.crate.zip"]);
    assert!(
        verified.starts_with("ring.crate.zip: ") && verified.contains(" and 5 artifacts are intact"),
        "{verified}"
    );
    let names: Vec<String> =
        listed(&sandbox).into_iter().filter(|name| !name.starts_with("artifacts/")).collect();
    insta::assert_snapshot!(names.join("\n"), @r#"
    journal.jsonl
    pipeline/ring.csv
    pipeline/ring.toml
    report.html
    request.json
    results.jsonl
    ring.lock
    ro-crate-metadata.json
    "#);
}

#[test]
fn the_same_run_gives_the_same_bytes_and_no_folder_of_this_machine() {
    if program("python3").is_none() {
        return;
    }
    let sandbox = exported();
    sandbox.stdout(&["export", "-o", "again.crate.zip"]);
    let [one, other] =
        ["ring.crate.zip", "again.crate.zip"].map(|name| std::fs::read(sandbox.path().join(name)).unwrap());
    assert!(one == other);
    let folder = sandbox.path();
    for (name, bytes) in unpacked(&sandbox) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(name == "report.html" || !text.contains(folder.to_str().unwrap()), "{name}");
    }
}

fn unpacked(sandbox: &Sandbox) -> BTreeMap<String, Vec<u8>> {
    let place = sandbox.path().join("unpacked");
    let script = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])";
    let status = Command::new("python3")
        .args(["-c", script, "ring.crate.zip"])
        .arg(&place)
        .current_dir(sandbox.path())
        .status();
    assert!(status.unwrap().success());
    let names = listed(sandbox).into_iter();
    names.map(|name| (name.clone(), std::fs::read(place.join(&name)).unwrap())).collect()
}

/// Packs files with a program that is not ours.
fn packed(sandbox: &Sandbox, files: &BTreeMap<String, Vec<u8>>) {
    let place = sandbox.path().join("to-pack");
    let _ = std::fs::remove_dir_all(&place);
    for (name, bytes) in files {
        let path = place.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let script = "\
import os, sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED) as z:
    for folder, _, names in sorted(os.walk(sys.argv[2])):
        for name in sorted(names):
            path = os.path.join(folder, name)
            z.write(path, os.path.relpath(path, sys.argv[2]))
";
    let status = Command::new("python3")
        .args(["-c", script, "ring.crate.zip"])
        .arg(&place)
        .current_dir(sandbox.path())
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn everything_is_made_again_from_an_archive_on_another_machine() {
    let sandbox = exported();
    let elsewhere = Sandbox::new();
    std::fs::copy(sandbox.path().join("ring.crate.zip"), elsewhere.path().join("ring.crate.zip")).unwrap();
    drop(sandbox);
    insta::assert_snapshot!(elsewhere.seen(&["verify", "ring.crate.zip", "--rerun", "-j1", "-q"]), @"");
    let output = elsewhere.output(&["verify", "ring.crate.zip", "--rerun", "-j1"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("ring: 5 the same in "), "{said}");
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 1, "nothing is left beside the archive");
}

/// Files above the pipeline, files of `-p`, absolute paths, archives of several files: all are found again.
#[test]
fn inputs_are_found_again_wherever_they_were() {
    if program("python3").is_none() {
        return;
    }
    let sandbox = Sandbox::with_ring();
    let trace = project().join("sample-traces/rows-columns-16/eztrace_log.otf2");
    sandbox.write("deep/er/ring.csv", sandbox.read("ring.csv"));
    sandbox.write("data/ring 2.csv", sandbox.read("ring.csv"));
    sandbox.write(
        "deep/er/pipelines/p.toml",
        format!(
            "[params]\ngiven = \"none.csv\"\n\
             [stages.above]\nuses = \"trace/import\"\nwith = {{ path = \"../ring.csv\", format = \"csv\" }}\n\
             [stages.given]\nuses = \"trace/import\"\nwith = {{ path = \"${{params.given}}\", format = \"csv\" }}\n\
             [stages.absolute]\nuses = \"trace/otf2\"\nwith = {{ path = \"{}\" }}\n",
            trace.display()
        ),
    );
    let given = ["deep/er/pipelines/p.toml", "-p", "given=data/ring 2.csv"];
    sandbox.stdout(&[&["run"], &given[..], &["-j1"]].concat());
    sandbox.stdout(&[&["export"], &given[..], &["-o", "ring.crate.zip"]].concat());
    let names = listed(&sandbox);
    for name in ["pipeline/er/ring.csv", "pipeline/er/pipelines/p.toml", "working/data/ring 2.csv"] {
        assert!(
            names.contains(&name.to_owned()) || names.contains(&name.replace("/er/", "/")),
            "{name} of {names:?}"
        );
    }
    let elsewhere = Sandbox::new();
    std::fs::rename(sandbox.path().join("ring.crate.zip"), elsewhere.path().join("ring.crate.zip")).unwrap();
    drop(sandbox);
    let output = elsewhere.output(&["verify", "ring.crate.zip", "--rerun", "-j1"]);
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("p: 3 the same in "), "{said}");
}

/// Of an artifact that was made before all tables travel, wherever it lies: in a folder of its own or in a store.
#[test]
fn a_stored_artifact_travels_with_all_its_tables() {
    if program("python3").is_none() {
        return;
    }
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&[
        "exec",
        "trace/import",
        "-p",
        "path=ring.csv",
        "-p",
        "format=csv",
        "--out",
        "data/graph",
    ]);
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    let machine = sandbox.artifact("machine");
    let machine = machine.strip_prefix(sandbox.path()).unwrap().display();
    sandbox.write(
        "pipelines/p.toml",
        format!(
            "[stages.program]\nuses = \"stored/task-graph\"\nwith = {{ path = \"../data/graph\" }}\n\
             [stages.machine]\nuses = \"stored/system-graph\"\nwith = {{ path = \"../{machine}\" }}\n\
             [stages.placement]\nuses = \"map/linear\"\nneeds = {{ task-graph = \"program\", system = \"machine\" }}\n"
        ),
    );
    sandbox.stdout(&["run", "pipelines/p.toml", "-j1"]);
    sandbox.stdout(&["export", "pipelines/p.toml", "-o", "ring.crate.zip"]);
    let names = listed(&sandbox);
    assert!(names.iter().any(|name| name.ends_with("data/graph/edges.parquet")), "{names:?}");
    // The digest in the lock is not enough: the tables of the artifact have to be those that it describes.
    sandbox.damage("data/graph/edges.parquet");
    let seen = sandbox.seen(&["export", "pipelines/p.toml", "-o", "damaged.zip"]);
    assert!(seen.contains("data/graph/edges.parquet") && seen.ends_with("[exit code 1]\n"), "{seen}");
    let elsewhere = Sandbox::new();
    std::fs::rename(sandbox.path().join("ring.crate.zip"), elsewhere.path().join("ring.crate.zip")).unwrap();
    drop(sandbox);
    let output = elsewhere.output(&["verify", "ring.crate.zip", "--rerun", "-j1"]);
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("p: 3 the same in "), "{said}");
}

#[test]
fn an_archive_without_inputs_is_checked_but_not_made_again() {
    if program("python3").is_none() {
        return;
    }
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    sandbox.stdout(&["export", "-o", "ring.crate.zip", "--no-inputs"]);
    assert!(!listed(&sandbox).contains(&"pipeline/ring.csv".to_owned()));
    assert!(sandbox.output(&["verify", "ring.crate.zip"]).status.success());
    let seen = sandbox.seen(&["verify", "ring.crate.zip", "--rerun"]);
    assert!(seen.contains("has no input files, so nothing can be recomputed"), "{seen}");
    assert!(seen.ends_with("[exit code 2]\n"), "{seen}");
}

#[test]
fn a_file_that_was_changed_added_or_removed_is_named() {
    if program("python3").is_none() {
        return;
    }
    let sandbox = exported();
    let whole = unpacked(&sandbox);
    let table = whole.keys().find(|name| name.ends_with("ranks.parquet")).unwrap().clone();
    let verdict = |change: &dyn Fn(&mut Members)| {
        let mut files = whole.clone();
        change(&mut files);
        packed(&sandbox, &files);
        let output = sandbox.output(&["verify", "ring.crate.zip"]);
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, said) = verdict(&|_| {});
    assert_eq!(code, 0, "another program may pack the same files: {said}");
    let (code, said) = verdict(&|files| files.get_mut(&table).unwrap()[9] ^= 1);
    assert!(code == 3 && said.contains(&table), "{said}");
    let (code, said) = verdict(&|files| drop(files.remove("pipeline/ring.csv")));
    assert!(code == 3 && said.contains("pipeline/ring.csv: is missing"), "{said}");
    let (code, said) = verdict(&|files| drop(files.insert("artifacts/extra".into(), b"x".into())));
    assert!(code == 3 && said.contains("artifacts/extra: is not listed in the metadata"), "{said}");
    let (code, said) = verdict(&|files| drop(files.insert("ring.lock".into(), b"format = 1".into())));
    assert!(code == 3 && said.contains("ring.lock: does not match its size or checksum"), "{said}");
    let (code, said) = verdict(&|files| {
        let text = String::from_utf8(files["ro-crate-metadata.json"].clone()).unwrap();
        files.insert("ro-crate-metadata.json".into(), text.replace("contentSize", "size").into());
    });
    assert_eq!(code, 3, "{said}");
}

/// Whatever byte changes: it is found, and never a panic.
#[test]
fn every_changed_byte_is_found() {
    let sandbox = exported();
    let whole = std::fs::read(sandbox.path().join("ring.crate.zip")).unwrap();
    for round in seeds(60, 5000) {
        let mut random = Random(round);
        let mut bytes = whole.clone();
        // The end, where the directory and the seal are, is hit more often than its length is worth.
        let place = match round % 3 {
            0 => bytes.len() - 1 - random.below(2000.min(bytes.len())),
            _ => random.below(bytes.len()),
        };
        match round % 7 {
            0 => bytes.truncate(place),
            1 => drop(bytes.drain(place..bytes.len().min(place + 1 + random.below(9)))),
            2 => drop(bytes.splice(place..place, [random.below(256) as u8])),
            _ => bytes[place] ^= 1 << random.below(8),
        }
        sandbox.write("damaged.zip", &bytes);
        let output = sandbox.output(&["verify", "damaged.zip", "-q"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("panicked"), "byte {place}: {said}");
        assert!(
            matches!(output.status.code(), Some(2 | 3)),
            "byte {place} of {}, round {round}: {said}",
            whole.len()
        );
    }
}

/// Archives that no export writes: refused before anything is read.
#[test]
fn archives_that_could_do_harm_are_refused() {
    if program("python3").is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    let refused = |script: &str| {
        let script = format!(
            "import zipfile, stat\nz = zipfile.ZipFile('x.zip', 'w', zipfile.ZIP_DEFLATED)\n{script}\nz.close()\n"
        );
        let output =
            Command::new("python3").args(["-c", &script]).current_dir(sandbox.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        sandbox.seen(&["verify", "x.zip", "--rerun"])
    };
    let mut said = String::new();
    for script in [
        "z.writestr('../evil', 'x')",
        "z.writestr('/etc/evil', 'x')",
        "z.writestr('a\\\\b', 'x')",
        "i = zipfile.ZipInfo('link'); i.create_system = 3; i.external_attr = (stat.S_IFLNK | 0o777) << 16; z.writestr(i, '/etc')",
        "z.writestr('a', 'x'); z.writestr('a', 'y')",
        "z.writestr('bomb', b'\\0' * (1200 << 20))",
        "z.writestr('a', 'x')",
    ] {
        said.push_str(&refused(script));
    }
    insta::assert_snapshot!(said.replace("DIR/", ""), @r"
    ------- stderr -------
    error[archive::refused]: x.zip is refused: ../evil at byte 0: its path points outside of the archive
      help: `hopmap export` never writes this; do not unpack the archive with other programs either
    [exit code 2]
    ------- stderr -------
    error[archive::refused]: x.zip is refused: /etc/evil at byte 0: its path is absolute, or written for another system
      help: `hopmap export` never writes this; do not unpack the archive with other programs either
    [exit code 2]
    ------- stderr -------
    error[archive::refused]: x.zip is refused: a\\b at byte 0: its path is absolute, or written for another system
      help: `hopmap export` never writes this; do not unpack the archive with other programs either
    [exit code 2]
    ------- stderr -------
    error[archive::refused]: x.zip is refused: link at byte 0: it is a link or a special file
      help: `hopmap export` never writes this; do not unpack the archive with other programs either
    [exit code 2]
    ------- stderr -------
    error[archive::refused]: x.zip is refused: byte 0: files overlap, or the directory hides one
      help: `hopmap export` never writes this; do not unpack the archive with other programs either
    [exit code 2]
    ------- stderr -------
    error[archive::refused]: x.zip is refused: bomb at byte 0: it would unpack to more than a hundred times its size
      help: `hopmap export` never writes this; do not unpack the archive with other programs either
    [exit code 2]
    ------- stderr -------
    error[archive::foreign]: x.zip was not written by `hopmap export`: it has no ro-crate-metadata.json
      help: `hopmap export` packs a run
    [exit code 2]
    ");
    sandbox.write("x.zip", "no zip at all");
    insta::assert_snapshot!(sandbox.seen(&["verify", "x.zip"]), @r"
    ------- stderr -------
    error[archive::damaged]: DIR/x.zip is not an archive, or is damaged: its directory: invalid Zip archive: Could not find EOCD
      help: get the archive again; damage cannot be distinguished from forgery
    [exit code 2]
    ");
}

#[test]
fn what_cannot_be_packed_is_said() {
    let sandbox = Sandbox::with_ring();
    insta::assert_snapshot!(sandbox.seen(&["export", "ring.toml", "-o", "x.zip"]), @r"
    ------- stderr -------
    error[engine::missing]: there is no store at DIR/.hopmap
      help: `hopmap run` creates one; --store names another
    [exit code 2]
    ");
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    insta::assert_snapshot!(sandbox.seen(&["export", "none.toml", "-o", "x.zip"]), @r"
    ------- stderr -------
    error[command::mistake]: `none.toml` is neither a pipeline nor a run
      help: the newest runs: RUN
    [exit code 2]
    ");
    sandbox.edit("ring.csv", "1000", "2000");
    insta::assert_snapshot!(sandbox.seen(&["export", "-o", "x.zip"]), @r"
    ------- stderr -------
    error[lock::unfinished]: 4 of 5 cells of `ring` have no result: program, placement, quality, rankfile
      help: `hopmap run` computes them; `hopmap plan` lists why each has to run
    [exit code 2]
    ");
    assert!(!sandbox.path().join("x.zip").exists());
}

#[test]
fn the_metadata_are_a_process_run_crate() {
    if program("python3").is_none() {
        return;
    }
    let sandbox = exported();
    let files = unpacked(&sandbox);
    let metadata: Value = serde_json::from_slice(&files["ro-crate-metadata.json"]).unwrap();
    let graph = metadata["@graph"].as_array().unwrap();
    let entity = |id: &str| graph.iter().find(|entity| entity["@id"] == id).unwrap();
    assert_eq!(entity("./")["mainEntity"]["@id"], "pipeline/ring.toml");
    let action = graph.iter().find(|entity| entity["@type"] == "CreateAction").unwrap();
    assert_eq!(action["instrument"]["@id"], "pipeline/ring.toml");
    assert_eq!(action["object"]["@id"], "pipeline/ring.csv");
    assert_eq!(action["result"].as_array().unwrap().len(), 5);
    for reference in action["result"].as_array().unwrap() {
        entity(reference["@id"].as_str().unwrap());
    }
}

/// Read by the library of the RO-Crate community, where it is installed (`ci/python.sh`).
#[test]
fn the_library_of_ro_crate_reads_it() {
    if program("python3").is_none() {
        return;
    }
    let sandbox = exported();
    let script = "\
import sys
try:
    from rocrate.rocrate import ROCrate
except ImportError:
    sys.exit(77)
crate = ROCrate('ring.crate.zip')
print(crate.mainEntity.id, crate.mainEntity.type, crate.root_dataset['license'])
print(len([entity for entity in crate.data_entities if entity.type == 'Dataset']), 'artifacts')
";
    let python = std::env::var("HOPMAP_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output = Command::new(python).args(["-c", script]).current_dir(sandbox.path()).output().unwrap();
    if output.status.code() == Some(77) {
        skipped("the Python package rocrate is not installed");
        return;
    }
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    insta::assert_snapshot!(said, @r#"
    pipeline/ring.toml ['File', 'SoftwareSourceCode', 'ComputationalWorkflow'] no licence is stated
    5 artifacts
    "#);
}

#[test]
fn a_damaged_artifact_is_not_packed() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    let folder = sandbox.artifact("machine");
    let export = || sandbox.seen(&["export", "ring.toml", "-o", "ring.crate.zip"]);
    let description = std::fs::read_to_string(folder.join("artifact.json")).unwrap();
    let other = description.replace("\"hosts\": 4", "\"hosts\": 5");
    std::fs::write(folder.join("artifact.json"), other).unwrap();
    insta::assert_snapshot!(export(), @r"
    ------- stderr -------
    error[archive::damaged_artifact]: the artifact of `machine` is damaged: DIR/.hopmap/artifacts/DIGEST/artifact.json does not match its checksum
      help: delete the folder of the artifact, and `hopmap run` recomputes it; `hopmap verify` lists all damaged artifacts
    [exit code 1]
    ");
    std::fs::write(folder.join("artifact.json"), description).unwrap();
    sandbox.damage(folder.join("slots.parquet"));
    insta::assert_snapshot!(export(), @r"
    ------- stderr -------
    error[archive::damaged_artifact]: the artifact of `machine` is damaged: DIR/.hopmap/artifacts/DIGEST/slots.parquet does not match its checksum
      help: delete the folder of the artifact, and `hopmap run` recomputes it; `hopmap verify` lists all damaged artifacts
    [exit code 1]
    ");
    assert!(!sandbox.path().join("ring.crate.zip").exists());
    // Follow the help.
    std::fs::remove_dir_all(&folder).unwrap();
    sandbox.stdout(&["run", "ring.toml", "-j1"]);
    assert!(export().starts_with("ring.crate.zip: "));
}

#[test]
fn what_is_wrong_with_an_archive_is_said_even_when_quiet() {
    if program("python3").is_none() {
        return;
    }
    let sandbox = exported();
    assert_eq!(sandbox.seen(&["verify", "ring.crate.zip", "--quiet"]), "");
    let mut files = unpacked(&sandbox);
    files.remove("pipeline/ring.csv");
    packed(&sandbox, &files);
    insta::assert_snapshot!(sandbox.seen(&["verify", "ring.crate.zip", "--quiet"]), @"
    ------- stderr -------
      pipeline/ring.csv: is missing
    ring.crate.zip: 1 fault
    [exit code 3]
    ");
}

#[test]
fn one_fault_is_singular() {
    let sandbox = exported();
    let mut bytes = std::fs::read(sandbox.path().join("ring.crate.zip")).unwrap();
    // The last byte is a digit of the seal.
    *bytes.last_mut().unwrap() ^= 1;
    sandbox.write("ring.crate.zip", &bytes);
    let seen = sandbox.seen(&["verify", "ring.crate.zip"]);
    assert!(seen.contains("ring.crate.zip: 1 fault\n"), "{seen}");
}

/// Once `verify` took a missing archive for a pipeline file, and `import` had no hint.
#[test]
fn a_missing_archive_is_called_one() {
    let sandbox = Sandbox::new();
    let seen = sandbox.seen(&["verify", "lu.crate.zip"]);
    insta::assert_snapshot!(seen, @"
    ------- stderr -------
    error[archive::missing]: the archive DIR/lu.crate.zip does not exist
      help: check the path; `hopmap export` writes an archive
    [exit code 2]
    ");
    assert_eq!(sandbox.seen(&["import", "lu.crate.zip"]), seen);
}
