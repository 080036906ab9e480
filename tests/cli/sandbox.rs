//! A folder of its own for every test, and the binary run inside it.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// A folder in which commands run.
pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with a small program, a pipeline that places it, and nothing run yet.
    pub(crate) fn with_ring() -> Self {
        let sandbox = Self::new();
        sandbox.write("ring.csv", ring(8));
        sandbox.write("ring.toml", RING);
        sandbox
    }

    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Reads a file.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// Replaces a part of a file.
    pub(crate) fn edit(&self, name: &str, old: &str, new: &str) {
        let text = self.read(name);
        assert!(text.contains(old), "{name} does not contain {old}");
        self.write(name, text.replace(old, new));
    }

    /// Changes a bit in the middle of a file.
    pub(crate) fn damage(&self, name: impl AsRef<Path>) {
        let path = self.path().join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }

    /// The folder of the newest output of a stage.
    pub(crate) fn artifact(&self, stage: &str) -> PathBuf {
        let shown: serde_json::Value =
            serde_json::from_str(&self.stdout(&["show", stage, "--json"])).unwrap();
        PathBuf::from(shown["path"].as_str().unwrap())
    }

    /// The command, ready to run here.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("hopmap"));
        command.args(arguments).current_dir(self.path()).env("NO_COLOR", "1").env("RUST_BACKTRACE", "0");
        command
    }

    /// The command, ready to run here as a user whom permissions hold for, also where tests run as root.
    pub(crate) fn unprivileged(&self, arguments: &[&str]) -> Command {
        // Opened by root, who alone may be able to enter its folder.
        static BINARY: LazyLock<File> =
            LazyLock::new(|| File::open(assert_cmd::cargo::cargo_bin!("hopmap")).unwrap());
        let mut command = Command::new(format!("/proc/self/fd/{}", BINARY.as_raw_fd()));
        command.args(arguments).current_dir(self.path()).env("NO_COLOR", "1").env("RUST_BACKTRACE", "0");
        hopmap_test_support::unprivileged(&mut command, &self.path()).unwrap();
        command
    }

    /// Runs the command.
    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs the command and gives standard output; fails if the command does.
    pub(crate) fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the command and gives all that a person would see, without what differs from run to run.
    pub(crate) fn seen(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.code().is_some(), "{arguments:?} was killed by a signal");
        let mut seen = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.contains("panicked"), "{stderr}");
        if !stderr.is_empty() {
            seen.push_str("------- stderr -------\n");
            seen.push_str(&stderr);
        }
        if let Some(code) = output.status.code().filter(|&code| code != 0) {
            seen.push_str(&format!("[exit code {code}]\n"));
        }
        self.settled(&seen)
    }

    /// Text without what differs from run to run and from release to release: folders, times, digests, the version.
    fn settled(&self, text: &str) -> String {
        let text = text.replace(self.path().to_str().unwrap(), "DIR");
        let text = text.replace(concat!("hopmap ", env!("CARGO_PKG_VERSION")), "hopmap VERSION");
        let words = text.split_inclusive(|letter: char| letter.is_whitespace() || letter == '/');
        let mut settled: Vec<String> = Vec::new();
        for word in words {
            let (core, end) = word.split_at(word.trim_end_matches([' ', '\n', '/']).len());
            let is_digest =
                [12, 64].contains(&core.len()) && core.chars().all(|letter| letter.is_ascii_hexdigit());
            // A second run within a second has a number behind its name.
            let is_run = core.starts_with("20")
                && core.as_bytes().get(10) == Some(&b'T')
                && (core.len() == 19 || core.as_bytes().get(19) == Some(&b'.'));
            let is_time = core.ends_with('Z') && core.len() == 20;
            let is_entry = core.get(10..11) == Some("T") && core.get(19..21) == Some("Z-");
            let is_seconds = end == " "
                && core.split_once('.').is_some_and(|(whole, rest)| {
                    rest.len() == 2 && (whole.to_owned() + rest).chars().all(|letter| letter.is_ascii_digit())
                });
            settled.push(match () {
                () if is_digest => format!("DIGEST{end}"),
                () if is_run => format!("RUN{end}"),
                () if is_time => format!("TIME{end}"),
                () if is_entry => format!("ENTRY{}{end}", after_entry(core)),
                () if is_seconds => format!("N.NN{end}"),
                () => word.to_owned(),
            });
        }
        settled.concat()
    }
}

/// What follows the name of an entry of a history: punctuation, but not the number of another one of the same second.
fn after_entry(word: &str) -> &str {
    let rest = word.get(33..).unwrap_or_default();
    rest.strip_prefix('.')
        .map_or(rest, |rest| rest.trim_start_matches(|letter: char| letter.is_ascii_digit()))
}

/// The program that answers questions in SQL; tests are skipped where it was not built.
pub(crate) fn query_program() -> Option<PathBuf> {
    program_beside("hopmap-query", "HOPMAP_QUERY")
}

/// The program that runs stages as MPI ranks; tests are skipped where it was not built.
pub(crate) fn ranks_program() -> Option<PathBuf> {
    program_beside("hopmap-ranks", "HOPMAP_RANKS")
}

fn program_beside(name: &str, variable: &str) -> Option<PathBuf> {
    let beside = || assert_cmd::cargo::cargo_bin!("hopmap").with_file_name(name);
    let program = std::env::var_os(variable).map_or_else(beside, PathBuf::from);
    if program.is_file() {
        return Some(program);
    }
    hopmap_test_support::skipped(format!("{name} is missing; `cargo build -p {name}` builds it"));
    None
}

/// A ring of ranks that all send the same, as CSV.
pub(crate) fn ring(ranks: usize) -> String {
    let pair = |rank: usize| format!("{rank},{},10,1000\n", (rank + 3) % ranks);
    std::iter::once("source,destination,messages,bytes\n".to_owned()).chain((0..ranks).map(pair)).collect()
}

/// Folder of the project.
pub(crate) fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A pipeline that places the ring in two ways with some seeds, and what follows.
pub(crate) fn placements(seeds: &str, followers: &str) -> String {
    PLACEMENTS.replace("SEEDS", seeds) + followers
}

const PLACEMENTS: &str = r#"
[stages.program]
uses = "trace/import"
with = { path = "ring.csv", format = "csv" }

[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x4", costs = [1, 10] }

[stages.placement]
uses   = "map/${matrix.mapper}"
needs  = { task-graph = "program", system = "machine" }
matrix = { mapper = ["linear", "random"], seed = "SEEDS" }

"#;

/// A pipeline from a CSV file to launch files.
const RING: &str = r#"name = "ring"

[params]
ranks = "ring.csv"

[stages.program]
uses = "trace/import"
with = { path = "${params.ranks}", format = "csv" }

[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x4", costs = [1, 10] }

[stages.placement]
uses  = "map/annealing"
with  = { evaluations = 20000 }
needs = { task-graph = "program", system = "machine" }

[stages.quality]
uses  = "evaluate/mapping"
needs = { task-graph = "program", system = "machine", mapping = "placement" }

[stages.rankfile]
uses  = "launch/rankfile"
needs = { mapping = "placement" }
save  = { rankfile = "out/rankfile" }
"#;
