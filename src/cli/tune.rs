//! `hopmap tune`: from a program to the measured gain of a placement. It records the program, measures the machine, writes a pipeline
//! file and runs it, each by the command that a user would take.

mod arguments;
mod file;
mod kept;
mod launcher;
mod machine;
mod recording;
mod step;

use std::path::Path;
use std::time::Duration;

use hopmap_command::{Exit, Failure, refuse, shown};
use hopmap_launchers::{are_several, launch_file, start_command};
use hopmap_model::{APPROXIMATE, Artifact as _, MOST_GAIN, Mapping, Metrics, Prediction, Program, Trials};
use hopmap_mpi_environment::LauncherKind;
use hopmap_recording::Recording;
use hopmap_trials::{best, comparison, fails, gain as gain_of, rival};

use super::hosts::Allocation;
use super::job::End;
use super::launchable;
use super::open::working_directory;
use super::output::{Output, Result};
use super::run::Request;
use super::written::{self, PipelineFile};
use crate::engine::time_of_experiments;
pub(crate) use arguments::Arguments;
use file::{CHECK, LAUNCH_FILE, RECORDED_HOSTS, TuneFile, runs_time};
use kept::Kept;
use launcher::{command_line, started};
use machine::{Machine, is_to_measure, machine, nothing_to_place, objectives};
use recording::{RECORDING, launched_s, record, recorded_hosts, run_time};
use step::{LEAST_PAIRS, OutOfTime, runs_needed};

/// Names in the folder of the results.
const PIPELINE: &str = "tune.toml";
const PROGRAM: &str = "program.toml";
const BEST_SO_FAR: &str = "best-so-far";

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    let program = arguments.measurement.programs(&arguments.program)?;
    let arguments = &Arguments { program, ..arguments.clone() };
    let end = End::new(arguments.deadline);
    let out = working_directory()?.join(&arguments.out);
    let allocation = arguments.allocation.allocation(None, output)?;
    let _lock = written::lock(&out)?;
    let kept = Kept::new(&arguments.keep, &out)?;
    let restores = kept.as_ref().map(Kept::command).into_iter().chain(arguments.prepare.clone());
    let prepare = restores.reduce(|restore, own| format!("{restore} || exit\n{own}"));
    check(arguments, &allocation, &out, prepare.as_deref())?;
    launchable::check_programs(&arguments.program)?;
    launchable::check_hosts(arguments.measurement.launch, &allocation.hosts, output)?;
    if let Some(reason) =
        nothing_to_place(&allocation, arguments.measurement.launch).filter(|_| !arguments.force)
    {
        output.line(reason);
        return Ok(Exit::Done);
    }
    // A machine that is known, or a single host, may end all before the program has run.
    let is_one = allocation.hosts.hosts.len() == 1 && !arguments.force;
    let is_early = is_one || !is_to_measure(arguments, &out);
    let early = if is_early { Some(machine(arguments, &allocation, &out, end, output)?) } else { None };
    if let Some(Machine { nothing_to_place: Some(reason), .. }) = early.as_ref().filter(|_| !arguments.force)
    {
        output.line(reason);
        return Ok(Exit::Done);
    }
    kept.as_ref().map_or(Ok(()), Kept::put_aside)?;
    let exit = tune(arguments, &allocation, early, prepare.as_deref(), (&out, end), output);
    kept.as_ref().map_or(Ok(()), |kept| kept.restore().and_then(|()| kept.note_left()))?;
    exit
}

