//! The commands of the tutorials, run as they are typed there, one page after the other.

use std::process::Command;

use hopmap_test_support::system_tests;

use crate::sandbox::{Sandbox, project, query_program};

/// A command of the tutorial.
#[derive(Debug, PartialEq)]
struct Step {
    /// What is typed, with the lines that follow behind `> `.
    typed: String,
    /// The lines that are shown; one with `…` matches anything.
    shown: Vec<String>,
}

/// The commands in blocks of the kind `console`.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, line) => {
                if let Some(typed) = line.strip_prefix("$ ") {
                    steps.push(Step { typed: typed.to_owned(), shown: Vec::new() });
                    continue;
                }
                let step = steps.last_mut().expect("a block begins with a command");
                match line.strip_prefix("> ").or((line == ">").then_some("")) {
                    Some(more) => step.typed = format!("{}\n{more}", step.typed),
                    None => step.shown.push(line.to_owned()),
                }
            }
            (false, _) => {}
        }
    }
    steps
}

/// The exit code of a comment: `# exit code 3`.
fn expected_code(typed: &str) -> i32 {
    typed.split_once("# exit code ").map_or(0, |(_, code)| code.trim().parse().unwrap())
}

/// Whether a line is as shown, where `…` is any text.
fn is_like(line: &str, shown: &str) -> bool {
    let mut rest = line;
    let parts: Vec<&str> = shown.split('…').collect();
    for (place, part) in parts.iter().enumerate() {
        let is_last = place + 1 == parts.len();
        let found = match (place, is_last) {
            (0, true) => return line == *part,
            (0, false) => rest.starts_with(part).then_some(0),
            (_, true) => rest.ends_with(part).then(|| rest.len() - part.len()),
            _ => rest.find(part),
        };
        let Some(found) = found else { return false };
        rest = &rest[found + part.len()..];
    }
    true
}

/// Holds what was printed against what is shown.
fn compare(typed: &str, printed: &str, shown: &[String]) {
    if shown.iter().any(|line| line == "…") {
        assert_eq!(shown.len(), 1, "{typed}: `…` has to be the only line");
        assert!(!printed.trim().is_empty(), "{typed} prints nothing");
        return;
    }
    let lines: Vec<&str> = printed.lines().collect();
    let is_same =
        lines.len() == shown.len() && lines.iter().zip(shown).all(|(line, shown)| is_like(line, shown));
    assert!(is_same, "{typed} prints\n{printed}\nand not\n{}", shown.join("\n"));
}

/// A shell in which `hopmap` is the one of this build.
pub(crate) fn shell(sandbox: &Sandbox) -> Command {
    let folder = sandbox.path().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let hopmap = folder.join("hopmap");
    if !hopmap.exists() {
        std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin!("hopmap"), &hopmap).unwrap();
    }
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.env("PATH", path).env("NO_COLOR", "1").env("RUST_BACKTRACE", "0");
    command
}

/// The tutorials, in their order: the second goes on where the first ends.
const TUTORIALS: [&str; 4] = ["first-mapping", "compare-and-guard", "job-script", "training"];

#[test]
fn every_command_does_what_is_shown() {
    if query_program().is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    std::os::unix::fs::symlink(project(), sandbox.path().join("hopmap")).unwrap();
    TUTORIALS.iter().for_each(|name| follow(&sandbox, name));
}

#[test]
fn a_topology_is_published_overnight_as_shown() {
    let sandbox = Sandbox::new();
    std::os::unix::fs::symlink(project(), sandbox.path().join("hopmap")).unwrap();
    follow(&sandbox, "overnight");
}

/// Types the commands of a tutorial, from the folder in which each begins.
fn follow(sandbox: &Sandbox, name: &str) {
    let page = project().join(format!("docs/tutorials/{name}.md"));
    let steps = steps(&std::fs::read_to_string(page).unwrap());
    assert!(steps.len() > 5, "{steps:?}");
    let mut folder = sandbox.path();
    for Step { typed, shown } in steps {
        if let Some(inner) = typed.strip_prefix("cd ") {
            folder.push(inner);
            continue;
        }
        let output = shell(sandbox).args(["-c", &typed]).current_dir(&folder).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(expected_code(&typed)), "{typed}: {errors}");
        // Progress goes to standard error; where a command fails, the error is what matters.
        let printed =
            if output.status.success() { String::from_utf8(output.stdout).unwrap() } else { errors };
        compare(&typed, &printed, &shown);
    }
}

/// The commands of the pages that record a program and take what was recorded.
#[test]
fn a_recorded_program_is_taken_as_the_pages_say() {
    if !system_tests() {
        return;
    }
    let sandbox = Sandbox::new();
    std::os::unix::fs::symlink(project(), sandbox.path().join("hopmap")).unwrap();
    let run = |typed: &str| {
        let mut command = shell(&sandbox);
        command.envs(hopmap_mpi_environment::AS_ROOT);
        command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        let output = command.args(["-c", typed]).current_dir(sandbox.path()).output().unwrap();
        assert!(output.status.success(), "{typed}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let commands = |page: &str, beginnings: &[&str]| {
        let text = std::fs::read_to_string(project().join(page)).unwrap();
        let command = |beginning: &&str| {
            let mut lines = text.lines().map(|line| line.trim_start_matches("$ "));
            lines.find(|line| line.starts_with(beginning)).unwrap_or_else(|| panic!("{beginning}")).to_owned()
        };
        beginnings.iter().map(command).collect::<Vec<String>>()
    };
    let tutorial = commands(
        "docs/tutorials/first-mapping.md",
        &["mpicc -O2 -o rows_columns", "mpirun", "hopmap init halo"],
    );
    tutorial.iter().for_each(|typed| run(typed));
    run("cd halo && hopmap run place.toml");
    let recorded = commands("docs/howto/record-a-trace.md", &["mpirun -n 16 eztrace"]);
    let placed = commands("README.md", &["hopmap run place --trace"]);
    std::fs::remove_dir_all(sandbox.path().join("trace")).unwrap();
    run(&recorded[0].replace("./program", "./rows_columns"));
    run(&placed[0]);
}

#[test]
fn blocks_are_read_as_they_are_meant() {
    let text =
        "```console\n$ cat <<'END'\n> a\n>\n> END\na\n\n$ false # exit code 1\n```\n```sh\n$ no\n```\n";
    let expected = [("cat <<'END'\na\n\nEND", vec!["a", ""]), ("false # exit code 1", vec![])];
    let expected = expected.map(|(typed, shown)| Step {
        typed: typed.to_owned(),
        shown: shown.into_iter().map(str::to_owned).collect(),
    });
    assert_eq!(steps(text), expected);
    assert_eq!(expected_code("false # exit code 1"), 1);
    assert!(is_like("ran in 0.1 s", "ran in … s") && !is_like("ran in 0.1 m", "ran in … s"));
    assert!(is_like("a b c", "a b c") && !is_like("a b c d", "a b c"));
}
