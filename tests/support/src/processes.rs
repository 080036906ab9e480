//! Processes simulated by threads.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use hopmap_model::{Communicator, Context, Error};

/// A process that communicates with others through channels.
struct Process {
    number: u32,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Mutex<Receiver<Vec<u8>>>>,
}

impl Process {
    fn receive_from(&self, process: usize) -> Result<Vec<u8>, Error> {
        let receiver = self.from[process].lock().unwrap_or_else(PoisonError::into_inner);
        receiver.recv().map_err(|_| Error::msg("a process has ended"))
    }
}

impl Communicator for Process {
    fn process(&self) -> u32 {
        self.number
    }

    fn processes(&self) -> u32 {
        self.to.len() as u32
    }

    fn shift(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let processes = self.to.len();
        let number = self.number as usize;
        self.to[(number + 1) % processes].send(bytes).map_err(|_| Error::msg("a process has ended"))?;
        self.receive_from((number + processes - 1) % processes)
    }

    fn all_gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Error> {
        for to in &self.to {
            to.send(bytes.clone()).map_err(|_| Error::msg("a process has ended"))?;
        }
        (0..self.from.len()).map(|process| self.receive_from(process)).collect()
    }
}

/// Runs a function on a number of processes, each a thread, and returns their results.
///
/// # Panics
///
/// If one of them panics.
#[must_use]
pub fn on_processes<R: Send>(processes: u32, work: impl Fn(Context<'_>) -> R + Sync) -> Vec<R> {
    let mut all: Vec<Process> =
        (0..processes).map(|number| Process { number, to: Vec::new(), from: Vec::new() }).collect();
    for source in 0..processes as usize {
        for destination in 0..processes as usize {
            let (to, from) = channel();
            all[source].to.push(to);
            all[destination].from.push(Mutex::new(from));
        }
    }
    std::thread::scope(|scope| {
        let work = &work;
        let run =
            |process: Process| scope.spawn(move || work(Context::detached().with_communicator(&process)));
        let threads: Vec<_> = all.into_iter().map(run).collect();
        threads.into_iter().map(|thread| thread.join().expect("a process")).collect()
    })
}