fn tune(
    arguments: &Arguments,
    allocation: &Allocation,
    early: Option<Machine>,
    prepare: Option<&str>,
    (out, end): (&Path, Option<End>),
    output: Output,
) -> Result {
    let exit = record(arguments, allocation, prepare, out, end, output)?;
    if exit != Exit::Done {
        output.line("the recorded run failed: nothing is tuned");
        return Ok(exit);
    }
    let recording = Recording::read(&out.join(RECORDING)).map_err(Failure::failed)?;
    let machine = match early {
        Some(machine) => machine,
        None => machine(arguments, allocation, out, end, output)?,
    };
    say_what_fits(arguments, &recording, launched_s(out), end, output);
    let hosts = recorded_hosts(&recording, &machine.system, output);
    let tune = TuneFile::new(arguments, allocation, prepare);
    let mut tune = tune.with_recording(&recording, hosts.is_some(), launched_s(out));
    (tune.slots, tune.objectives) = (machine.slots, objectives(arguments, &machine.system, output)?);
    if !can_be_replayed(arguments, out, end, output)? {
        without_predictions(&mut tune, arguments.best)?;
    }
    OutOfTime::check(end, "the reading of the recording")?;
    let shares = recording.shares_processors();
    if shares {
        output.note("the recorded ranks shared processors, which the bound leaves out: it ends nothing");
    }
    let file = PipelineFile::write(out.join(PIPELINE), &tune.pipeline()?, &arguments.store)?;
    if let Some(hosts) = &hosts {
        file.save(&[(RECORDED_HOSTS, Some(hosts))])?;
    }
    // The bound is on the whole run: a printed time of a part of it may gain more.
    let is_whole = arguments.measurement.time_after.is_none();
    let is_bounded = tune.is_default_known && is_whole && tune.is_predictable && !shares && !arguments.force;
    let worth = is_bounded.then_some(arguments.worth);
    let exit = file.run(&Request { end: end.map(|end| end.at), worth, no_report: false }, output)?;
    if exit == Exit::Failed && file.has_failed(CHECK)? {
        OutOfTime::check(end, "the check of the launcher")?;
    }
    if exit == Exit::Failed
        && let Some(launch) = arguments.measurement.launch.reordered()
        && file.has_failed(CHECK)?
    {
        output.line("the launcher does not start ranks where its launch file has them: `hopmap reorder` renumbers them instead");
        let mut again = arguments.clone();
        again.measurement.launch = launch;
        return self::tune(&again, allocation, None, prepare, (out, end), output);
    }
    let trials = file.newest_or_partial::<Trials>("trial")?;
    let is_partial = trials.as_ref().is_some_and(|(_, is_partial)| *is_partial);
    conclude(arguments, &file, (&tune, is_bounded), trials.map(|(trials, _)| trials), output)?;
    if are_several(&arguments.program) && out.join(LAUNCH_FILE).exists() {
        let programs = command_line(arguments.program.iter());
        output.line(format!("in the command above, `{programs}` takes the place of -n with the number of all ranks, and of PROGRAM"));
    }
    match exit {
        Exit::Interrupted => leave_best(arguments, &file, output)?,
        Exit::Done if is_partial && end.is_some_and(|end| end.is_of_job) => {
            output.line("stopped early, because the job ends; the same command goes on in another job");
            return Ok(Exit::Interrupted);
        }
        _ => {}
    }
    Ok(exit)
}

/// Checks options before the program is recorded, which may take long: as a pipeline file, but for what a recording is needed for.
fn check(arguments: &Arguments, allocation: &Allocation, out: &Path, prepare: Option<&str>) -> Result<()> {
    if let Some(path) = arguments.topology.as_ref().filter(|path| !path.exists()) {
        return refuse(format!("`--topology {}` does not exist", shown(path)), "check the path");
    }
    let has_rates = arguments.latency.is_some() || arguments.bandwidth.is_some();
    if has_rates && arguments.topology.is_none() && arguments.shape.is_none() {
        return refuse(
            "`--latency` and `--bandwidth` are those of a machine that is given",
            "add --shape, such as tree:2x4x2, or --topology; without them, the machine is measured",
        );
    }
    if arguments.topology.is_some() && arguments.latency.as_ref().is_some_and(toml::Value::is_array) {
        return refuse(
            "`--latency` is one number with `--topology`",
            "give the latency of links that have none",
        );
    }
    if LauncherKind::of(&arguments.program[0]).is_some() {
        let launcher = &arguments.program[0];
        return refuse(
            format!("`{launcher}` is a launcher, and tune starts the program by itself"),
            format!("give the program without it, and its options with --launcher '{launcher} …'"),
        );
    }
    // Before the recorded run, which may be long.
    started(arguments, allocation, &arguments.program)?;
    if out.join(RECORDING).exists() {
        return Ok(());
    }
    let pipeline = TuneFile::new(arguments, allocation, prepare).pipeline()?;
    PipelineFile::write(out.join(PIPELINE), &pipeline, &arguments.store).map(drop)
}

