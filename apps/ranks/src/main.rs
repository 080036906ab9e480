//! One of the processes of a stage: `LAUNCHER hopmap-ranks FOLDER`, started by `hopmap`.

mod communicator;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use communicator::Relay;
use hopmap::ranks;
use hopmap_model::{Communicator as _, Error};
use hopmap_mpi_environment::Location;
use mpi::Threading;
use mpi::traits::Communicator as _;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(folder), None) = (arguments.next().map(PathBuf::from), arguments.next()) else {
        complain("hopmap-ranks FOLDER is started by hopmap, for a stage that has a `launcher`");
        return ExitCode::from(2);
    };
    if folder.as_os_str() == "--where" {
        return print_location();
    }
    // MPI is called from this thread only; the stage runs in others.
    let wanted = Threading::Funneled;
    let Some((universe, threading)) = mpi::initialize_with_threading(wanted) else {
        complain("hopmap-ranks: MPI does not start");
        return ExitCode::FAILURE;
    };
    if threading < wanted {
        complain("hopmap-ranks: this MPI takes no programs with threads; MPI_THREAD_FUNNELED is needed");
        return ExitCode::FAILURE;
    }
    let world = universe.world();
    let (relay, requests) = communicator::relay(&world);
    let rank = relay.process();
    let folder_of_worker = folder.clone();
    let worker = std::thread::spawn(move || work(&folder_of_worker, &relay));
    communicator::serve(&world, &requests);
    let error = match worker.join() {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(error)) => error,
        Err(_) => hopmap_model::InternalError::new("hopmap-ranks panicked").into(),
    };
    // Others wait for what this process will not send any more.
    if ranks::blame(&folder, rank, &error) {
        complain(&format!("hopmap-ranks: rank {rank}: {error}"));
    }
    world.abort(1)
}

/// Prints where this process runs with its rank in MPI, which a library that reorders ranks knows alone.
fn print_location() -> ExitCode {
    let Some(universe) = mpi::initialize() else {
        complain("hopmap-ranks: MPI does not start");
        return ExitCode::FAILURE;
    };
    let rank = Some(universe.world().rank().unsigned_abs());
    let location = Location { rank, ..Location::of_this_process() };
    // One call, so that the lines of several ranks do not mix.
    match std::io::stdout().write_all(format!("{location}\n").as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn work(folder: &Path, relay: &Relay) -> Result<(), Error> {
    if relay.process() == 0 {
        ranks::stop_with_the_engine(folder);
    }
    ranks::run(folder, Some(relay), &|line| {
        // An engine that does not listen any more is gone.
        let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
    })
}

fn complain(line: &str) {
    let _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}
