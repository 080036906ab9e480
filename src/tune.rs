//! The pipeline file of `hopmap tune`: a recorded program, a machine, candidates with predictions, and trials.

use std::fmt::Write as _;

use hopmap_launchers::Launch;

use crate::pipeline::literal as quoted;

/// Blocks in which all candidates run, before the best goes on alone.
pub(crate) const CHOOSE: u32 = 3;

const PROGRAM: &str = r#"[stages.program]
uses = "trace/program"
with = { path = "${params.recording}" }
"#;
const PREDICTED: &str = r#"[stages.predicted-default]
uses  = "predict/time"
needs = { program = "program", system = "machine", mapping = "default" }
with  = { baselines = false, algorithms = { rules = "${params.rules}" } }

[stages.predicted]
uses    = "predict/time"
needs   = { program = "program", system = "machine", mapping = "placed" }
foreach = "placed"
with    = { baselines = false, algorithms = { rules = "${params.rules}" } }

"#;
const PREDICTIONS: &str = " predictions = [\"predicted-default\", \"predicted[*]\"],";
const BEST: &str = "with.best = \"${params.best}\"\n";

/// Where the machine comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum MachineSource {
    /// An artifact in a folder, as a probe left it.
    Stored(String),
    /// A file that `topology/import` reads, or the folder of an artifact, of which the hosts are chosen.
    File {
        /// The stage that reads it.
        uses: &'static str,
        /// Its path.
        path: String,
        /// Slots of its hosts, where it has none.
        slots: Option<u32>,
        /// Latency in seconds of its links that have none.
        latency: Option<String>,
        /// Bandwidth in bytes per second, one for all links or a list by level, of those that have none.
        bandwidth: Option<String>,
    },
    /// The shape of a network, latency and bandwidth of its links.
    Shape {
        /// As in `topology/synthetic`.
        shape: String,
        /// In seconds, one for all links or a list by level.
        latency: String,
        /// In bytes per second, likewise.
        bandwidth: String,
    },
}

/// What the file says.
#[derive(Debug, Clone, PartialEq)]
pub struct TuneFile {
    /// The program and its arguments, quoted as in a shell.
    pub program: String,
    /// The directory in which it runs.
    pub folder: String,
    /// The launcher of its MPI.
    pub launch: Launch,
    /// Its name and options, if they are given.
    pub launcher: Option<String>,
    /// The hosts, as a host list.
    pub hosts: String,
    /// Slots of each host: a number, or a list of those of each.
    pub slots: String,
    /// The machine.
    pub machine: MachineSource,
    /// File with the host of every recorded rank; none if the linear mapping stands for the default placement.
    pub recorded_hosts: Option<String>,
    /// Whether this placement fits into the slots, so that the bound can be relative to it.
    pub is_default_known: bool,
    /// Whether the recorded program can be replayed: else nothing is bounded or predicted, and the candidates are chosen by their runs.
    pub is_predictable: bool,
    /// Objectives of the candidates.
    pub objectives: Vec<String>,
    /// Candidates that run.
    pub best: u32,
    /// Half width of the interval at which the measurement ends.
    pub precision: f64,
    /// Time for all runs, in seconds.
    pub time_s: Option<f64>,
    /// Time after which a run is stopped, in seconds.
    pub timeout_s: Option<f64>,
    /// Text before the run time on the standard output.
    pub time_after: Option<String>,
    /// Whether placements whose runs fail are compared, too.
    pub allow_failures: bool,
    /// Shell command before every run.
    pub prepare: Option<String>,
}

impl TuneFile {
    /// The text of a file with the machine alone.
    #[must_use]
    pub fn machine_text(&self) -> String {
        format!("name = \"tune-machine\"\ndescription = \"The machine of a placement\"\n\n{}", self.machine())
    }

    /// The text of a file with the recorded program alone.
    #[must_use]
    pub fn program_text(&self) -> String {
        format!(
            "name = \"tune-program\"\ndescription = \"A recorded program\"\n\n[params]\nrecording = \"recording\"\n\n{PROGRAM}"
        )
    }