/// Whether predictions of the recorded program may end the work: not those of one that cannot be replayed, for which the error says why,
/// nor of one whose threads call MPI at the same time, or whose communication is in part left out.
fn can_be_replayed(arguments: &Arguments, out: &Path, end: Option<End>, output: Output) -> Result<bool> {
    let file = PipelineFile::write(out.join(PROGRAM), &TuneFile::program_pipeline(), &arguments.store)?;
    let request = Request { end: end.map(|end| end.at), no_report: true, worth: None };
    match file.run(&request, Output::new(false, true))? {
        Exit::Done => {
            let Some((_, record, _)) = file.newest_record("program", Program::KIND)? else {
                return Ok(false);
            };
            let is_exact = !record.metrics.contains_key(APPROXIMATE);
            if !is_exact {
                output.line("threads call MPI at the same time, or some communication is not replayed: candidates are compared by runs, without bound and predictions");
            }
            Ok(is_exact)
        }
        Exit::Interrupted => Err(Failure::new(Exit::Interrupted, [])),
        _ => {
            OutOfTime::check(end, "the reading of the recording")?;
            output.line("the program cannot be replayed: candidates are compared by runs, without bound and predictions");
            Ok(false)
        }
    }
}

/// Takes as many candidates as run, since nothing chooses among them.
fn without_predictions(tune: &mut TuneFile<'_>, best: u32) -> Result<()> {
    tune.is_predictable = false;
    tune.objectives.retain(|name| name != "predicted-time");
    tune.objectives.truncate(best as usize);
    match tune.objectives.is_empty() {
        true => refuse("`predicted-time` needs a program that can be replayed", "add F to --objectives"),
        false => Ok(()),
    }
}

/// Says how long a run takes and how many fit into the time that is left; `launched_s` is from the start of the launcher to its end.
fn say_what_fits(
    arguments: &Arguments,
    recording: &Recording,
    launched_s: Option<f64>,
    end: Option<End>,
    output: Output,
) {
    let Some(inside_s) = run_time(recording) else { return };
    let ranks = recording.processes.len();
    let seconds = launched_s.unwrap_or_default().max(inside_s);
    let run = format!(
        "a run of {ranks} ranks takes {seconds:.2} s, of which the program has {inside_s:.2} s between MPI_Init and MPI_Finalize and \
         the start of the launcher the rest"
    );
    let Some(end) = end else { return output.line(run) };
    let left_s = time_of_experiments(end.left());
    let time_s = runs_time(arguments, recording).map_or(left_s, |time_s| time_s.min(left_s));
    let runs = (time_s / seconds.max(1e-3)) as u64;
    let (choice, least) = runs_needed(u64::from(arguments.best).min(arguments.objectives.len() as u64));
    let before = if end.is_of_job { "before the job ends" } else { "before the deadline" };
    output.line(format!("{run}: about {runs} fit in {before}"));
    if runs < least {
        let spent = end.time.saturating_sub(end.left()).as_secs_f64();
        let share = time_of_experiments(Duration::from_secs(1));
        // A tenth more, as runs differ.
        let whole = 1.1 * (spent + (least as f64 * seconds + inside_s) / share);
        let longer = match end.is_of_job {
            true => format!("ask for a job of about {whole:.0} s"),
            false => format!("give about --deadline {whole:.0}s"),
        };
        output.line(format!(
            "{least} are needed: {choice} to warm up and choose the candidate, {LEAST_PAIRS} pairs for an interval; {longer}, or a \
             shorter program"
        ));
    }
}

