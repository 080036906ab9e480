//! Commands of a pipeline that came in an archive: shown, and started only when the user asks.

use crate::sandbox::Sandbox;

/// Every command leaves a file behind.
const PIPELINE: &str = r#"name = "p"
[stages.program]
uses = "instance/stencil"
with = { shape = "2x2" }
[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x2", costs = [1, 10] }
[stages.theirs]
uses  = "map/external"
with  = { command = "touch DIR/started; printf '1\n2\n3\n4\n'" }
needs = { task-graph = "program", system = "machine" }
[stages.quality]
uses  = "evaluate/mapping"
needs = { task-graph = "program", system = "machine", mapping = "theirs" }
"#;

struct Archive {
    sandbox: Sandbox,
}

impl Archive {
    fn of(pipeline: &str) -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("p.toml", pipeline.replace("DIR", &sandbox.path().display().to_string()));
        sandbox.stdout(&["run", "p.toml", "-j1"]);
        sandbox.stdout(&["export", "p.toml", "-o", "p.zip"]);
        let archive = Self { sandbox };
        archive.forget();
        archive
    }

    fn has_started(&self) -> bool {
        self.sandbox.path().join("started").exists()
    }

    fn forget(&self) {
        let _ = std::fs::remove_file(self.sandbox.path().join("started"));
    }
}

#[test]
fn a_trial_in_an_imported_project_starts_what_its_user_has_typed() {
    let archive = Archive::of(PIPELINE);
    let sandbox = &archive.sandbox;
    sandbox.stdout(&["import", "p.zip", "new"]);
    let trial = [
        "trial",
        "--hosts",
        "a,b",
        "--slots",
        "2",
        "--launch",
        "open-mpi-hosts",
        "--launcher",
        "true",
        "--runs",
        "6",
    ];
    let output = sandbox
        .command(&[&trial[..], &["linear", "round-robin", "--", "true"]].concat())
        .current_dir(sandbox.path().join("new"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // What the archive brought is not allowed by that.
    assert_eq!(sandbox.output(&["run", "new/p.toml"]).status.code(), Some(2));
}

#[test]
fn an_imported_project_starts_a_command_only_after_it_was_shown_and_allowed() {
    let archive = Archive::of(PIPELINE);
    let sandbox = &archive.sandbox;
    sandbox.stdout(&["import", "p.zip", "new"]);
    let run = ["run", "new/p.toml", "-j1"];
    let seen = sandbox.seen(&run);
    assert!(seen.contains("stage `theirs`: touch ") && seen.ends_with("[exit code 2]\n"), "{seen}");
    assert!(seen.contains("--allow-programs"), "{seen}");
    // Without the store there is more to run, and not less to ask.
    std::fs::rename(sandbox.path().join("new/.hopmap"), sandbox.path().join("store")).unwrap();
    assert_eq!(sandbox.output(&run).status.code(), Some(2));
    assert_eq!(sandbox.output(&[&run[..], &["--store", "other"]].concat()).status.code(), Some(2));
    std::fs::remove_dir_all(sandbox.path().join("new/.hopmap")).unwrap_or_default();
    std::fs::rename(sandbox.path().join("store"), sandbox.path().join("new/.hopmap")).unwrap();
    for arguments in [
        &["plan", "new/p.toml"][..],
        &["check", "new/p.toml"],
        &["report", "new/p.toml"],
        &["show", "theirs", "--store", "new/.hopmap"],
        &["verify", "new/p.toml", "-j1"],
    ] {
        sandbox.stdout(arguments);
    }
    assert!(!archive.has_started());
    sandbox.stdout(&[&run[..], &["--allow-programs"]].concat());
    assert!(archive.has_started());
    archive.forget();
    sandbox.stdout(&run);
    assert!(archive.has_started(), "it is asked only once");
}

/// A stage that runs alone asked nothing.
#[test]
fn a_launch_file_of_an_imported_project_starts_nothing_before_it_is_allowed() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml", "--no-report"]);
    sandbox.stdout(&["export", "ring.toml", "-o", "ring.zip"]);
    sandbox.stdout(&["import", "ring.zip", "new"]);
    let [mapping, launch] = [("mapping", "placement"), ("launch", "rankfile")].map(|(port, stage)| {
        let digest = sandbox.artifact(stage).file_name().unwrap().to_owned();
        format!("{port}=new/.hopmap/artifacts/{}", digest.display())
    });
    let check = ["exec", "launch/check", "--in", &mapping, "--in", &launch, "-o", "checked"];
    let seen = sandbox.seen(&check);
    assert!(seen.contains("is of an imported project, and would start: mpirun"), "{seen}");
    assert!(seen.ends_with("[exit code 2]\n") && !sandbox.path().join("checked").exists(), "{seen}");
    // What the user types instead of the command of the file is theirs.
    let seen = sandbox.seen(&[&check[..], &["-p", "command=./none {file} {program}"]].concat());
    assert!(!seen.contains("imported project"), "{seen}");
    sandbox.stdout(&["run", "new/ring.toml", "--allow-programs", "--no-report"]);
    assert!(!sandbox.seen(&check).contains("imported project"));
}

#[test]
fn a_verification_starts_no_command() {
    let archive = Archive::of(PIPELINE);
    let sandbox = &archive.sandbox;
    let said = sandbox.stdout(&["verify", "p.zip", "--rerun", "-j1"]);
    assert!(said.contains("not comparable") && !archive.has_started(), "{said}");
    // Without a result to take there is none.
    sandbox.stdout(&["run", "p.toml", "-j1", "--lock"]);
    archive.forget();
    std::fs::remove_dir_all(sandbox.path().join(".hopmap")).unwrap();
    let output = sandbox.output(&["verify", "p.toml", "--lock", "-j1"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("it starts `touch ") && !archive.has_started(), "{said}");
}

#[test]
fn a_launcher_of_an_archive_is_shown_and_not_used_for_verification() {
    let launched = r#"name = "p"
[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x2", costs = [1, 10] }
launcher = "sh -c 'touch DIR/started; exec \"$@\"' launcher"
"#;
    let sandbox = Sandbox::new();
    let here = sandbox.path().display().to_string();
    sandbox.write("p.toml", launched.replace("DIR", &here));
    // The result is made without the launcher, which is not part of a key and needs `hopmap-ranks`.
    let (plain, _) = launched.split_once("launcher =").unwrap();
    let text = sandbox.read("p.toml");
    sandbox.write("p.toml", plain);
    sandbox.stdout(&["run", "p.toml", "-j1"]);
    sandbox.write("p.toml", text);
    sandbox.stdout(&["export", "p.toml", "-o", "p.zip"]);
    let archive = Archive { sandbox };
    let said = archive.sandbox.stdout(&["verify", "p.zip", "--rerun", "-j1"]);
    assert!(said.contains("1 the same") && !archive.has_started(), "{said}");
    archive.sandbox.stdout(&["import", "p.zip", "new"]);
    let seen = archive.sandbox.seen(&["run", "new/p.toml", "-j1", "--store", "empty"]);
    assert!(seen.contains("stage `machine`: sh -c ") && !archive.has_started(), "{seen}");
}
