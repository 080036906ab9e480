//! `save`, and `exec --out`: copies for people replace nothing but copies.

use std::path::Path;
use std::process::Command;

use hopmap_test_support::skipped;

use crate::sandbox::{Sandbox, query_program, ring};

/// A pipeline that saves a file and an artifact.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_ring();
    sandbox.edit(
        "ring.toml",
        "[stages.quality]",
        "save  = { mapping = \"out/placement\" }\n\n[stages.quality]",
    );
    sandbox
}

/// Whether files can be marked here. Where they cannot, a file in the place of a copy is reported only when its stage has run.
pub(crate) fn takes_marks() -> bool {
    let file = tempfile::NamedTempFile::new().unwrap();
    let marked = rustix::fs::setxattr(file.path(), "user.hopmap.test", b"x", rustix::fs::XattrFlags::empty());
    if marked.is_err() {
        skipped("the file system of temporary files takes no extended attributes");
    }
    marked.is_ok()
}

/// What `check`, `plan` and `run` say, which is the same of each, and that nothing ran.
fn refused(sandbox: &Sandbox) -> String {
    let cells = || std::fs::read_dir(sandbox.path().join(".hopmap/artifacts")).into_iter().flatten().count();
    let before = cells();
    let said = ["check", "plan", "run"].map(|command| sandbox.seen(&[command, "ring.toml"]));
    assert_eq!([&said[1], &said[2]], [&said[0], &said[0]]);
    assert!(said[0].ends_with("[exit code 2]\n"), "{}", said[0]);
    assert_eq!(cells(), before, "something ran");
    said[0].clone()
}

