//! The pipelines of `hopmap tune`: a recorded program, a machine, candidates with predictions, and trials.

use hopmap_artifact::Folder;
use hopmap_formats::host_list;
use hopmap_mpi_environment::Implementation;
use hopmap_recording::Recording;

use super::arguments::Arguments;
use super::launcher::command_line;
use super::recording::{RECORDING, fits, run_time};
use super::step::CHOOSE;
use crate::cli::hosts::Allocation;
use crate::cli::open::working_directory;
use crate::cli::output::Result;
use crate::engine::time_of_experiments;
use crate::pipeline_text::{PipelineText, StageText, Value, path_text, reference};

/// The measured machine, and the hosts of the recorded ranks, in the folder of the results.
pub(super) const MACHINE: &str = "machine";
pub(super) const RECORDED_HOSTS: &str = "default.hosts";
/// The launch file, in the folder of the results.
pub(super) const LAUNCH_FILE: &str = "rankfile";
/// The stage that compares where ranks run with their mapping.
pub(super) const CHECK: &str = "check";
/// A run is stopped after this multiple of the recorded time and the time of a launcher to start: some launchers wait forever for ranks that
/// have failed.
const LONGEST: f64 = 10.0;
const START_S: f64 = 60.0;

/// The time for runs, which ends a trial as planned: the deadline of all would stop it, with a wider interval. It depends on what is
/// given and recorded alone, so that the next call writes the same file.
pub(super) fn runs_time(arguments: &Arguments, recording: &Recording) -> Option<f64> {
    let recorded = run_time(recording).unwrap_or_default();
    arguments.deadline.map(|deadline| (time_of_experiments(deadline) - recorded).max(1.0).round())
}

/// What a pipeline of `tune` depends on.
pub(super) struct TuneFile<'a> {
    arguments: &'a Arguments,
    allocation: &'a Allocation,
    /// Shell command before every run.
    prepare: Option<&'a str>,
    /// Slots of each host, where the file of the machine has none.
    pub(super) slots: Option<u32>,
    /// Objectives of the candidates.
    pub(super) objectives: Vec<String>,
    /// Seconds for all runs, and for each of them.
    times_s: (Option<f64>, Option<f64>),
    /// Whether the host of every recorded rank is known; else the linear mapping is taken as the default placement.
    has_recorded_hosts: bool,
    /// Whether this placement fits into the slots, so that the bound can be relative to it.
    pub(super) is_default_known: bool,
    /// Whether the recorded program can be replayed: else nothing is bounded or predicted, and the candidates are chosen by their runs.
    pub(super) is_predictable: bool,
}

/// A stage that maps the program to the machine.
fn mapper(name: &str, uses: &str) -> StageText {
    StageText::new(name, uses).need("task-graph", "messages").need("system", "machine")
}

/// A predicted time of a mapping.
fn prediction(name: &str, mapping: &str) -> StageText {
    let stage = StageText::new(name, "predict/time").need("program", "program").need("system", "machine");
    with_rules(stage.need("mapping", mapping).with("baselines", false))
}

fn with_rules(stage: StageText) -> StageText {
    stage.with("algorithms.rules", reference("params.rules"))
}

fn mappings() -> Value {
    vec!["default", "placed[*]"].into()
}

impl<'a> TuneFile<'a> {
    /// What is known before the program is recorded.
    pub(super) fn new(
        arguments: &'a Arguments,
        allocation: &'a Allocation,
        prepare: Option<&'a str>,
    ) -> Self {
        Self {
            arguments,
            allocation,
            prepare,
            slots: None,
            objectives: arguments.objectives.clone(),
            times_s: (None, None),
            has_recorded_hosts: false,
            is_default_known: false,
            is_predictable: true,
        }
    }

