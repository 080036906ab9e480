//! The commands of `README.md` and of the pages of the book, run as a reader would run them in the root of a clone.
//!
//! A block of the kind `sh` that starts hopmap is run, and has to succeed; `# exit code N` behind a command is the exception. Comments
//! directly above a block are marks for this test:
//!
//! - `<!-- setup: COMMAND -->` runs something first that a reader has already, such as a trace.
//! - `<!-- file: NAME -->` writes the block to a file, for the blocks behind it.
//! - `<!-- needs: PROGRAM -->` skips the block where the program is missing.
//! - `<!-- not run: REASON -->` is why it cannot be run on a test machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use hopmap_test_support::program;
use serde_json::Value;

use crate::markdown::{Block, blocks, pages_below};
use crate::sandbox::{Sandbox, project, query_program};
use crate::tutorial::shell;

/// A test for every page that has something to run, so that they run side by side.
macro_rules! pages {
    ($($name:ident: $path:literal,)+) => {
        const PAGES: &[&str] = &[$($path),+];

        $(#[test]
        fn $name() {
            run($path);
        })+
    };
}

pages! {
    readme: "README.md",
    install: "docs/howto/install.md",
    record: "docs/howto/record.md",
    record_a_trace: "docs/howto/record-a-trace.md",
    training_traces: "docs/howto/training-traces.md",
    collectives: "docs/howto/collectives.md",
    describe_the_machine: "docs/howto/describe-the-machine.md",
    measure_the_machine: "docs/howto/measure-the-machine.md",
    refresh_topology: "docs/howto/refresh-topology.md",
    choose_nodes: "docs/howto/choose-nodes.md",
    launch: "docs/howto/launch.md",
    reorder: "docs/howto/reorder.md",
    predict: "docs/howto/predict.md",
    trial: "docs/howto/trial.md",
    sweeps: "docs/howto/sweeps.md",
    tables: "docs/howto/tables.md",
    query: "docs/howto/query.md",
    gates: "docs/howto/gates.md",
    reproduce: "docs/howto/reproduce.md",
    compare_tools: "docs/howto/compare-tools.md",
    task_graphs: "docs/howto/task-graphs.md",
    schedule: "docs/howto/schedule.md",
    parus: "docs/howto/parus.md",
    routes: "docs/howto/routes.md",
    checkpoints: "docs/howto/checkpoints.md",
    checkpoint_deltas: "docs/howto/checkpoint-deltas.md",
    pipeline_file: "docs/reference/pipeline-file.md",
}

/// Blocks that are marked as not run. The number is here so that nobody adds one without noticing.
const NOT_RUN: usize = 49;

/// Runs the blocks of a page from top to bottom in one folder.
fn run(page: &str) {
    let sandbox = Sandbox::new();
    clone(&sandbox);
    let text = std::fs::read_to_string(project().join(page)).unwrap();
    for block in blocks(&text) {
        for command in block.marks("setup") {
            in_shell(&sandbox, page, &block, &format!("set -e\n{command}"));
        }
        for name in block.marks("file") {
            sandbox.write(name, block.lines.join("\n") + "\n");
        }
        let is_missing = |need: &str| match need {
            "hopmap-query" => query_program().is_none(),
            other => program(other).is_none(),
        };
        let is_run = block.starts_hopmap() && block.marks("not run").next().is_none();
        if is_run && !block.marks("needs").any(is_missing) {
            in_shell(&sandbox, page, &block, &script(&block));
        }
    }
}

/// What the root of a clone has: the samples, and pipelines that may write beside themselves.
fn clone(sandbox: &Sandbox) {
    let entries = || std::fs::read_dir(project()).unwrap().map(|entry| entry.unwrap().path());
    for sample in entries().filter(|path| file_name(path).starts_with("sample-")) {
        std::os::unix::fs::symlink(&sample, sandbox.path().join(file_name(&sample))).unwrap();
    }
    std::fs::create_dir(sandbox.path().join("pipelines")).unwrap();
    for entry in std::fs::read_dir(project().join("pipelines")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, sandbox.path().join("pipelines").join(file_name(&path))).unwrap();
        }
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap()
}

/// The block as a script that ends with the first command that does not do what it should.
fn script(block: &Block) -> String {
    let mut script = "set -e\n".to_owned();
    for line in &block.lines {
        script += &match line.split_once("# exit code ") {
            Some((command, code)) => {
                format!("code=0; {command} || code=$?; [ $code -eq {code} ] || exit 99\n")
            }
            None => format!("{line}\n"),
        };
    }
    script
}

