//! The rules of the house, read off `cargo metadata` and the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use hopmap_process::on_path;
use serde_json::Value;

use crate::imports::Imports;
use crate::markdown::pages_below;
use crate::sandbox::{Sandbox, project};

struct Workspace {
    /// Folder of each crate of ours below the project.
    folders: BTreeMap<String, PathBuf>,
    /// The first file of the library and of every program, test, bench and example of each crate of ours.
    roots: BTreeMap<String, Vec<PathBuf>>,
    /// Direct and transitive dependencies of each package, by name, without development dependencies.
    dependencies: BTreeMap<String, BTreeSet<String>>,
    /// Crates of ours that declare that they use Arrow.
    uses_arrow: BTreeSet<String>,
}

fn workspace() -> Workspace {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &host()])
        .current_dir(project())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let names: BTreeMap<String, String> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (text(&package["id"]), text(&package["name"])))
        .collect();
    let mut direct: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        let needed = node["deps"].as_array().unwrap().iter().filter(|needed| {
            needed["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"] != "dev")
        });
        let needed = needed.map(|needed| names[needed["pkg"].as_str().unwrap()].clone());
        direct.entry(names[node["id"].as_str().unwrap()].clone()).or_default().extend(needed);
    }
    let members = metadata["workspace_members"].as_array().unwrap();
    let is_member = |package: &&Value| members.contains(&package["id"]);
    let folders = metadata["packages"].as_array().unwrap().iter().filter(is_member).map(|package| {
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let folder = manifest.parent().unwrap().strip_prefix(project()).unwrap().to_owned();
        (text(&package["name"]), folder)
    });
    let roots = metadata["packages"].as_array().unwrap().iter().filter(is_member).map(|package| {
        let targets = package["targets"].as_array().unwrap().iter();
        let is_built = |target: &&Value| target["kind"][0] != "custom-build";
        (
            text(&package["name"]),
            targets.filter(is_built).map(|target| text(&target["src_path"]).into()).collect(),
        )
    });
    let dependencies = direct.keys().map(|name| (name.clone(), closure(name, &direct))).collect();
    let uses_arrow = metadata["packages"].as_array().unwrap().iter().filter(is_member);
    let uses_arrow = uses_arrow.filter(|package| package["metadata"]["hopmap"]["arrow"] == true);
    let uses_arrow = uses_arrow.map(|package| text(&package["name"])).collect();
    Workspace { folders: folders.collect(), roots: roots.collect(), dependencies, uses_arrow }
}

/// The platform of this machine: packages for others are not there.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

fn closure(name: &str, direct: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        open.extend(direct[&name].iter().filter(|needed| found.insert((*needed).clone())).cloned());
    }
    found
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    Core,
    Stage,
    App,
    /// What only tests use.
    Tests,
}

/// The layer of a crate, from its folder.
fn layer(folder: &Path) -> Layer {
    match folder.iter().next().and_then(|first| first.to_str()) {
        // The root package, and the programs beside `hopmap`.
        None | Some("apps") => Layer::App,
        Some("stages") => Layer::Stage,
        Some("core") => Layer::Core,
        Some("tests") => Layer::Tests,
        Some(other) => panic!("{other}/ is not a layer"),
    }
}

#[test]
fn stages_and_core_depend_on_core_alone() {
    let workspace = workspace();
    for (name, folder) in &workspace.folders {
        let needed = workspace.dependencies[name].iter().filter_map(|needed| workspace.folders.get(needed));
        for needed in needed {
            match layer(folder) {
                Layer::App => assert_ne!(layer(needed), Layer::Tests, "{name} depends on {needed:?}"),
                Layer::Tests => {}
                Layer::Stage | Layer::Core => {
                    assert_eq!(layer(needed), Layer::Core, "{name} depends on {needed:?}");
                }
            }
        }
    }
}