    /// The same with what a recording says. `launched_s` are the seconds from the start of its launcher to its end, if they are known.
    pub(super) fn with_recording(
        self,
        recording: &Recording,
        has_recorded_hosts: bool,
        launched_s: Option<f64>,
    ) -> Self {
        let longest = |seconds: f64| {
            let seconds = launched_s.map_or(seconds, |launched_s| launched_s.max(seconds));
            (LONGEST * seconds + START_S).round()
        };
        Self {
            times_s: (runs_time(self.arguments, recording), run_time(recording).map(longest)),
            has_recorded_hosts,
            is_default_known: has_recorded_hosts && fits(recording, &self.allocation.hosts),
            ..self
        }
    }

    /// The pipeline with the machine alone.
    pub(super) fn machine_pipeline(&self) -> Result<PipelineText> {
        let (description, stages) = ("The machine of a placement", self.machine()?);
        Ok(PipelineText { name: "tune-machine", description, stages, ..PipelineText::default() })
    }

    /// The pipeline with the recorded program alone.
    pub(super) fn program_pipeline() -> PipelineText {
        let stages = vec![StageText::new("program", "trace/program").with("path", RECORDING)];
        let description = "A recorded program";
        PipelineText { name: "tune-program", description, stages, ..PipelineText::default() }
    }

    /// The pipeline. Paths are relative to its folder, which has the recording.
    pub(super) fn pipeline(&self) -> Result<PipelineText> {
        let messages = StageText::new("messages", "trace/import").with("path", reference("params.recording"));
        let mut stages = vec![with_rules(messages)];
        stages.extend(self.machine()?);
        stages.extend(self.bound());
        stages.extend([self.default_placement(), self.candidates()]);
        if self.is_predictable {
            let placed = prediction("predicted", "placed").each("placed");
            stages.extend([prediction("predicted-default", "default"), placed]);
        }
        stages.extend(self.checks());
        let best = self.arguments.measurement.best("best", mappings());
        let launch = StageText::new("launch", "launch/file").need("mapping", "best");
        let launch = launch.given("--launch", "launch", Some(reference("params.launch")));
        stages.extend([self.trial()?, best, launch.save("launch", LAUNCH_FILE)]);
        let description = "Find a faster placement of a recorded program, and measure its gain";
        Ok(PipelineText { name: "tune", description, parameters: self.parameters(), stages })
    }

    fn parameters(&self) -> Vec<(&'static str, Value, &'static str)> {
        let measurement = &self.arguments.measurement;
        let rules = match measurement.launch.implementation() {
            Implementation::OpenMpi => "open-mpi",
            _ => "mpich",
        };
        let mut parameters = vec![
            ("recording", RECORDING.into(), "of the program under the default placement, with events"),
            ("program", command_line(self.arguments.program.iter()).into(), ""),
            ("launch", measurement.launch_name().into(), ""),
            ("rules", rules.into(), "algorithms of collective operations, as in this MPI"),
            ("objectives", self.objectives.clone().into(), "a candidate for each"),
            ("precision", measurement.precision.into(), "the interval has to be this narrow"),
        ];
        if self.is_predictable {
            parameters.push(("best", self.arguments.best.into(), "candidates that run, by predicted time"));
        }
        parameters
    }

    fn machine(&self) -> Result<Vec<StageText>> {
        let Arguments { topology, shape, latency, bandwidth, .. } = self.arguments;
        let hosts = &self.allocation.hosts;
        let names = host_list::compress(hosts.names());
        // A probe has measured exactly these hosts; the others name more, have more slots, or are in another order.
        let chosen = StageText::new("machine", "select/nodes")
            .need("system", "network")
            .given("--hosts", "free", Some(names.as_str()))
            .given("--slots", "slots_per_host", Some(hosts.slots_of_each()));
        if let Some(path) = topology {
            let path = working_directory()?.join(path);
            let is_stored = Folder::open(&path).is_ok();
            let uses = if is_stored { "stored/system-graph" } else { "topology/import" };
            let network = StageText::new("network", uses)
                .given("--topology", "path", Some(path_text(&path)))
                .given("--slots", "slots", self.slots.filter(|_| !is_stored));
            let rates =
                bandwidth.clone().map(|rates| if rates.is_array() { rates } else { vec![rates].into() });
            let chosen = chosen.given("--latency", "link_latency_s", latency.clone()).given(
                "--bandwidth",
                "link_bandwidth_bytes_per_s",
                rates,
            );
            return Ok(vec![network, chosen]);
        }
        let Some(shape) = shape else {
            let path = format!("{MACHINE}/system");
            return Ok(vec![StageText::new("machine", "stored/system-graph").with("path", path)]);
        };
        let name = if hosts.are_equal() { "machine" } else { "network" };
        let network = StageText::new(name, "topology/synthetic")
            .given("--shape", "shape", Some(shape.as_str()))
            .given("--hosts", "hosts", Some(names))
            .given("--latency", "link_latency_s", latency.clone())
            .given("--bandwidth", "bandwidth_bytes_per_s", bandwidth.clone());
        Ok(if hosts.are_equal() { vec![network] } else { vec![network, chosen] })
    }

