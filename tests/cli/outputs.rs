//! Commands that fill a folder replace nothing in it but what they wrote and nobody has changed: as a class, for every name that each of
//! them creates. `hopmap tune` is in `tune.rs`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::sandbox::Sandbox;
use crate::save::takes_marks;

/// The folder that all commands fill.
const OUT: &str = "out";
/// Names of a kind that are tried: manual pages are many.
const MOST: usize = 12;

/// Two calls of a command with other results.
const COMMANDS: &[[&str; 2]] = &[
    [
        "rank-order --topology labels.csv --hosts node[0-7] --gpus 2 --tp 2 --dp 2 --pp 4 -o out",
        "rank-order --topology labels.csv --hosts node[7,0,6,1,5,2,4,3] --gpus 2 --tp 2 --dp 4 --pp 2 -o out",
    ],
    [
        "trial --hosts a,b --slots 2 --launch open-mpi-hosts --launcher ./launcher --runs 6 -o out linear round-robin -- ./app 1",
        "trial --hosts a,b --slots 2 --launch open-mpi-hosts --launcher ./launcher --runs 6 -o out round-robin linear -- ./app 2",
    ],
    [
        "exec topology/synthetic -p shape=tree:2x2 -p hosts=h[0-1] -o out",
        "exec topology/synthetic -p shape=mesh:2 -p hosts=h[0-1] -o out",
    ],
    ["init out --from place", "init out --from route"],
    ["import ring.zip out", "import ring.zip out"],
];

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_ring();
    sandbox.edit("ring.toml", "out/rankfile", "rankfile");
    let mut labels = "host,leaf,spine\n".to_owned();
    for host in 0..8 {
        writeln!(labels, "node{host},leaf{},spine{}", host % 4, host % 4 / 2).unwrap();
    }
    sandbox.write("labels.csv", labels);
    script(&sandbox, "app", "#!/bin/sh\nexit 0\n");
    script(&sandbox, "launcher", "#!/bin/sh\nwhile [ \"$1\" != ./app ]; do shift; done\nexec \"$@\"\n");
    sandbox
}

fn script(sandbox: &Sandbox, name: &str, text: &str) {
    sandbox.write(name, text);
    std::fs::set_permissions(sandbox.path().join(name), Permissions::from_mode(0o755)).unwrap();
}

fn command(sandbox: &Sandbox, words: &str) -> Command {
    if words.starts_with("import") && !sandbox.path().join("ring.zip").exists() {
        sandbox.stdout(&["run", "ring.toml", "--no-report"]);
        sandbox.stdout(&["export", "ring.toml", "-o", "ring.zip"]);
    }
    let mut command = sandbox.command(&words.split_whitespace().collect::<Vec<_>>());
    command.stdin(Stdio::null());
    command
}

/// Runs it, whatever comes of it.
fn run(sandbox: &Sandbox, words: &str) -> String {
    let output = command(sandbox, words).output().unwrap();
    let seen =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.code().is_some() && !seen.contains("panicked"), "{words}:\n{seen}");
    seen
}

