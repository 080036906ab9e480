//! The socket through which a running network is changed.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;

use hopmap_test_network::{Answer, CONTROL, Counters, Error, Request};

use crate::failure::failed;
use crate::frames::Frames;
use crate::hosts::lock;

/// Takes requests from now on.
pub(crate) fn listen(frames: Arc<Mutex<Frames>>) -> Result<(), Error> {
    let listener = UnixListener::bind(CONTROL).map_err(|error| failed(CONTROL, error))?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Who hangs up in between needs no answer.
            let _ = serve(stream, &frames);
        }
    });
    Ok(())
}

fn serve(mut stream: UnixStream, frames: &Mutex<Frames>) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    let answer = serde_json::from_str(&line).map_or_else(
        |error| Answer::Refused(error.to_string()),
        |request| answer(&request, &mut lock(frames)),
    );
    stream.write_all(format!("{}\n", serde_json::to_string(&answer)?).as_bytes())
}

fn answer(request: &Request, frames: &mut Frames) -> Answer {
    if let Err(error) = request.check(frames.links.description()) {
        return Answer::Refused(error.to_string());
    }
    frames.links.change(request);
    match request {
        Request::Counters => {
            Answer::Counters(Counters { links: frames.links.counters(), ..frames.counters.clone() })
        }
        Request::Lateness => Answer::Lateness(frames.lateness.take()),
        _ => Answer::Done,
    }
}