    /// The program and its bound, which only says what is to be gained over the default placement if it is relative to that.
    fn bound(&self) -> Vec<StageText> {
        if !self.is_predictable {
            return Vec::new();
        }
        let program = StageText::new("program", "trace/program").with("path", reference("params.recording"));
        let bound = mapper("bound", "predict/bound").need("program", "program");
        let bound = match self.is_default_known {
            true => bound
                .comment("What a placement gains at most over the default: with --worth, nothing below is done if that is too little.")
                .need("mapping", "default"),
            false => bound
                .comment("What a placement gains at most over the linear mapping: the default placement is not known."),
        };
        vec![program, with_rules(bound)]
    }

    fn default_placement(&self) -> StageText {
        if !self.has_recorded_hosts {
            return mapper("default", "map/linear")
                .comment("Stands for the placement of the recorded run, whose hosts are not known.");
        }
        mapper("default", "map/import")
            .comment("The placement of the recorded run.")
            .with("path", RECORDED_HOSTS)
            .with("format", "machinefile")
    }

    fn candidates(&self) -> StageText {
        let mut placed = mapper("placed", "map/auto")
            .given("--objectives", "objective", Some(reference("matrix.objective")))
            .matrix("--objectives", "objective", reference("params.objectives"));
        if self.is_predictable {
            placed = placed.need("program", "program");
            placed = if self.is_default_known { placed.need("bound", "bound") } else { placed };
        } else {
            placed = placed.comment("The program cannot be replayed, so nothing is bounded or predicted.");
        }
        with_rules(placed)
    }

    /// Launch files of the candidates, and whether the launcher obeys them.
    fn checks(&self) -> [StageText; 2] {
        let files = StageText::new("files", "launch/file")
            .comment("Where the launcher really starts the ranks of every candidate: an error, before any run, if that is not the mapping.")
            .need("mapping", "placed")
            .each("placed")
            .given("--launch", "launch", Some(reference("params.launch")));
        let check = StageText::new(CHECK, "launch/check")
            .need("mapping", "placed")
            .need("launch", "files")
            .each("placed")
            .given("--launcher", "launcher", self.arguments.measurement.launcher.as_deref());
        [files, check]
    }

    fn trial(&self) -> Result<StageText> {
        let trial = self
            .arguments
            .measurement
            .trial(mappings())?
            .comment("The best candidates and the default in turn; then the fastest candidate and the default in fresh runs, which give the gain.")
            .need("checks", vec!["check[*]"])
            .given("PROGRAM", "program", Some(reference("params.program")))
            .given("PROGRAM", "timeout_s", self.times_s.1)
            .given("--launch", "launch", Some(reference("params.launch")))
            .given("--precision", "precision", Some(reference("params.precision")))
            .given("--prepare", "prepare", self.prepare)
            .given("--deadline", "time_s", self.times_s.0)
            .with("choose", CHOOSE);
        Ok(match self.is_predictable {
            true => trial.need("predictions", vec!["predicted-default", "predicted[*]"]).given(
                "--best",
                "best",
                Some(reference("params.best")),
            ),
            false => trial,
        })
    }
}
