//! What is installed beside the binary: manual pages, completions, Debian packages.

use std::path::Path;
use std::process::{Command, Output};

use crate::sandbox::{Sandbox, project};

/// Runs a command of the system and gives what it printed.
fn run(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let output: Output = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(project())
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Whether what needs programs of Debian can run.
fn wanted() -> bool {
    let wanted = std::env::var_os("HOPMAP_SYSTEM_TESTS").is_some_and(|value| value == "1");
    if !wanted {
        eprintln!("skipped: HOPMAP_SYSTEM_TESTS is not 1");
    }
    wanted
}

fn binaries() -> &'static Path {
    assert_cmd::cargo::cargo_bin!("hopmap").parent().unwrap()
}

/// The commands that `--help` lists.
fn commands(sandbox: &Sandbox, of: &[&str]) -> Vec<String> {
    let help = sandbox.stdout(&[of, &["--help"]].concat());
    let lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !["", "help"].contains(name)).map(ToOwned::to_owned).collect()
}

#[test]
fn every_command_has_a_manual_page() {
    let sandbox = Sandbox::new();
    sandbox.stdout(&["man", "pages/man1"]);
    let all = commands(&sandbox, &[]);
    assert!(all.len() > 20, "{all:?}");
    for command in &all {
        let page = sandbox.read(&format!("pages/man1/hopmap-{command}.1"));
        let parts = commands(&sandbox, &[command]);
        assert!(
            page.contains(".TH") && (page.contains("Example") || !parts.is_empty()),
            "hopmap-{command}.1"
        );
        for part in parts {
            let page = sandbox.read(&format!("pages/man1/hopmap-{command}-{part}.1"));
            assert!(page.contains("Example"), "hopmap-{command}-{part}.1");
        }
    }
    assert!(sandbox.read("pages/man1/hopmap.1").contains("hopmap\\-init(1)"));
}

#[test]
fn shells_complete_commands_and_options() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = sandbox.stdout(&["completions", shell]);
        for word in ["completions", "topology", "deadline", "no-report"] {
            assert!(text.contains(word), "{shell} does not know {word}");
        }
    }
    sandbox.write("hopmap.bash", sandbox.stdout(&["completions", "bash"]));
    let script = r#". "$0"; COMP_WORDS=(hopmap run --dead); COMP_CWORD=2; _hopmap hopmap --dead run; echo "${COMPREPLY[*]}""#;
    let file = sandbox.path().join("hopmap.bash");
    assert_eq!(run("bash", &["-c", script, file.to_str().unwrap()], &[]), "--deadline\n");
    let wrong = sandbox.output(&["completions", "tcsh"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn install_puts_everything_below_the_prefix_and_takes_it_away() {
    let sandbox = Sandbox::new();
    let root = sandbox.path().display().to_string();
    let environment = [("DESTDIR", root.as_str()), ("PREFIX", "/opt/hopmap")];
    run("sh", &["ci/install.sh", binaries().to_str().unwrap()], &environment);
    let examples = "opt/hopmap/share/doc/hopmap/examples";
    for file in [
        "opt/hopmap/bin/hopmap",
        "opt/hopmap/share/man/man1/hopmap-checkpoint-add.1",
        "opt/hopmap/share/bash-completion/completions/hopmap",
        "opt/hopmap/share/zsh/site-functions/_hopmap",
        "opt/hopmap/share/fish/vendor_completions.d/hopmap.fish",
        &format!("{examples}/pipelines/place.toml"),
        &format!("{examples}/sample-traces/rows-columns-16/eztrace_log.otf2"),
    ] {
        assert!(sandbox.path().join(file).is_file(), "{file}");
    }
    sandbox.stdout(&[
        "run",
        &format!("{examples}/pipelines/place.toml"),
        "--store",
        ".hopmap",
        "-p",
        "out=out",
    ]);
    assert!(sandbox.read("out/rankfile").contains("rank 15="));
    run("sh", &["ci/install.sh", "--remove"], &environment);
    let left = run("find", &[&format!("{root}/opt"), "!", "-type", "d"], &[]);
    assert_eq!(left, "");
}

/// The packages of the binaries that the tests have: what is in them, and that they say what they need.
#[test]
fn debian_packages_hold_what_is_installed() {
    if !wanted() {
        return;
    }
    let sandbox = Sandbox::new();
    let out = sandbox.path().join("out").display().to_string();
    let arguments = ["ci/deb.sh", binaries().to_str().unwrap(), &out];
    let environment = [("COMPRESSION", "none"), ("SOURCE_DATE_EPOCH", "1700000000")];
    let packages = run("sh", &arguments, &environment);
    let packages: Vec<&str> = packages.lines().collect();
    let version = sandbox.stdout(&["--version"]);
    let version = version.trim().strip_prefix("hopmap ").unwrap().to_owned();

    let field =
        |package: &str, name: &str| run("dpkg-deb", &["--field", package, name], &[]).trim().to_owned();
    assert_eq!(field(packages[0], "Package"), "hopmap");
    assert_eq!(field(packages[0], "Version"), version);
    let depends = field(packages[0], "Depends");
    assert!(depends.contains("libc6"), "{depends}");
    assert_eq!(depends.contains("libopen-trace-format2"), cfg!(feature = "libotf2"), "{depends}");
    assert!(!depends.contains("mpi"), "{depends}");

    let root = sandbox.path().join("root").display().to_string();
    run("dpkg-deb", &["--extract", packages[0], &root], &[]);
    let binary = format!("{root}/usr/bin/hopmap");
    assert_eq!(run(&binary, &["--version"], &[]), format!("hopmap {version}\n"));
    run("gzip", &["--test", &format!("{root}/usr/share/man/man1/hopmap-checkpoint-add.1.gz")], &[]);
    for file in [
        "bash-completion/completions/hopmap",
        "zsh/vendor-completions/_hopmap",
        "fish/vendor_completions.d/hopmap.fish",
        "doc/hopmap/copyright",
        "doc/hopmap/changelog.gz",
        "doc/hopmap/examples/sample-traces/rows-columns-16/eztrace_log.otf2",
    ] {
        assert!(Path::new(&root).join("usr/share").join(file).is_file(), "{file}");
    }
    run("dpkg-deb", &["--control", packages[0], &format!("{root}/DEBIAN")], &[]);
    run("sh", &["-c", "cd \"$0\" && md5sum --check --quiet DEBIAN/md5sums", &root], &[]);

    let with_ranks = binaries().join("hopmap-ranks").exists();
    assert_eq!(packages.len(), if with_ranks { 2 } else { 1 });
    if with_ranks {
        assert_eq!(field(packages[1], "Package"), "hopmap-mpi");
        let depends = field(packages[1], "Depends");
        assert!(
            depends.starts_with(&format!("hopmap (= {version}), ")) && depends.contains("mpi"),
            "{depends}"
        );
    }
}