/// Arrow and Parquet take most of a build. Only crates that declare `[package.metadata.hopmap] arrow = true` may depend on them.
#[test]
fn algorithms_build_without_arrow() {
    let workspace = workspace();
    let is_arrow = |needed: &&String| needed.starts_with("arrow") || *needed == "parquet";
    let in_layers = |layers: &[Layer]| {
        let folders = workspace.folders.iter();
        folders
            .filter(|(_, folder)| layers.contains(&layer(folder)))
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
    };
    for name in in_layers(&[Layer::Core, Layer::Stage]) {
        let heavy = workspace.dependencies[name].iter().find(is_arrow);
        let is_declared = workspace.uses_arrow.contains(name);
        assert_eq!(heavy.is_some(), is_declared, "{name}: {heavy:?}");
    }
}

/// Polars is for `hopmap-query` alone: `hopmap` builds in the time that its own code takes.
#[test]
fn hopmap_itself_builds_without_sql() {
    let workspace = workspace();
    let is_sql = |needed: &&String| needed.starts_with("polars") || *needed == "sqlparser";
    assert_eq!(workspace.dependencies["hopmap"].iter().find(is_sql), None);
    assert!(workspace.dependencies["hopmap-query"].iter().any(|needed| needed == "polars"));
}

/// Foreign crates have the same features in every build, and those of the demo are those of `make test`, so that none is built twice:
/// macros such as those of serde would build everything else twice.
#[test]
fn builds_with_other_programs_and_libraries_use_what_the_demo_has_built() {
    let tree = |arguments: &[&str]| {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["tree", "--locked", "--prefix", "none", "--format", "{p} {f}", "--target"]);
        let output = command.arg(host()).args(arguments).current_dir(project()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().map(|line| line.trim_end_matches(" (*)").trim_end().to_owned());
        lines.collect::<BTreeSet<_>>()
    };
    let everything = tree(&["--workspace", "--features", "metis libotf2 highs"]);
    let without = ["--exclude", "otf2-sys", "--exclude", "hopmap-query", "--exclude", "hopmap-ranks"];
    let newcomer = tree(&[&["--workspace"], &without[..]].concat());
    assert!(newcomer.len() > 100, "{newcomer:?}");
    let is_foreign = |line: &&String| !line.contains("(/");
    let twice: Vec<&String> = newcomer.difference(&everything).filter(is_foreign).collect();
    assert_eq!(
        twice, [""; 0],
        "other builds need more features: add them to `Cargo.toml`, where it says why"
    );
    let core = tree(&["--package", "hopmap", "--no-default-features"]);
    assert_eq!(core.difference(&newcomer).filter(is_foreign).collect::<Vec<_>>(), [""; 0]);
    let demo = tree(&["--package", "hopmap"]);
    assert_eq!(demo.difference(&newcomer).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn the_kind_of_a_stage_names_its_crate() {
    let workspace = workspace();
    let stages: Value = serde_json::from_str(&Sandbox::new().stdout(&["stages", "--json"])).unwrap();
    for stage in stages.as_array().unwrap() {
        let (short, _) = stage["kind"].as_str().unwrap().split_once('/').unwrap();
        let folder = workspace.folders.get(&format!("hopmap-{short}"));
        assert_eq!(folder, Some(&Path::new("stages").join(short)), "{stage}");
    }
}

/// MPI is for `hopmap-ranks` alone: `hopmap` runs where there is none.
#[test]
fn hopmap_itself_never_links_mpi() {
    let binary = assert_cmd::cargo::cargo_bin!("hopmap");
    let output = Command::new("ldd").arg(binary).output().unwrap();
    let libraries = String::from_utf8(output.stdout).unwrap();
    assert!(libraries.contains("libc.so"), "{libraries}");
    assert!(!libraries.contains("libmpi"), "{libraries}");
    for (path, text) in sources().into_iter().filter(|(path, _)| !path.starts_with("apps/ranks/src")) {
        for word in ["use mpi::", " mpi::", "(mpi::"] {
            assert!(!text.contains(word), "{} names mpi", path.display());
        }
    }
}

/// Every Rust file of the project that is part of the product.
pub(crate) fn sources() -> Vec<(PathBuf, String)> {
    sources_below(&["src", "apps", "stages", "core"])
}

fn sources_below(folders: &[&str]) -> Vec<(PathBuf, String)> {
    fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                collect(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(project()).unwrap().to_owned();
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    folders.iter().for_each(|folder| collect(&project().join(folder), &mut found));
    found
}

/// A file that no `main.rs` lists would hold tests that never run.
#[test]
fn no_test_file_is_forgotten() {
    let files = sources_below(&["stages", "core", "tests"]);
    let mains = files.iter().filter(|(path, _)| path.ends_with("main.rs") && !in_src(path));
    let mut listed = 0;
    for (main, text) in mains {
        let folder = main.parent().unwrap();
        for (path, _) in files.iter().filter(|(path, _)| path.parent() == Some(folder) && path != main) {
            let module = path.file_stem().unwrap().to_str().unwrap();
            assert!(text.contains(&format!("mod {module};")), "{} is not listed", path.display());
            listed += 1;
        }
    }
    assert!(listed > 150, "{listed}");
}

/// Programs of every Debian with a C compiler and Rust, on which `make test` passes (`ci/bare.sh`).
const BARE: [&str; 16] = [
    "bash", "cat", "cc", "chrt", "cp", "gcc", "id", "ldd", "mkfifo", "mount", "rustc", "sh", "test",
    "timeout", "true", "unshare",
];

/// What a machine lacks is skipped and counted: a test asks for a program that not every machine has.
#[test]
fn tests_ask_for_the_programs_that_they_start() {
    let missing = BARE.iter().find(|name| on_path(name).is_none());
    assert_eq!(missing, None, "is not on every machine");
    // Files with functions that ask for their callers, or whose callers ask.
    let exceptions = [
        "tests/support/src/cluster.rs",
        "stages/record/tests/command.rs",
        "stages/topology-import/tests/mappers_system.rs",
    ];
    let is_test = |path: &Path| {
        path.components().any(|part| part.as_os_str() == "tests")
            || path.to_string_lossy().ends_with("tests.rs")
    };
    for (path, text) in sources_below(&["src", "apps", "stages", "core", "tests"]) {
        if exceptions.contains(&&*path.to_string_lossy()) {
            continue;
        }
        let tests = if is_test(&path) {
            &*text
        } else {
            text.split_once("#[cfg(test)]").map_or("", |(_, tests)| tests)
        };
        // What is before the first test, and then every test, with the functions behind it.
        for (index, part) in tests.split("#[test]").enumerate() {
            let (body, rest) = part.split_once("\n}\n").filter(|_| index > 0).unwrap_or(("", part));
            for (part, asking) in [(body, body), (rest, tests)] {
                let started = part.split("Command::new(\"").skip(1).filter_map(|rest| rest.split('"').next());
                for name in started.filter(|name| !name.contains('/') && !BARE.contains(name)) {
                    let asks = [&format!("program(\"{name}\")"), "system_tests()"];
                    let is_asked_for = asks.into_iter().any(|asks| asking.contains(asks));
                    assert!(is_asked_for, "{} starts {name}: ask for it with `program`", path.display());
                }
            }
        }
    }
}

pub(crate) fn in_src(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "src")
}

#[test]
fn unsafe_code_is_only_where_it_may_be() {
    let places = [
        "core/otf2-sys",
        "stages/trace/src/otf2/library",
        "stages/trace/src/otf2/library.rs",
        "core/objective/src/dense/avx2.rs",
    ];
    for (path, text) in sources_below(&["src", "apps", "stages", "core", "tests/network", "tests/support"]) {
        let allowed = places.iter().any(|place| path.starts_with(place));
        assert!(allowed || !text.contains("allow(unsafe_code)"), "{} allows unsafe code", path.display());
    }
}

#[test]
fn only_the_command_line_prints() {
    for (path, text) in sources() {
        let is_product = in_src(&path);
        let is_test = path.file_name().is_some_and(|name| name == "tests.rs");
        if !is_product || is_test || path.starts_with("src/cli") || path.starts_with("apps") {
            continue;
        }
        let product = text.split("#[cfg(test)]").next().unwrap();
        for word in ["println!", "eprintln!", "print!(", "dbg!", "io::stdout()", "io::stderr()"] {
            assert!(!product.contains(word), "{} prints with {word}", path.display());
        }
    }
}

/// All sources that show a command with a name in it: a person pastes it, so a shell must read the name as one word.
#[test]
fn shown_commands_are_quoted() {
    let quoted = [
        "src/accepted.rs",
        "src/cli/gates.rs",
        "src/cli/import.rs",
        "src/cli/locate.rs",
        "src/cli/lock.rs",
        "src/cli/plan.rs",
        "src/cli/rank_order.rs",
        "src/cli/tune/machine.rs",
        "src/cli/words.rs",
        "src/cli/written.rs",
        "src/refresh/publication.rs",
        "stages/checkpoint/src/commands/change.rs",
        "stages/record/src/command.rs",
    ];
    // Names of hopmap's own stages, files and rules, and the title of a page.
    let plain = [
        "src/cli/exec.rs",
        "src/cli/init.rs",
        "src/pipeline/project.rs",
        "src/report.rs",
        "stages/checkpoint/src/error.rs",
    ];
    let shows = |line: &str| {
        let mut commands = line.split("hopmap ").skip(1);
        !line.trim_start().starts_with("//")
            && commands.any(|rest| {
                let command = rest.split(['`', '"']).next().unwrap_or_default();
                let verb = command.split(' ').next().unwrap_or_default();
                let verbs = [
                    "accept",
                    "check",
                    "checkpoint",
                    "exec",
                    "import",
                    "plan",
                    "run",
                    "stages",
                    "topology",
                    "verify",
                    "why",
                ];
                verbs.contains(&verb) && command.contains('{')
            })
    };
    let mut found = BTreeSet::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| in_src(path)) {
        let product = text.split("#[cfg(test)]").next().unwrap();
        let path = path.to_string_lossy().into_owned();
        assert!(!product.contains("replace(\"{file}\""), "{path} does not use start_command");
        if product.lines().any(shows) && !plain.contains(&&*path) {
            assert!(
                product.contains("shell_word("),
                "{path} shows a command, but does not quote it with shell_word"
            );
            found.insert(path);
        }
    }
    assert_eq!(found, quoted.map(str::to_owned).into());
}

#[test]
fn only_the_registry_lists_stages() {
    let workspace = workspace();
    let stages = workspace.folders.iter().filter(|(_, folder)| layer(folder) == Layer::Stage);
    let stages: Vec<_> = stages.map(|(name, _)| name.replace('-', "_")).collect();
    assert!(stages.len() > 10, "{stages:?}");
    for (path, text) in sources().into_iter().filter(|(path, _)| path.starts_with("src")) {
        if path == Path::new("src/registry.rs") {
            continue;
        }
        // `hopmap_launchers` is of core.
        let words: BTreeSet<&str> =
            text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').collect();
        for stage in &stages {
            assert!(!words.contains(stage.as_str()), "{} names {stage}", path.display());
        }
    }
}

/// A stage that is re-exported would be known wherever the registry is.
#[test]
fn the_registry_hands_on_no_stage() {
    let registry = std::fs::read_to_string(project().join("src/registry.rs")).unwrap();
    let reexports =
        registry.lines().filter(|line| line.trim_start().starts_with("pub") && line.contains("use "));
    assert_eq!(reexports.collect::<Vec<_>>(), Vec::<&str>::new());
}

/// Files that import each other can only be understood, tested and moved together.
#[test]
fn no_two_files_import_each_other_in_a_cycle() {
    let workspace = workspace();
    let roots = workspace.roots.values().flatten();
    let cycles: BTreeSet<String> =
        roots.flat_map(|root| Imports::of(root, project()).cycles()).map(|cycle| cycle.to_string()).collect();
    let found: String = cycles.into_iter().collect();
    assert!(found.is_empty(), "{found}");
}

/// Each module of the app is above or below another, and the command line, which reaches all, is above all.
#[test]
fn modules_of_the_app_are_in_layers() {
    let cycles = Imports::of(&project().join("src/lib.rs"), project()).of_modules().cycles();
    assert!(cycles.is_empty(), "{}", cycles[0]);
}

/// A file that imports the module which defines a name says what it needs; through `lib.rs` it would need the whole crate.
#[test]
fn files_import_the_module_and_not_the_facade() {
    let facades = |root: &PathBuf| Imports::of(root, project()).facades();
    let found: BTreeSet<String> = workspace().roots.values().flatten().flat_map(facades).collect();
    assert!(found.is_empty(), "{}", found.into_iter().collect::<String>());
}

/// Whoever opens a named pipe waits for its other end, and a device may never end: `open_input` refuses both, and tests see
/// what it opens.
#[test]
fn stages_open_inputs_in_one_way() {
    // Files that are not inputs, and why.
    let exceptions = [
        ("core/model/src/input_file.rs", "the one way"),
        ("core/durable/", "files of stores and logs, which hopmap wrote"),
        ("core/mpi/src/location.rs", "the kernel's description of this machine"),
        ("core/islands/src/spread.rs", "the state of a search, which it wrote"),
        ("core/partition/src/foreign.rs", "what a program answered in a folder of our own"),
        ("core/artifact/src/folder.rs", "copies what a stage gave"),
        ("core/compare/src/", "files of artifacts, which it wrote"),
        ("stages/checkpoint/src/store.rs", "the store of checkpoints"),
        ("stages/checkpoint/src/store/numbers.rs", "the store of checkpoints"),
        ("stages/checkpoint/src/store/pack.rs", "the store of checkpoints"),
        ("stages/checkpoint/src/store/prune.rs", "the store of checkpoints"),
        ("stages/checkpoint/src/store/prune/sweep.rs", "the store of checkpoints"),
        ("stages/checkpoint/src/store/restore/", "what is written"),
        ("core/mpi/src/compiler.rs", "what it compiled, in a folder of the user alone"),
        ("core/process/src/", "what the kernel says of processes, and a note of its own"),
        ("stages/record/src/program.rs", "the head of a regular file that is about to be executed"),
        ("stages/trace/src/import/hopmap_record/events.rs", "the events of ranks, which `EventFile` opens"),
        ("stages/topology/src/probe/ranks.rs", "what ranks append to a file that it created"),
        ("stages/topology/src/agent/command.rs", "the token, which may come through a pipe"),
        (
            "stages/checkpoint/src/tree.rs",
            "looks for holes of what it has seen to be a file, and waits for nothing",
        ),
    ];
    let ways = [
        "File::open(",
        "fs::read(",
        "read_to_string(",
        "OpenOptions",
        "File::options()",
        ".from_path(",
        "::from_file(",
    ];
    let mut used = BTreeSet::new();
    for (path, text) in sources_below(&["stages", "core"]).into_iter().filter(|(path, _)| in_src(path)) {
        let name = path.file_name().unwrap();
        let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let Some(way) = ways.iter().find(|way| product.contains(**way)) else { continue };
        if name == "tests.rs" || is_test_module(&path) {
            continue;
        }
        let exception = exceptions.iter().find(|(allowed, _)| path.to_str().unwrap().starts_with(allowed));
        let (allowed, _) = exception.unwrap_or_else(|| panic!("{} opens files with {way}", path.display()));
        used.insert(*allowed);
    }
    let needless: Vec<_> = exceptions.iter().filter(|(allowed, _)| !used.contains(allowed)).collect();
    assert!(needless.is_empty(), "{needless:?} open nothing any more");
}

/// Whether a file is a module that its parent has for tests only.
pub(crate) fn is_test_module(path: &Path) -> bool {
    let module = path.file_stem().unwrap().to_str().unwrap();
    let folder = project().join(path.parent().unwrap());
    let parents = [folder.join("mod.rs"), folder.join("lib.rs"), folder.with_extension("rs")];
    parents.iter().any(|parent| {
        std::fs::read_to_string(parent).is_ok_and(|text| {
            ["mod", "pub(crate) mod"]
                .iter()
                .any(|word| text.contains(&format!("#[cfg(test)]\n{word} {module};")))
        })
    })
}

#[test]
fn every_readme_has_a_purpose_and_where_to_begin() {
    for (name, folder) in workspace().folders.iter().filter(|(_, folder)| folder.components().count() > 0) {
        let folder = project().join(folder);
        let text = std::fs::read_to_string(folder.join("README.md")).unwrap_or_default();
        let lines = text.lines().count();
        assert!((10..=40).contains(&lines), "README.md of {name} has {lines} lines");
        let quoted = text.split('`').skip(1).step_by(2);
        let paths = quoted.filter(|text| ["src/", "tests/"].iter().any(|begin| text.starts_with(begin)));
        for path in paths {
            let is_there = folder.join(path).exists() || project().join(path).exists();
            assert!(is_there, "README.md of {name} names {path}, which is not there");
        }
    }
}

/// What a developer reads first is true: each crate has its line, and each path leads somewhere.
#[test]
fn pages_for_developers_name_all_crates_and_no_missing_file() {
    let map = project().join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&map).unwrap();
    for folder in workspace().folders.values() {
        let Some(short) = folder.file_name().and_then(|name| name.to_str()) else { continue };
        let is_listed =
            [short, &*folder.to_string_lossy()].iter().any(|name| text.contains(&format!("`{name}`")));
        assert!(is_listed, "ARCHITECTURE.md has no line for {}", folder.display());
    }
    let begins = ["src/", "apps/", "core/", "stages/", "tests/", "docs/", "ci/"];
    let placeholders = ["NAME", "FORMAT", "STAGE"];
    for page in pages_below("docs/design").into_iter().chain([map]) {
        let text = std::fs::read_to_string(&page).unwrap();
        let quoted = text.split('`').skip(1).step_by(2);
        let paths = quoted.filter(|text| begins.iter().any(|begin| text.starts_with(begin)));
        for path in paths.filter(|path| !placeholders.iter().any(|name| path.contains(name))) {
            assert!(project().join(path).exists(), "{} names {path}, which is not there", page.display());
        }
    }
}

/// The page lists what holds together with the test that keeps it: a test that was renamed or went would leave a claim behind.
#[test]
fn every_test_of_the_invariants_exists() {
    let invariants = std::fs::read_to_string(project().join("tests/invariants.md")).unwrap();
    let sources: String = sources_below(&["src", "apps", "stages", "core", "tests"])
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    let mut found = 0;
    for line in invariants.lines().filter(|line| line.starts_with("- **")) {
        for quoted in line.split('`').skip(1).step_by(2) {
            let name = quoted.rsplit("::").next().unwrap();
            let is_test = name.matches('_').count() >= 2 && !name.contains(['/', '.', ' ']);
            let begins = name.trim_end_matches('…');
            let is_there = match name.strip_prefix('…') {
                Some(ends) => sources.contains(&format!("{ends}(")),
                None if begins.len() < name.len() => sources.contains(&format!("fn {begins}")),
                None => sources.contains(&format!("fn {name}(")),
            };
            assert!(is_there || !is_test, "tests/invariants.md names {quoted}, which is not there");
            found += usize::from(is_test);
        }
    }
    assert!(found > 190, "{found}");
}