    /// The text of the file. Paths are relative to its folder, which has the recording.
    #[must_use]
    pub fn text(&self) -> String {
        let rules = match self.launch {
            Launch::OpenMpi4 | Launch::OpenMpi5 | Launch::OpenMpiHosts => "open-mpi",
            _ => "mpich",
        };
        let (program, launch) = (quoted(&self.program), name_of(self.launch));
        let (machine, default) = (self.machine(), self.default_placement());
        let options = self.options();
        let objectives: Vec<String> = self.objectives.iter().map(|name| quoted(name)).collect();
        let objectives = format!("[{}]", objectives.join(", "));
        let check = self
            .launcher
            .as_ref()
            .map(|launcher| format!("with    = {{ launcher = {} }}\n", quoted(launcher)));
        let check = check.unwrap_or_default();
        let (bound, predicted) = (self.bound(), if self.is_predictable { PREDICTED } else { "" });
        let (searched, predictions, best, chosen) = match (self.is_predictable, self.is_default_known) {
            (true, true) => (", program = \"program\", bound = \"bound\"", PREDICTIONS, self.best(), BEST),
            (true, false) => (", program = \"program\"", PREDICTIONS, self.best(), BEST),
            (false, _) => ("", "", String::new(), ""),
        };
        format!(
            r#"name = "tune"
description = "Find a faster placement of a recorded program, and measure its gain"

[params]
recording  = "recording"        # of the program under the default placement, with events
program    = {program}
launch     = "{launch}"
rules      = "{rules}"           # algorithms of collective operations, as in this MPI
objectives = {objectives}   # a candidate for each
{best}precision  = {precision}               # the interval has to be this narrow

[stages.messages]
uses = "trace/import"
with = {{ path = "${{params.recording}}", algorithms = {{ rules = "${{params.rules}}" }} }}

{machine}
{bound}
{default}
[stages.placed]
uses   = "map/auto"
needs  = {{ task-graph = "messages", system = "machine"{searched} }}
with   = {{ objective = "${{matrix.objective}}", algorithms = {{ rules = "${{params.rules}}" }} }}
matrix = {{ objective = "${{params.objectives}}" }}

{predicted}# Where the launcher really starts the ranks of every candidate: an error, before any run, if that is not the mapping.
[stages.files]
uses    = "launch/file"
needs   = {{ mapping = "placed" }}
foreach = "placed"
with    = {{ launch = "${{params.launch}}" }}

[stages.check]
uses    = "launch/check"
needs   = {{ mapping = "placed", launch = "files" }}
foreach = "placed"
{check}
# The best candidates and the default in turn; then the fastest candidate and the default in fresh runs, which give the gain.
[stages.trial]
uses  = "run/trial"
needs = {{ mappings = ["default", "placed[*]"],{predictions} checks = ["check[*]"] }}
with.program = "${{params.program}}"
with.launch = "${{params.launch}}"
{chosen}with.precision = "${{params.precision}}"
with.choose = {CHOOSE}
{options}
[stages.best]
uses  = "run/best"
needs = {{ trials = "trial", mappings = ["default", "placed[*]"] }}
{allowed}
[stages.launch]
uses  = "launch/file"
needs = {{ mapping = "best" }}
with  = {{ launch = "${{params.launch}}" }}
save  = {{ launch = "rankfile" }}
"#,
            allowed = if self.allow_failures { "with  = { allow_failures = true }\n" } else { "" },
            precision = self.precision,
        )
    }

    /// The parameter that says how many candidates run.
    fn best(&self) -> String {
        format!("best       = {}                  # candidates that run, by predicted time\n", self.best)
    }

    /// The program and its bound, which only says what is to be gained over the default placement if it is relative to that.
    fn bound(&self) -> String {
        let (comment, reference) = match (self.is_predictable, self.is_default_known) {
            (false, _) => {
                return "# The program cannot be replayed, so nothing is bounded or predicted.\n".to_owned();
            }
            (true, true) => (
                "# What a placement gains at most over the default: with --worth, nothing below is done if that is too little.",
                ", mapping = \"default\"",
            ),
            (true, false) => (
                "# What a placement gains at most over the linear mapping: the default placement is not known.",
                "",
            ),
        };
        format!(
            r#"{PROGRAM}
{comment}
[stages.bound]
uses  = "predict/bound"
needs = {{ program = "program", task-graph = "messages", system = "machine"{reference} }}
with  = {{ algorithms = {{ rules = "${{params.rules}}" }} }}
"#
        )
    }

    fn machine(&self) -> String {
        let hosts = quoted(&self.hosts);
        // A probe has measured exactly these hosts; the others name more, have more slots, or are in another order.
        let chosen = |network: String, rates: String| {
            let free = format!("with.free = {hosts}\nwith.slots_per_host = {}\n", self.slots);
            format!(
                "[stages.network]\n{network}\n[stages.machine]\nuses  = \"select/nodes\"\n\
                 needs = {{ system = \"network\" }}\n{free}{rates}"
            )
        };
        match &self.machine {
            MachineSource::Stored(path) => {
                let path = quoted(path);
                format!("[stages.machine]\nuses = \"stored/system-graph\"\nwith = {{ path = {path} }}\n")
            }
            MachineSource::File { uses, path, slots, latency, bandwidth } => {
                let slots = slots.map(|slots| format!(", slots = {slots}")).unwrap_or_default();
                let latency = latency.iter().map(|latency| format!("with.link_latency_s = {latency}\n"));
                let bandwidth =
                    bandwidth.iter().map(|rate| format!("with.link_bandwidth_bytes_per_s = {rate}\n"));
                chosen(
                    format!("uses = \"{uses}\"\nwith = {{ path = {}{slots} }}\n", quoted(path)),
                    latency.chain(bandwidth).collect(),
                )
            }
            MachineSource::Shape { shape, latency, bandwidth } => {
                let shape = quoted(shape);
                let network = format!(
                    "uses = \"topology/synthetic\"\nwith.shape = {shape}\nwith.hosts = {hosts}\n\
                     with.link_latency_s = {latency}\nwith.bandwidth_bytes_per_s = {bandwidth}\n"
                );
                match self.slots.starts_with('[') {
                    true => chosen(network, String::new()),
                    false => format!("[stages.machine]\n{network}"),
                }
            }
        }
    }