#[test]
fn a_file_of_somebody_else_is_refused_before_anything_runs() {
    if !takes_marks() {
        return;
    }
    let sandbox = sandbox();
    sandbox.write("out/rankfile", "my life's work");
    insta::assert_snapshot!(refused(&sandbox), @r#"
    ------- stderr -------
    error[pipeline::invalid]: DIR/out/rankfile was not written by a `save` of this pipeline
        ,-[ring.toml:28:22]
     27 | needs = { mapping = "placement" }
     28 | save  = { rankfile = "out/rankfile" }
        :                      ^^^^^^^|^^^^^^
        :                             `-- here
        `----
      help: move it away if it is yours, or give the copy another path; a copy that was edited counts as yours
    [exit code 2]
    "#);
    assert_eq!(sandbox.read("out/rankfile"), "my life's work");
    // Follow the help.
    std::fs::remove_file(sandbox.path().join("out/rankfile")).unwrap();
    sandbox.stdout(&["run", "ring.toml"]);
    // A copy that was edited is somebody's too, though its result is known.
    sandbox.edit("out/rankfile", "rank 0=", "# mine\nrank 0=");
    assert!(refused(&sandbox).contains("out/rankfile was not written by a `save`"));
    assert!(sandbox.read("out/rankfile").contains("# mine"));
}

#[test]
fn links_and_folders_with_more_in_them_are_refused() {
    if !takes_marks() {
        return;
    }
    let sandbox = sandbox();
    sandbox.stdout(&["run", "ring.toml"]);
    let at = |name: &str| sandbox.path().join(name);
    std::fs::rename(at("out/rankfile"), at("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", at("out/rankfile")).unwrap();
    insta::assert_snapshot!(refused(&sandbox), @r#"
    ------- stderr -------
    error[pipeline::invalid]: DIR/out/rankfile is a symbolic link, which `save` would replace
        ,-[ring.toml:28:22]
     27 | needs = { mapping = "placement" }
     28 | save  = { rankfile = "out/rankfile" }
        :                      ^^^^^^^|^^^^^^
        :                             `-- here
        `----
      help: name its target, or remove it
    [exit code 2]
    "#);
    std::fs::remove_file(at("out/rankfile")).unwrap();
    for name in ["my-notes.txt", "plots/a.svg", "plots/b.svg"] {
        sandbox.write(&format!("out/placement/{name}"), "mine");
    }
    insta::assert_snapshot!(refused(&sandbox), @r#"
    ------- stderr -------
    error[pipeline::invalid]: DIR/out/placement also holds my-notes.txt, plots, which `save` would remove
        ,-[ring.toml:19:21]
     18 | 
     19 | save  = { mapping = "out/placement" }
        :                     ^^^^^^^|^^^^^^^
        :                            `-- here
     20 | 
        `----
      help: move it away, or choose another folder for the artifact
    [exit code 2]
    "#);
    // Also while there is nothing new to put there.
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 30000");
    assert!(refused(&sandbox).contains("also holds my-notes.txt, plots"));
    assert_eq!(sandbox.read("out/placement/my-notes.txt"), "mine");
    std::fs::remove_dir_all(at("out/placement")).unwrap();
    sandbox.write("out/placement/notes.txt", "mine");
    assert!(refused(&sandbox).contains("out/placement is a folder without an artifact"));
    std::fs::remove_dir_all(at("out/placement")).unwrap();
    sandbox.write("out/placement", "mine");
    assert!(refused(&sandbox).contains("out/placement was not written by a `save`"));
    std::fs::remove_file(at("out/placement")).unwrap();
    std::fs::create_dir(at("out/rankfile")).unwrap();
    assert!(refused(&sandbox).contains("out/rankfile is a folder"));
}

#[test]
fn the_files_of_a_pipeline_and_its_inputs_are_refused() {
    for (path, said) in [
        ("ring.toml", "`rankfile` would replace its own pipeline file"),
        ("out/../ring.lock", "`rankfile` would replace its lock file"),
        ("ring.accepted.json", "`rankfile` would replace its accepted values"),
        ("./ring.csv", "ring.csv is an input of `program`"),
    ] {
        let sandbox = Sandbox::with_ring();
        sandbox.edit("ring.toml", "\"out/rankfile\"", &format!("\"{path}\""));
        let text = sandbox.read("ring.toml");
        let refused = refused(&sandbox);
        assert!(refused.contains(said), "{refused}");
        assert_eq!((sandbox.read("ring.toml"), sandbox.read("ring.csv")), (text, ring(8)));
    }
}

#[test]
fn copies_in_each_others_way_are_refused() {
    let sandbox = sandbox();
    sandbox.edit("ring.toml", "\"out/rankfile\"", "\"out/x/../placement/rankfile\"");
    insta::assert_snapshot!(refused(&sandbox), @r#"
    ------- stderr -------
    error[pipeline::invalid]: the path of `rankfile` is inside the folder of `placement`
        ,-[ring.toml:28:22]
     27 | needs = { mapping = "placement" }
     28 | save  = { rankfile = "out/x/../placement/rankfile" }
        :                      ^^^^^^^^^^^^^^|^^^^^^^^^^^^^^
        :                                    `-- here
        `----
      help: give each a folder of its own
    [exit code 2]
    "#);
    sandbox.edit("ring.toml", "\"out/x/../placement/rankfile\"", "\"./out/placement\"");
    assert!(refused(&sandbox).contains("save to the same place"));
}

/// What hopmap wrote is replaced, whatever became of the store; what is there already, whoever wrote it, is taken.
#[test]
fn copies_of_another_store_are_replaced() {
    if !takes_marks() {
        return;
    }
    let sandbox = sandbox();
    sandbox.stdout(&["run", "ring.toml"]);
    let first = sandbox.read("out/rankfile");
    std::fs::remove_dir_all(sandbox.path().join(".hopmap")).unwrap();
    sandbox.edit("ring.csv", "3,6", "3,7");
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 20");
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.stdout(&["run", "ring.toml", "--store", "another"]);
    assert!(sandbox.stdout(&["run", "ring.toml"]).contains("nothing to do"));
    let placement = sandbox.read("out/placement/artifact.json");
    assert_ne!(first, sandbox.read("out/rankfile"));
    // The same bytes without a mark, as a clone or a copy of the project has them.
    let rankfile = sandbox.read("out/rankfile");
    std::fs::remove_dir_all(sandbox.path().join("out")).unwrap();
    sandbox.write("out/rankfile", &rankfile);
    assert!(!sandbox.stdout(&["run", "ring.toml"]).contains("rankfile  (restored)"));
    assert_eq!(
        (sandbox.read("out/rankfile"), sandbox.read("out/placement/artifact.json")),
        (rankfile, placement)
    );
    // From now on it is a copy like others.
    sandbox.edit("ring.toml", "evaluations = 20 ", "evaluations = 20000 ");
    sandbox.stdout(&["run", "ring.toml"]);
}

/// A pipeline is known by its file, not by a bare name.
#[test]
fn copies_of_a_pipeline_of_the_same_name_are_refused() {
    if !takes_marks() {
        return;
    }
    let sandbox = sandbox();
    sandbox.stdout(&["run", "ring.toml"]);
    let copies = || [sandbox.read("out/rankfile"), sandbox.read("out/placement/artifact.json")];
    let before = copies();
    sandbox.write("big.toml", sandbox.read("ring.toml").replace("evaluations = 20000", "evaluations = 20"));
    for store in [&[][..], &["--store", "another"][..]] {
        let said = sandbox.seen(&[&["run", "big.toml"], store].concat());
        for copy in ["out/rankfile", "out/placement"] {
            assert!(said.contains(&format!("{copy} was not written by a `save` of this pipeline")), "{said}");
        }
    }
    assert_eq!(copies(), before);
    // Its own store is not what a pipeline knows its copies by.
    sandbox.edit("ring.csv", "3,6", "3,7");
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 20");
    sandbox.stdout(&["run", "ring.toml", "--store", "out/another"]);
    assert_ne!(copies(), before);
}

#[test]
fn a_project_replaces_the_copies_of_the_pipeline_that_it_was_made_of() {
    let sandbox = Sandbox::new();
    let trace = crate::sandbox::project().join("sample-traces/rows-columns-16/eztrace_log.otf2");
    let trace = trace.to_str().unwrap();
    let parameter = format!("trace={trace}");
    sandbox.stdout(&["run", "place", "-p", &parameter, "-p", "shape=tree:2x2x4"]);
    let rankfile = sandbox.read("out/rankfile");
    sandbox.stdout(&["init", "--trace", trace, "--shape", "tree:4x2x2"]);
    sandbox.stdout(&["run", "place.toml"]);
    assert_ne!(sandbox.read("out/rankfile"), rankfile);
    // The name of the bundled pipeline is now that of the file.
    let said = sandbox.seen(&["run", "place", "--trace", trace, "--shape", "tree:2x2x4"]);
    assert!(said.contains("\nplace is place.toml of this folder, not the bundled pipeline\n"), "{said}");
    assert_eq!(sandbox.read("out/rankfile"), rankfile);
}

/// Such as one that was made with `exec`: it may or may not be in a store as well.
#[test]
fn an_artifact_of_somebody_else_is_refused() {
    if !takes_marks() {
        return;
    }
    let sandbox = sandbox();
    let machine = ["exec", "topology/synthetic", "-p", "shape=tree:2", "-p", "costs=[1]"];
    sandbox.stdout(&[&machine[..], &["--out", "out/placement"]].concat());
    assert!(refused(&sandbox).contains("out/placement was not written by a `save` of this pipeline"));
    std::fs::remove_dir_all(sandbox.path().join("out/placement")).unwrap();
    sandbox.stdout(&["run", "ring.toml"]);
    // A copy of an older version, which marked none and wrote none down.
    let copied =
        Command::new("cp").args(["-r", "out/placement", "plain"]).current_dir(sandbox.path()).status();
    assert!(copied.unwrap().success());
    std::fs::remove_dir_all(sandbox.path().join("out/placement")).unwrap();
    std::fs::rename(sandbox.path().join("plain"), sandbox.path().join("out/placement")).unwrap();
    let log = sandbox.read(".hopmap/state.log");
    let older: Vec<&str> = log.lines().filter(|line| !line.starts_with("{\"saved\"")).collect();
    sandbox.write(".hopmap/state.log", older.join("\n") + "\n");
    let placement = sandbox.read("out/placement/artifact.json");
    sandbox.edit("ring.csv", "3,6", "3,7");
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 20");
    sandbox.stdout(&["run", "ring.toml"]);
    assert_ne!(sandbox.read("out/placement/artifact.json"), placement);
}

/// The log alone knows a copy where the file system takes no marks.
#[test]
fn a_copy_without_a_mark_is_known_by_the_store() {
    if !takes_marks() {
        return;
    }
    let sandbox = sandbox();
    sandbox.stdout(&["run", "ring.toml"]);
    let rankfile = sandbox.read("out/rankfile");
    std::fs::remove_file(sandbox.path().join("out/rankfile")).unwrap();
    sandbox.write("out/rankfile", &rankfile);
    sandbox.stdout(&["gc"]);
    sandbox.edit("ring.csv", "3,6", "3,7");
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 20");
    sandbox.stdout(&["run", "ring.toml"]);
    assert_ne!(sandbox.read("out/rankfile"), rankfile);
    // Another pipeline has no right to it.
    sandbox.edit("ring.toml", "name = \"ring\"", "name = \"other\"");
    sandbox.edit("ring.toml", "evaluations = 20 ", "evaluations = 30 ");
    assert!(refused(&sandbox).contains("out/rankfile was not written by a `save` of this pipeline"));
}

/// Older versions wrote nothing down about copies.
#[test]
fn a_copy_of_an_older_version_is_known_by_the_last_result() {
    let sandbox = sandbox();
    sandbox.stdout(&["run", "ring.toml"]);
    let rankfile = sandbox.read("out/rankfile");
    std::fs::remove_file(sandbox.path().join("out/rankfile")).unwrap();
    sandbox.write("out/rankfile", &rankfile);
    let log = sandbox.read(".hopmap/state.log");
    let older: Vec<&str> = log.lines().filter(|line| !line.starts_with("{\"saved\"")).collect();
    assert!(older.len() < log.lines().count());
    sandbox.write(".hopmap/state.log", older.join("\n") + "\n");
    sandbox.edit("ring.csv", "3,6", "3,7");
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 20");
    sandbox.stdout(&["run", "ring.toml"]);
    assert_ne!(sandbox.read("out/rankfile"), rankfile);
    assert!(sandbox.stdout(&["run", "ring.toml"]).contains("nothing to do"));
}

#[test]
fn a_copy_that_was_edited_or_damaged_is_refused_until_it_is_removed() {
    for name in ["out/placement/ranks.parquet", "out/placement/provenance.json"] {
        let sandbox = sandbox();
        sandbox.stdout(&["run", "ring.toml"]);
        let table = sandbox.path().join(name);
        let whole = std::fs::read(&table).unwrap();
        match name.ends_with("parquet") {
            true => sandbox.damage(name),
            false => sandbox.write(name, &whole[..whole.len() / 2]),
        }
        let changed = std::fs::read(&table).unwrap();
        refused(&sandbox);
        assert_eq!(std::fs::read(&table).unwrap(), changed);
        std::fs::remove_dir_all(sandbox.path().join("out/placement")).unwrap();
        assert!(sandbox.stdout(&["run", "ring.toml"]).contains("out/placement  (restored)\n"));
        assert_eq!(std::fs::read(&table).unwrap(), whole);
        assert!(!sandbox.stdout(&["run", "ring.toml"]).contains("restored"));
    }
    // What a purge has removed is written again.
    let sandbox = sandbox();
    sandbox.stdout(&["run", "ring.toml"]);
    std::fs::remove_file(sandbox.path().join("out/placement/ranks.parquet")).unwrap();
    assert!(sandbox.stdout(&["run", "ring.toml"]).contains("out/placement  (restored)\n"));
}

/// A gate whose state is known.
fn gated(bound: &str) -> Sandbox {
    let sandbox = sandbox();
    sandbox.write("ring.toml", sandbox.read("ring.toml") + "\n[gates]\nquality = \"placement.F <= 1e9\"\n");
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.edit("ring.toml", "<= 1e9", bound);
    sandbox.edit("ring.csv", "3,6", "3,7");
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 20");
    sandbox
}

#[test]
fn a_broken_gate_holds_copies_back() {
    let sandbox = gated("<= 1");
    let before = [sandbox.read("out/rankfile"), sandbox.read("out/placement/artifact.json")];
    let there = || [sandbox.read("out/rankfile"), sandbox.read("out/placement/artifact.json")];
    let output = sandbox.output(&["run", "ring.toml", "--quiet"]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    insta::assert_snapshot!(said, @r"
    error[gates::failed]: gate quality: placement.F is 44,000, allowed 1: 4,399,900 % above
    ");
    assert_eq!(there(), before);
    // Nor does a run with nothing to do deliver them, and a plan reports it.
    let again = sandbox.seen(&["run", "ring.toml"]);
    assert!(
        again.contains("nothing to do") && again.contains("  held back    out/placement, out/rankfile: "),
        "{again}"
    );
    // Accepting values changes no constant.
    assert!(!again.contains("hopmap accept"), "{again}");
    let plan = sandbox.seen(&["plan", "ring.toml"]);
    assert!(
        !plan.contains("restores") && plan.contains("  held back    out/placement, out/rankfile: "),
        "{plan}"
    );
    assert_eq!(there(), before);
    // When the gate holds they come without anything being run.
    sandbox.edit("ring.toml", "<= 1\"", "<= 1e9\"");
    let delivered = sandbox.stdout(&["run", "ring.toml"]);
    assert!(
        delivered.contains("nothing to do") && delivered.contains("out/rankfile  (restored)"),
        "{delivered}"
    );
    assert_ne!(there()[0], before[0]);
}

#[test]
fn copies_are_made_in_spite_of_a_gate_where_that_is_wanted() {
    let sandbox = gated("<= 1");
    let before = sandbox.read("out/rankfile");
    sandbox.write("ring.toml", format!("save_on_failure = true\n{}", sandbox.read("ring.toml")));
    let seen = sandbox.seen(&["run", "ring.toml"]);
    assert!(seen.ends_with("[exit code 3]\n") && !seen.contains("held back"), "{seen}");
    assert_ne!(sandbox.read("out/rankfile"), before);
    sandbox.edit("ring.toml", "save_on_failure = true", "save_on_failure = 1");
    assert!(sandbox.seen(&["check", "ring.toml"]).contains("`save_on_failure` should be true or false"));
}

#[test]
fn a_gate_that_is_open_holds_nothing_back() {
    let sandbox = gated("<= 1.02 * accepted");
    let before = sandbox.read("out/rankfile");
    assert!(!sandbox.stdout(&["run", "ring.toml"]).contains("held back"));
    assert_ne!(sandbox.read("out/rankfile"), before);
}

#[test]
fn a_table_replaces_no_file_of_somebody_else() {
    if query_program().is_none() || !takes_marks() {
        return;
    }
    let sandbox = Sandbox::with_ring();
    let table = "\n[tables.cells]\nsql = \"SELECT COUNT(*) AS cells FROM cells\"\nsave = \"mine.csv\"\n";
    sandbox.write("ring.toml", sandbox.read("ring.toml") + table);
    sandbox.write("mine.csv", "1,2\n");
    assert!(refused(&sandbox).contains("mine.csv was not written by a `save`"));
    std::fs::remove_file(sandbox.path().join("mine.csv")).unwrap();
    sandbox.stdout(&["run", "ring.toml"]);
    assert_eq!(sandbox.read("mine.csv"), "cells\n5\n");
    sandbox.edit("ring.toml", "AS cells", "AS number");
    sandbox.stdout(&["run", "ring.toml"]);
    assert_eq!(sandbox.read("mine.csv"), "number\n5\n");
    sandbox.edit("ring.toml", "AS number", "AS other");
    sandbox.write("ring.toml", sandbox.read("ring.toml") + "\n[gates]\nquality = \"placement.F <= 1\"\n");
    let seen = sandbox.seen(&["run", "ring.toml"]);
    assert!(seen.contains("  held back    mine.csv: "), "{seen}");
    assert_eq!(sandbox.read("mine.csv"), "number\n5\n");
    // A table in the place of a copy.
    sandbox.edit("ring.toml", "\"mine.csv\"", "\"out/rankfile/mine.csv\"");
    assert!(refused(&sandbox).contains("the path of table `cells` is inside the folder of `rankfile`"));
}

#[test]
fn exec_replaces_an_artifact_and_nothing_else() {
    let sandbox = Sandbox::new();
    let made = |shape: &str| {
        let shape = format!("shape={shape}");
        sandbox.seen(&["exec", "topology/synthetic", "-p", &shape, "-p", "costs=[1]", "--out", "machine"])
    };
    made("tree:2");
    assert!(made("tree:4").starts_with("system-graph "));
    sandbox.write("machine/notes.txt", "mine");
    insta::assert_snapshot!(made("tree:2"), @r"
    ------- stderr -------
    error[command::mistake]: DIR/machine also holds notes.txt, which `exec` would remove
      help: move your files elsewhere, or name another folder
    [exit code 2]
    ");
    assert_eq!(sandbox.read("machine/notes.txt"), "mine");
    std::fs::remove_file(sandbox.path().join("machine/notes.txt")).unwrap();
    sandbox.damage("machine/slots.parquet");
    insta::assert_snapshot!(made("tree:2"), @r"
    ------- stderr -------
    error[command::mistake]: DIR/machine/slots.parquet is damaged: its hash differs from the one in artifact.json
      help: move your files elsewhere, or name another folder
    [exit code 2]
    ");
    std::fs::rename(sandbox.path().join("machine"), sandbox.path().join("other")).unwrap();
    std::os::unix::fs::symlink(Path::new("other"), sandbox.path().join("machine")).unwrap();
    assert!(
        made("tree:2").contains("machine is a symbolic link")
            || made("tree:2").contains("other is a symbolic link")
    );
}
