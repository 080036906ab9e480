//! External solvers: input, answers, and failures.
#![cfg(unix)]

use std::fs;
use std::path::Path;

use hopmap_map::{ExternalCommand, ExternalParams, ExternalStage, Numbering};
use hopmap_model::{Context, Mapping, Observer, Outcome, Stage, SystemGraph, TaskGraph};

use crate::common::{Listener, Silent, double_sums, graph, grid, inputs, mapping, tree};

fn shell(line: &str) -> ExternalParams {
    ExternalParams::new(ExternalCommand::Shell(line.to_owned()))
}

fn list(words: &[&str]) -> ExternalParams {
    ExternalParams::new(ExternalCommand::Program(words.iter().map(|&word| word.to_owned()).collect()))
}

/// Runs a command in a scratch folder, which must be empty afterwards.
fn answer(
    params: ExternalParams,
    graph: &TaskGraph,
    system: &SystemGraph,
    observer: &dyn Observer,
) -> Result<Mapping, String> {
    let scratch = tempfile::tempdir().unwrap();
    let cx = Context::new(1, None, observer).with_scratch(scratch.path());
    let outcome = ExternalStage::run(params, inputs(graph, system), &cx);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "the scratch folder is not empty");
    match outcome {
        Ok(Outcome::Done(outputs)) => Ok(mapping(&outputs)),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(format!("{error}")),
    }
}

fn slots(params: ExternalParams) -> Vec<u32> {
    answer(params, &grid(2, 2), &tree(&[2, 2]), &Silent).unwrap().slots()
}

fn refused(params: ExternalParams) -> String {
    answer(params, &grid(2, 2), &tree(&[2, 2]), &Silent).unwrap_err()
}

#[test]
fn the_output_of_a_command_is_the_mapping() {
    assert_eq!(slots(shell("echo 3 1 0 2")), [3, 1, 0, 2]);
    assert_eq!(slots(list(&["echo", "4 2 1 3"])), [3, 1, 0, 2]);
    assert_eq!(slots(shell("echo 'cost 12: 3,1,0,2'")), [3, 1, 0, 2]);
    assert_eq!(slots(shell("printf '4 12\\n3 1\\n0 2\\n' > {output}; echo done")), [3, 1, 0, 2]);
    let inverse = ExternalParams { inverse: true, ..shell("echo 3 1 0 2") };
    assert_eq!(slots(inverse), [2, 1, 3, 0]);
    let from_zero = ExternalParams { numbering: Numbering::FromZero, ..shell("echo 1 2 3 4") };
    assert!(refused(from_zero).ends_with("rank 3 has `4`, expected 0 to 3"));
    let seeded = ExternalParams { seed: 3, ..shell("echo 1 2 {seed} 4") };
    assert_eq!(slots(seeded), [0, 1, 2, 3]);
}

#[test]
fn a_list_bypasses_the_shell() {
    assert_eq!(slots(list(&["printf", "%s %s %s $((0))\\n1 2 3 4", "a", "b", "c"])), [0, 1, 2, 3]);
}

#[test]
fn the_command_reads_the_problem_in_qaplib_format() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |name: &str| folder.path().join(name).display().to_string();
    let command = format!(
        "cp {{input}} '{}' && cp {{program}} '{}' && cp {{machine}} '{}' && seq 4 -1 1",
        copy("input"),
        copy("program"),
        copy("machine")
    );
    // Three ranks on four slots.
    let (graph, shape) = (graph(3, [(0, 1, 5), (1, 0, 3), (2, 1, 6)]), [2, 2]);
    let mapping = answer(shell(&command), &graph, &tree(&shape), &Silent).unwrap();
    assert_eq!(mapping.slots(), [3, 2, 1]);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let (program, machine) =
        ("0 4 0 0\n4 0 3 0\n0 3 0 0\n0 0 0 0\n", "0 1 10 10\n1 0 10 10\n10 10 0 1\n10 10 1 0\n");
    assert_eq!(read("input"), format!("4\n\n{program}\n{machine}"));
    assert_eq!(read("program"), format!("4\n\n{program}"));
    assert_eq!(read("machine"), format!("4\n\n{machine}"));
    // The double sum over both matrices is F.
    assert!((mapping.metrics["F"] - 2.0 * (4.0 * 1.0 + 3.0 * 10.0)).abs() < 1e-9);
    assert!((mapping.metrics["F"] - double_sums(&graph, &shape, &[3, 2, 1]).0).abs() < 1e-9);
}