fn in_shell(sandbox: &Sandbox, page: &str, block: &Block, script: &str) {
    let output = shell(sandbox)
        .args(["-c", script])
        .current_dir(sandbox.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (printed, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let code = output.status.code();
    assert!(output.status.success(), "{page}:{}: {code:?}\n{script}\n{printed}\n{errors}", block.line);
}

/// All pages, with their names from the root.
fn all_pages() -> impl Iterator<Item = (String, String)> {
    let pages = pages_below("docs").into_iter().chain([project().join("README.md")]);
    pages.map(|path| {
        let name = path.strip_prefix(project()).unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(path).unwrap())
    })
}

#[test]
fn every_page_with_commands_is_run() {
    for (name, text) in all_pages() {
        let runs = |block: &Block| block.starts_hopmap() && block.marks("not run").next().is_none();
        let has_commands = blocks(&text).iter().any(runs);
        assert_eq!(has_commands, PAGES.contains(&name.as_str()), "{name}: compare with the list above");
    }
}

/// A command in a block that is not for a shell would escape this test.
#[test]
fn every_command_is_in_a_block_for_a_shell() {
    for (name, text) in all_pages() {
        for block in blocks(&text).iter().filter(|block| block.kind.is_empty()) {
            let command = block.lines.iter().find(|line| line.starts_with("hopmap "));
            assert_eq!(command, None, "{name}:{} is neither `sh` nor `console`", block.line);
        }
    }
}

#[test]
fn blocks_that_are_not_run_say_why_and_are_counted() {
    let mut found = Vec::new();
    for (name, text) in all_pages() {
        for block in blocks(&text) {
            found.extend(block.marks("not run").map(|reason| format!("{name}:{}: {reason}", block.line)));
        }
    }
    assert!(found.iter().all(|line| line.split(": ").last().is_some_and(|reason| reason.len() > 8)));
    assert_eq!(found.len(), NOT_RUN, "{found:#?}");
}

/// Parts of pipeline files are not run.
#[test]
fn every_parameter_on_a_page_has_its_name_of_today() {
    let stages: Value = serde_json::from_str(&Sandbox::new().stdout(&["stages", "--json"])).unwrap();
    let kinds: BTreeMap<&str, &Value> = stages
        .as_array()
        .unwrap()
        .iter()
        .map(|stage| (stage["kind"].as_str().unwrap(), &stage["parameters"]["properties"]))
        .collect();
    let mut found = 0;
    for (name, text) in all_pages() {
        for block in blocks(&text) {
            let used = match block.kind.as_str() {
                "sh" | "console" => used_by_exec(&block),
                "toml" => used_by_pipeline(&block),
                _ => Vec::new(),
            };
            for (kind, parameter) in used {
                let properties = kinds.get(kind.as_str());
                let properties = properties.unwrap_or_else(|| panic!("{name}:{}: {kind}", block.line));
                assert!(properties.get(&parameter).is_some(), "{name}:{}: {kind} {parameter}", block.line);
                found += 1;
            }
        }
    }
    assert!(found > 100, "{found}");
}

/// Kinds and parameters of the `hopmap exec` in a block.
fn used_by_exec(block: &Block) -> Vec<(String, String)> {
    let text = block.lines.join("\n").replace("\\\n", " ");
    let mut used = Vec::new();
    for command in text.lines().filter_map(|line| Some(line.split_once("hopmap exec ")?.1)) {
        let words = shlex::split(command.split(" && ").next().unwrap()).unwrap_or_default();
        let kind = words.first().cloned().unwrap_or_default();
        for pair in words.windows(2).filter(|pair| pair[0] == "-p") {
            let key = pair[1].split('=').next().unwrap_or_default();
            used.push((kind.clone(), key.split('.').next().unwrap_or_default().to_owned()));
        }
    }
    used
}

/// Kinds and parameters of the stages in a block, as far as kinds are named.
fn used_by_pipeline(block: &Block) -> Vec<(String, String)> {
    let text = block.lines.join("\n");
    let table: toml::Table =
        toml::from_str(&text).unwrap_or_else(|error| panic!("line {}: {error}", block.line));
    let mut used = Vec::new();
    for stage in
        table.get("stages").and_then(|stages| stages.as_table()).into_iter().flat_map(|all| all.values())
    {
        let kind = stage.get("uses").and_then(|kind| kind.as_str()).filter(|kind| !kind.contains('$'));
        let with = stage.get("with").and_then(|with| with.as_table());
        for (kind, with) in kind.into_iter().zip(with) {
            used.extend(with.keys().map(|key| (kind.to_owned(), key.clone())));
        }
    }
    used
}
