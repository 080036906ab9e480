//! What is installed beside the binary: manual pages, completions, Debian packages, tarballs, wheels.

use std::path::Path;
use std::process::{Command, Output};

use hopmap_test_support::{only_in_a_soak, program, skipped, system_tests};

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
    let script = r#"PATH="$1:$PATH"; . "$0"; COMP_WORDS=(hopmap run place -p tr); COMP_CWORD=4; _hopmap hopmap tr -p; echo "${COMPREPLY[*]}""#;
    let arguments = ["-c", script, file.to_str().unwrap(), binaries().to_str().unwrap()];
    assert_eq!(run("bash", &arguments, &[]), "trace=\n");
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
    let program = sandbox.path().join("opt/hopmap/bin/hopmap-query");
    assert_eq!(program.exists(), binaries().join("hopmap-query").exists());
    for file in [
        "opt/hopmap/bin/hopmap",
        "opt/hopmap/share/man/man1/hopmap-checkpoint-add.1",
        "opt/hopmap/share/bash-completion/completions/hopmap",
        "opt/hopmap/share/zsh/site-functions/_hopmap",
        "opt/hopmap/share/fish/vendor_completions.d/hopmap.fish",
        "opt/hopmap/share/doc/hopmap/docs/SUMMARY.md",
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
    if !system_tests() {
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

    let mut parts = vec!["hopmap"];
    parts.extend(binaries().join("hopmap-query").exists().then_some("hopmap-query"));
    parts.extend(binaries().join("hopmap-ranks").exists().then_some("hopmap-mpi"));
    let names: Vec<String> = packages.iter().map(|package| field(package, "Package")).collect();
    assert_eq!(names, parts);
    assert!(!Path::new(&root).join("usr/bin/hopmap-query").exists());
    for package in &packages[1..] {
        let depends = field(package, "Depends");
        assert!(depends.starts_with(&format!("hopmap (= {version}), libc6")), "{package}: {depends}");
        assert_eq!(depends.contains("mpi"), package.contains("hopmap-mpi"), "{package}: {depends}");
    }
}

/// What a build with foreign libraries has to say, and what one without them packs: the same bytes each time, at any place.
#[test]
fn tarballs_run_wherever_they_are_unpacked() {
    let sandbox = Sandbox::new();
    let pack = |out: &str| {
        let out = sandbox.path().join(out);
        Command::new("sh")
            .args([Path::new("ci/tarball.sh"), binaries(), &out])
            .envs([("LEVEL", "1"), ("SOURCE_DATE_EPOCH", "1700000000"), ("GLIBC", "9")])
            .current_dir(project())
            .output()
            .unwrap()
    };
    let packed = pack("out");
    if cfg!(any(feature = "libotf2", feature = "highs")) {
        let said = String::from_utf8(packed.stderr).unwrap();
        assert!(!packed.status.success());
        assert!(said.contains("bin/hopmap needs what other machines may not have: lib"), "{said}");
        return;
    }
    let tarball = String::from_utf8(packed.stdout).unwrap();
    let tarball = Path::new(tarball.trim());
    let name = tarball.file_name().unwrap().to_str().unwrap().strip_suffix(".tar.gz").unwrap();
    let version = sandbox.stdout(&["--version"]);
    assert!(name.starts_with(&version.trim().replace(' ', "-")), "{name}");
    let again = String::from_utf8(pack("again").stdout).unwrap();
    assert!(std::fs::read(tarball).unwrap() == std::fs::read(again.trim()).unwrap(), "other bytes");

    let place = sandbox.path().display().to_string();
    run("tar", &["-C", &place, "-xzf", tarball.to_str().unwrap()], &[]);
    let moved = format!("{place}/moved");
    std::fs::rename(format!("{place}/{name}"), &moved).unwrap();
    let binary = format!("{moved}/bin/hopmap");
    assert_eq!(run(&binary, &["--version"], &[]), version);
    let pipeline = format!("{moved}/share/doc/hopmap/examples/pipelines/place.toml");
    run(&binary, &["check", &pipeline], &[]);
    assert!(!Path::new(&moved).join("bin/hopmap-ranks").exists());
    assert!(Path::new(&moved).join("share/doc/hopmap/LICENSE-MIT").is_file());
}

#[test]
fn the_recipe_for_spack_has_this_version_and_every_feature() {
    let read = |file: &str| std::fs::read_to_string(project().join(file)).unwrap();
    let recipe = read("ci/spack/packages/hopmap/package.py");
    let version = concat!("version(\"", env!("CARGO_PKG_VERSION"), "\")");
    assert!(recipe.contains(version), "{version}");
    let manifest = read("Cargo.toml");
    let features = manifest.split("\n[features]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let features = features.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name);
    for feature in features.filter(|name| *name != "default" && !name.starts_with('#')) {
        assert!(recipe.contains(&format!(": \"{feature}\"")), "the recipe has no variant for {feature}");
    }
}

/// A library that was linked with the given version of the C or C++ library.
fn linked_with(sandbox: &Sandbox, version: &str) -> String {
    let file = |name: &str| sandbox.path().join(format!("{version}.{name}")).display().to_string();
    std::fs::write(file("map"), format!("{version} {{ global: given; }};")).unwrap();
    std::fs::write(file("given.c"), "int given(void) { return 0; }").unwrap();
    std::fs::write(file("wants.c"), "int given(void);\nint wants(void) { return given(); }").unwrap();
    let script = format!("-Wl,--version-script={}", file("map"));
    let library = ["-shared", "-fPIC", "-nostdlib", "-o"];
    run("cc", &[&library[..], &[&file("given.so"), &file("given.c"), &script]].concat(), &[]);
    run("cc", &[&library[..], &[&file("wants.so"), &file("wants.c"), &file("given.so")]].concat(), &[]);
    file("wants.so")
}

#[test]
fn binaries_that_need_a_newer_c_library_or_that_of_cpp_are_refused() {
    let sandbox = Sandbox::new();
    let check = |version: &str| {
        let binary = linked_with(&sandbox, version);
        let arguments = [Path::new("ci/glibc.sh"), Path::new(&binary)];
        Command::new("sh").args(arguments).env_remove("GLIBC").current_dir(project()).output().unwrap()
    };
    for version in ["GLIBC_2.2.5", "GLIBC_2.28", "GCC_4.2.0"] {
        let output = check(version);
        assert!(output.status.success(), "{version}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let refused = ["GLIBC_2.29", "GLIBC_2.34", "GLIBC_10.1", "GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR"];
    for version in refused.into_iter().chain(["GLIBCXX_3.4", "CXXABI_1.3", "OPENSSL_1_1_0"]) {
        let output = check(version);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{version} is accepted");
        assert!(said.contains(&format!(" needs {version}, but at most GLIBC_2.28 is promised")), "{said}");
    }
}

/// Every way to install without Rust: installed, used and removed in clean Debians. All but the Debian packages start with the C
/// library of RHEL 8, and are tried with the oldest that there is; METIS and HiGHS run in them.
#[test]
fn packages_work_in_a_clean_debian() {
    let programs = ["debootstrap", "rpmbuild"];
    if !only_in_a_soak() || !system_tests() || programs.iter().any(|name| program(name).is_none()) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        skipped("only root can make a Debian");
        return;
    }
    let sandbox = Sandbox::new();
    let out = sandbox.path().join("out").display().to_string();
    let target = binaries().with_file_name("packages").display().to_string();
    run("sh", &["ci/deb.sh", binaries().to_str().unwrap(), &out], &[("COMPRESSION", "none")]);
    let environment = [("CARGO_TARGET_DIR", target.as_str()), ("LEVEL", "1")];
    let built = run("make", &["rpm", "DIST=dev", &format!("PACKAGES={out}")], &environment);
    assert!(built.contains("hopmap needs GLIBC_2."), "{built}");
    let mut files: Vec<String> =
        std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path().display().to_string()).collect();
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    files.insert(0, "ci/try-packages.sh".into());
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let said = run("sh", &files, &[]);
    assert_eq!(said.matches("nothing is left").count(), 4, "{said}");
}