    fn default_placement(&self) -> String {
        match &self.recorded_hosts {
            Some(path) => format!(
                "# The placement of the recorded run.\n[stages.default]\nuses  = \"map/import\"\n\
                 needs = {{ task-graph = \"messages\", system = \"machine\" }}\n\
                 with  = {{ path = {}, format = \"machinefile\" }}\n",
                quoted(path)
            ),
            None => "# Stands for the placement of the recorded run, whose hosts are not known.\n[stages.default]\n\
                     uses  = \"map/linear\"\nneeds = { task-graph = \"messages\", system = \"machine\" }\n"
                .to_owned(),
        }
    }

    /// The parameters of the trial that are given.
    fn options(&self) -> String {
        let texts =
            [("launcher", &self.launcher), ("time_after", &self.time_after), ("prepare", &self.prepare)];
        let mut lines = format!("with.folder = {}\n", quoted(&self.folder));
        for (name, text) in texts {
            if let Some(text) = text {
                // Writing to a string does not fail.
                let _ = writeln!(lines, "with.{name} = {}", quoted(text));
            }
        }
        for (name, seconds) in [("time_s", self.time_s), ("timeout_s", self.timeout_s)] {
            if let Some(seconds) = seconds {
                let _ = writeln!(lines, "with.{name} = {seconds:?}");
            }
        }
        lines
    }
}

/// The name of a launcher in pipeline files.
fn name_of(launch: Launch) -> String {
    serde_json::to_value(launch).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_toml_with_what_was_given() {
        let shape = MachineSource::Shape {
            shape: "tree:2x2".into(),
            latency: "[1e-6]".into(),
            bandwidth: "1e9".into(),
        };
        let file = MachineSource::File {
            uses: "topology/import",
            path: "a \"b\"".into(),
            slots: Some(4),
            latency: Some("1e-6".into()),
            bandwidth: Some("[1e9]".into()),
        };
        for (machine, recorded_hosts) in
            [(shape, None), (file, Some("hosts".to_owned())), (MachineSource::Stored("machine".into()), None)]
        {
            let mut tune = TuneFile {
                program: "./app 'a b'".into(),
                folder: "/home".into(),
                launch: Launch::Slurm,
                launcher: Some("srun -v".into()),
                hosts: "n[1-2]".into(),
                slots: if recorded_hosts.is_some() { "[4, 1]".into() } else { "2".into() },
                machine,
                is_default_known: recorded_hosts.is_some(),
                is_predictable: true,
                recorded_hosts,
                objectives: vec!["F".into(), "T".into()],
                best: 2,
                precision: 0.01,
                time_s: Some(60.0),
                timeout_s: Some(90.0),
                time_after: Some("time \"x\"".into()),
                allow_failures: true,
                prepare: Some("cp a b".into()),
            };
            let file: toml::Table = tune.text().parse().unwrap();
            let trial = &file["stages"]["trial"]["with"];
            assert_eq!(trial["time_after"].as_str(), Some("time \"x\""));
            assert_eq!((trial["time_s"].as_float(), trial["timeout_s"].as_float()), (Some(60.0), Some(90.0)));
            let machine: toml::Table = tune.machine_text().parse().unwrap();
            assert_eq!(machine["stages"]["machine"], file["stages"]["machine"]);
            assert_eq!(file["stages"]["best"]["with"]["allow_failures"].as_bool(), Some(true));
            assert_eq!(file["params"]["program"].as_str(), Some("./app 'a b'"));
            assert_eq!(
                (file["params"]["launch"].as_str(), file["params"]["rules"].as_str()),
                (Some("slurm"), Some("mpich"))
            );
            let program: toml::Table = tune.program_text().parse().unwrap();
            assert_eq!(program["stages"]["program"], file["stages"]["program"]);
            tune.is_predictable = false;
            let text = tune.text();
            assert!(
                text.parse::<toml::Table>().is_ok() && !text.contains("predict/") && !text.contains("best =")
            );
        }
    }
}