#[test]
fn a_wrong_claim_is_logged() {
    let logged = |line: &str| {
        let listener = Listener::default();
        answer(shell(line), &grid(2, 2), &tree(&[2, 2]), &listener).unwrap();
        let lines = listener.lines.into_inner().unwrap();
        lines.iter().filter(|line| line.contains("reports cost")).cloned().collect::<Vec<_>>()
    };
    // Every rank sends 8 bytes to two others, one of them on its host: 4 · 8 · 1 + 4 · 8 · 10.
    assert_eq!(logged("echo 4 352 1 2 3 4"), Vec::<String>::new());
    assert_eq!(
        logged("echo 4 170 1 2 3 4"),
        ["the command reports cost 170 (F = 170), but its mapping costs 352 (F = 352)"]
    );
}

#[test]
fn failures_are_described_in_one_sentence() {
    assert_eq!(
        refused(shell("echo no licence >&2; exit 3")),
        "`echo no licence >&2; exit 3` ended with exit status: 3; standard error:\nno licence"
    );
    assert!(
        refused(list(&["/nowhere/solver", "{input}"]))
            .starts_with("`/nowhere/solver` cannot be started: No such")
    );
    assert!(refused(shell("nowhere-solver {input}")).contains("exit status: 127; standard error:\n"));
    assert_eq!(refused(list(&["true"])), "`true` wrote nothing to standard output");
    assert_eq!(refused(list(&["true", "{output}"])), "`true` wrote nothing to {output}");
    assert_eq!(
        refused(list(&["echo", "1 2 3"])),
        "invalid mapping from `echo` on standard output: expected a permutation of 4 integers at the end of the output, found 3"
    );
    assert_eq!(
        refused(list(&["echo", "1 2 3 3"])),
        "invalid mapping from `echo` on standard output: line 1: rank 4 and rank 3 both have 3"
    );
    assert!(refused(shell("kill -SEGV $$")).contains("ended with signal: 11"));
    assert!(refused(list(&["mkdir", "{output}"])).contains("cannot write or read"));
}

#[test]
fn endless_output_is_cut_off() {
    assert_eq!(refused(list(&["yes"])), "`yes` wrote more than 16777216 bytes to standard output");
    let noise = "seq 1 200000 >&2; echo 1 2 3 4";
    assert_eq!(slots(shell(noise)), [0, 1, 2, 3]);
}

/// Whether a process runs; a zombie does not.
fn runs(pid: &str) -> bool {
    let status = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat"));
    status.is_ok_and(|status| !status.contains(") Z "))
}

/// Waits until a process has ended; `false` on timeout.
fn goes(pid: &str) -> bool {
    (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        !runs(pid)
    })
}

#[test]
fn a_command_ends_with_all_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let line = format!("sleep 300 & echo $! > '{}'; wait", file.display());
    let params = ExternalParams { time_limit_s: Some(0.5), ..shell(&line) };
    assert_eq!(refused(params), format!("`{line}` did not finish within 0.5 s and was stopped"));
    assert!(goes(&fs::read_to_string(&file).unwrap()));
    // Also the children of a command that ended normally.
    let line = format!("sleep 300 & echo $! > '{}'; echo 1 2 3 4", file.display());
    assert_eq!(slots(shell(&line)), [0, 1, 2, 3]);
    assert!(goes(&fs::read_to_string(&file).unwrap()));
}

#[test]
fn an_interrupt_ends_the_command() {
    let listener = Listener { impatient: true, ..Listener::default() };
    let error = answer(list(&["sleep", "300"]), &grid(2, 2), &tree(&[2, 2]), &listener).unwrap_err();
    assert_eq!(error, "`sleep` was stopped before it finished");
}

#[test]
fn invalid_parameters_are_refused() {
    assert_eq!(refused(shell(" ")), "the command is empty");
    assert_eq!(refused(list(&[])), "the command is empty");
    assert_eq!(
        refused(shell("solver {seconds}")),
        "the command uses {seconds}, but `time_limit_s` is not set"
    );
    let params = ExternalParams { time_limit_s: Some(-1.0), ..shell("true") };
    assert_eq!(refused(params), "`time_limit_s` = -1 is out of range");
}

#[test]
fn a_command_is_a_line_or_a_list() {
    let parse = |text: &str| serde_json::from_str::<ExternalParams>(text).map_err(|error| error.to_string());
    assert_eq!(parse(r#"{"command": "a b"}"#).unwrap(), shell("a b"));
    assert_eq!(parse(r#"{"command": ["a", "b"]}"#).unwrap(), list(&["a", "b"]));
    let error = parse(r#"{"command": 3}"#).unwrap_err();
    assert!(
        error.contains("expected a shell command line, or a list of a program and its arguments"),
        "{error}"
    );
    let params = list(&["a", "{input}"]);
    assert_eq!(parse(&serde_json::to_string(&params).unwrap()).unwrap(), params);
    assert!(ExternalStage::observes(&params));
}