/// The files below a folder by their names, without those of stores.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type().unwrap().is_dir() {
            true if path.ends_with(".hopmap") => {}
            true => found.extend(files(&path)),
            false => drop(found.insert(path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    found
}

fn names(sandbox: &Sandbox) -> Vec<String> {
    let out = sandbox.path().join(OUT);
    files(&out)
        .into_keys()
        .map(|path| path.strip_prefix(&out).unwrap().to_str().unwrap().to_owned())
        .collect()
}

fn assert_no_file_is_replaced([words, other]: [&str; 2]) {
    let first = sandbox();
    let seen = run(&first, words);
    let mut names = names(&first);
    assert!(!names.is_empty(), "{seen}");
    names.truncate(MOST);
    for name in &names {
        let place = format!("{OUT}/{name}");
        let sandbox = sandbox();
        sandbox.write(&place, "mine\n");
        let seen = run(&sandbox, words);
        assert_eq!(sandbox.read(&place), "mine\n", "{words}: {name}:\n{seen}");
    }
    for name in &names {
        let sandbox = sandbox();
        run(&sandbox, words);
        let place = sandbox.path().join(OUT).join(name);
        let mut edited = std::fs::read(&place).unwrap();
        edited.extend_from_slice(b"# edited\n");
        std::fs::write(&place, &edited).unwrap();
        let seen = run(&sandbox, other);
        assert_eq!(std::fs::read(&place).unwrap(), edited, "{other}: {name}:\n{seen}");
    }
}

#[test]
fn no_file_of_a_user_is_replaced() {
    for command in COMMANDS {
        assert_no_file_is_replaced(*command);
    }
}

#[test]
fn two_calls_at_once_leave_what_one_leaves() {
    for [words, other] in COMMANDS {
        let sandbox = sandbox();
        let children = [words, other].map(|words| {
            command(&sandbox, words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        });
        for mut child in children {
            assert!([0, 1, 2, 75].contains(&child.wait().unwrap().code().unwrap()), "{words}");
        }
        let seen = run(&sandbox, words);
        assert!(!seen.contains("damaged") && !seen.contains("truncated"), "{words}:\n{seen}");
        let left = names(&sandbox);
        assert!(left.iter().all(|name| !name.contains(".tmp")), "{words}: {left:?}");
    }
}

/// Commands that write one file that the user names, here `out`.
const NAMED: &[&str] = &[
    "run ring.toml --report out",
    "report ring.toml --out out",
    "report ring.toml --timeline out",
    "run ring.toml --no-report --lock=out",
    "lock ring.toml -o out",
    "export ring.toml -o out",
    "accept placement --out out",
    "topology refresh machine.toml --publish pub --metrics out",
];

/// Results of `ring.toml`, a pipeline of a machine, and a file of each command that writes one, by its number.
fn sandbox_of_named() -> Sandbox {
    let sandbox = sandbox();
    let machine = "name = \"machine\"\n[stages.machine]\nuses = \"topology/synthetic\"\nwith = { shape = \"tree:2x2\" }\n";
    sandbox.write("machine.toml", machine);
    sandbox.stdout(&["run", "ring.toml", "--no-report"]);
    for (number, words) in NAMED.iter().enumerate() {
        named(&sandbox, words, &number.to_string());
    }
    sandbox
}

/// Runs a command that writes a file with this name; what it said, and its exit code.
fn named(sandbox: &Sandbox, words: &str, name: &str) -> (String, Option<i32>) {
    let with_name = |word: &str| match word {
        "out" => name.to_owned(),
        "--lock=out" => format!("--lock={name}"),
        word => word.to_owned(),
    };
    let words: Vec<String> = words.split(' ').map(with_name).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = sandbox.output(&words);
    let seen = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (seen.concat(), output.status.code())
}

/// `report --out place.toml` replaced the pipeline, and `export -o .hopmap/format` the store.
#[test]
fn no_file_that_is_named_is_replaced_unless_hopmap_wrote_one_of_its_kind() {
    let sandbox = sandbox_of_named();
    let kinds = [0, 0, 2, 3, 3, 5, 6, 7];
    let takes_marks = takes_marks();
    for (number, words) in NAMED.iter().enumerate() {
        let allowed = |name: &str| {
            let (seen, code) = named(&sandbox, words, name);
            assert_eq!(code, Some(0), "{words}: {name}:\n{seen}");
        };
        allowed(&number.to_string());
        sandbox.write("empty", "");
        allowed("empty");
        let file = std::fs::File::options().append(true).open(sandbox.path().join("empty"));
        std::io::Write::write_all(&mut file.unwrap(), b"<!-- mine -->\n").unwrap();
        std::fs::rename(sandbox.path().join("empty"), sandbox.path().join("edited")).unwrap();
        if kinds[number] == 0 {
            // As an editor that writes another file, without marks.
            let text = sandbox.read("edited");
            std::fs::remove_file(sandbox.path().join("edited")).unwrap();
            sandbox.write("edited", text);
        }
        std::os::unix::fs::symlink(number.to_string(), sandbox.path().join("link")).unwrap();
        sandbox.write("mine", "mine\n");
        std::fs::create_dir_all(sandbox.path().join("folder")).unwrap();
        let others =
            (0..NAMED.len()).filter(|other| kinds[*other] != kinds[number]).map(|other| other.to_string());
        let fixed = [
            if kinds[number] == 0 || (takes_marks && [2, 7].contains(&kinds[number])) {
                "edited"
            } else {
                "mine"
            },
            "mine",
            "ring.toml",
            "link",
            "folder",
            ".hopmap/format",
            ".hopmap/new",
            ".hopmap/new/folder/file",
            "artifacts/../.hopmap/format",
        ];
        std::fs::create_dir_all(sandbox.path().join("artifacts")).unwrap();
        for name in others.chain(fixed.map(str::to_owned)) {
            let place = sandbox.path().join(&name);
            let before = std::fs::read(&place).ok();
            let (seen, code) = named(&sandbox, words, &name);
            assert_eq!(code, Some(2), "{words}: {name}:\n{seen}");
            assert!(seen.contains("cli::foreign_file"), "{words}: {name}:\n{seen}");
            assert_eq!(std::fs::read(&place).ok(), before, "{words}: {name}");
        }
        std::fs::remove_file(sandbox.path().join("link")).unwrap();
    }
}

/// A run of other parameters replaced the report that was named, and that of the store.
#[test]
fn reports_of_other_parameters_stay_after_runs() {
    let sandbox = sandbox();
    sandbox.write("other.csv", crate::sandbox::ring(6));
    sandbox.stdout(&["run", "ring.toml", "-p", "ranks=ring.csv"]);
    sandbox.stdout(&["run", "ring.toml", "-p", "ranks=ring.csv", "--report", "mine.html"]);
    let (good, named) = (sandbox.read(".hopmap/reports/ring.html"), sandbox.read("mine.html"));
    let other = ["run", "ring.toml", "-p", "ranks=other.csv"];
    let seen = sandbox.seen(&[&other[..], &["--report", "mine.html"]].concat());
    assert!(seen.contains("mine.html is a report of other parameters"), "{seen}");
    assert!(sandbox.read("mine.html") == named);
    for ranks in ["ranks=other.csv", "ranks=none.csv"] {
        sandbox.seen(&["run", "ring.toml", "-p", ranks]);
        let reports = files(&sandbox.path().join(".hopmap/reports"));
        assert!(reports.values().any(|report| *report == good.as_bytes()), "{ranks}");
    }
}

/// `--store .` emptied the folders `work` and `artifacts` of a project, and `--publish .` pruned its folder `history`.
#[test]
fn stores_and_publications_take_no_folder_with_other_content() {
    let sandbox = sandbox_of_named();
    let commands = [
        ("store", "run ring.toml --no-report --store work/store"),
        ("store", "topology refresh machine.toml --publish pub --store work/store"),
        ("publish", "topology refresh machine.toml --publish work/store"),
    ];
    let contents: [&[&str]; 8] = [
        &["state/lock", "history/2020-01-01T00-00-00Z-mine/data"],
        &["notes.txt"],
        &["work/mine"],
        &["artifacts/mine"],
        &["history/2024/mine", "state/lock2"],
        &["history/mine"],
        &["state/mine", "current"],
        &[".notes.tmp"],
    ];
    for (kind, words) in commands {
        for files in contents {
            let _ = std::fs::remove_dir_all(sandbox.path().join("work/store"));
            files.iter().for_each(|file| sandbox.write(&format!("work/store/{file}"), "mine\n"));
            let before = self::files(&sandbox.path().join("work/store"));
            let seen = run(&sandbox, words);
            assert_eq!(
                self::files(&sandbox.path().join("work/store")),
                before,
                "{words}: {files:?}:\n{seen}"
            );
            assert!(
                seen.contains("engine::no_store") || seen.contains("refresh::foreign"),
                "{kind}: {files:?}:\n{seen}"
            );
        }
        let _ = std::fs::remove_dir_all(sandbox.path().join("work/store"));
        std::fs::create_dir(sandbox.path().join("work/store")).unwrap();
        sandbox.stdout(&words.split(' ').collect::<Vec<_>>());
        sandbox.stdout(&words.split(' ').collect::<Vec<_>>());
    }
}

/// A link to a folder became the folder, and an artifact of the store another one.
#[test]
fn links_to_folders_and_artifacts_of_stores_stay() {
    let sandbox = sandbox();
    sandbox.stdout(&["run", "ring.toml", "--no-report"]);
    sandbox.stdout(&["export", "ring.toml", "-o", "ring.zip"]);
    std::fs::create_dir(sandbox.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", sandbox.path().join("link")).unwrap();
    sandbox.stdout(&["import", "ring.zip", "link"]);
    assert!(sandbox.path().join("link").is_symlink() && sandbox.path().join("real/ring.toml").is_file());
    let artifact = sandbox.artifact("placement");
    let before = files(&artifact);
    let seen = run(&sandbox, &format!("exec topology/synthetic -p shape=tree:2x2 -o {}", artifact.display()));
    assert!(seen.contains("is in a store"), "{seen}");
    assert_eq!(files(&artifact), before);
}

/// A result that may have taken hours was dropped because something had come into its place.
#[test]
fn a_result_whose_place_was_taken_meanwhile_is_beside_it() {
    let sandbox = sandbox();
    script(&sandbox, "slow", "#!/bin/sh\nmkdir out\necho mine >out/mine\nexec \"$@\"\n");
    let seen = run(&sandbox, "exec topology/synthetic -p shape=tree:2x2 -o out --launcher ./slow");
    assert!(seen.contains("out was written while the stage ran"), "{seen}");
    assert!(seen.contains("the result is in out.1"), "{seen}");
    assert_eq!(sandbox.read("out/mine"), "mine\n");
    sandbox.stdout(&["show", "out.1"]);
}

/// A report of a pipeline that never ran left a folder that no run took.
#[test]
fn stores_that_a_report_began_are_taken() {
    for store in [".hopmap", "other"] {
        let sandbox = sandbox();
        run(&sandbox, &format!("report ring.toml --store {store}"));
        sandbox.stdout(&["run", "ring.toml", "--store", store]);
    }
}