/// Says what came out, in one sentence.
fn conclude(
    arguments: &Arguments,
    file: &PipelineFile<'_>,
    (tune, is_bounded): (&TuneFile<'_>, bool),
    trials: Option<Trials>,
    output: Output,
) -> Result<()> {
    let bound = file.newest::<Metrics>("bound")?;
    let most = bound.and_then(|bound| bound.summary.get(MOST_GAIN).copied());
    if let Some(most) = most.filter(|most| is_bounded && *most < arguments.worth) {
        output
            .line(format!("no placement gains more than {:.1} %: keep the default placement", 100.0 * most));
        return Ok(());
    }
    let predicted = |cell: &str| -> Result<Option<f64>> {
        Ok(file.newest::<Prediction>(cell)?.map(|prediction| prediction.seconds()))
    };
    let Some(trials) = trials else {
        output.line("nothing was measured: the default placement stays");
        return Ok(());
    };
    let Some(chosen) = rival(&trials) else {
        output.line(match (tune.is_predictable, tune.is_default_known) {
            // Of several, none was compared.
            _ if trials.mappings.len() > 1 => "the trial ended before a candidate was compared with the default placement, which stays: give a longer --deadline",
            (false, _) => "no candidate differs from the default placement",
            (true, true) => "no candidate is predicted to be faster than the default placement: keep it",
            (true, false) => "no candidate is predicted to be faster than the linear mapping; the default placement is not known",
        });
        return Ok(());
    };
    let names = ("the default placement", "placed");
    let Some(mut sentence) = comparison(&trials, chosen, names, arguments.measurement.allow_failures) else {
        output.line("no candidate ran to its end as well as the default placement: the launch file is the default placement");
        return Ok(());
    };
    let (default_fails, fails) = match trials.mappings.first() {
        Some(default) if !arguments.measurement.allow_failures => {
            (fails(&trials, &default.name), fails(&trials, &default.name) || fails(&trials, &chosen.name))
        }
        _ => (false, false),
    };
    if default_fails {
        sentence.push_str("; there is no launch file: with --allow-failures there is one");
    } else if fails {
        sentence.push_str(
            "; so the launch file is the default placement: --allow-failures compares them nevertheless",
        );
    } else {
        let candidate = chosen.name.strip_prefix("placed").unwrap_or_default();
        let placed = predicted(&format!("predicted{candidate}"))?;
        if let (Some(default), Some(placed)) = (predicted("predicted-default")?, placed) {
            let of = if arguments.measurement.time_after.is_some() { " of the whole run" } else { "" };
            sentence.push_str(&format!(", predicted {:.1} %{of}", 100.0 * (1.0 - placed / default)));
        }
        if gain_of(&trials, &chosen.name).is_none_or(|gain| gain.interval.is_none()) {
            sentence.push_str("; so the launch file is the default placement: give a longer --deadline");
        }
    }
    output.line(sentence);
    Ok(())
}

/// Writes the launch file of the best placement of a trial that was stopped early.
fn leave_best(arguments: &Arguments, file: &PipelineFile<'_>, output: Output) -> Result<()> {
    let Some(trials) = file.newest::<Trials>("trial")? else { return Ok(()) };
    let Some(best) = best(&trials, arguments.measurement.allow_failures)
        .filter(|best| trials.mappings.first() != Some(best))
    else {
        output.line("stopped early: no placement is known to be faster so far; the same command goes on");
        return Ok(());
    };
    let mapping = file.artifact::<Mapping>(&best.digest)?;
    let launch =
        launch_file(&mapping, &best.digest, arguments.measurement.launch, false).map_err(Failure::failed)?;
    let path = file.path().with_file_name(BEST_SO_FAR);
    file.save(&[(BEST_SO_FAR, Some(&launch.text))])?;
    let command = start_command(&launch.command, &shown(&path));
    output.line(format!("stopped early: the best placement so far is `{command}`; the same command goes on"));
    Ok(())
}
