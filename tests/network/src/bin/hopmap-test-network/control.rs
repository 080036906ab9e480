//! The socket through which a running network is changed.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;

use hopmap_test_network::{Answer, CONTROL, Counters, Error, Request};

use crate::failure::failed;
use crate::hosts::lock;
use crate::links::Links;

/// Takes requests from now on.
pub(crate) fn listen(links: Arc<Mutex<Links>>, counters: Arc<Mutex<Counters>>) -> Result<(), Error> {
    let listener = UnixListener::bind(CONTROL).map_err(|error| failed(CONTROL, error))?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Who hangs up in between needs no answer.
            let _ = serve(stream, &links, &counters);
        }
    });
    Ok(())
}

fn serve(mut stream: UnixStream, links: &Mutex<Links>, counters: &Mutex<Counters>) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    let answer = serde_json::from_str(&line)
        .map_or_else(|error| Answer::Refused(error.to_string()), |request| answer(&request, links, counters));
    stream.write_all(format!("{}\n", serde_json::to_string(&answer)?).as_bytes())
}

fn answer(request: &Request, links: &Mutex<Links>, counters: &Mutex<Counters>) -> Answer {
    let mut links = lock(links);
    if let Err(error) = request.check(links.description()) {
        return Answer::Refused(error.to_string());
    }
    links.change(request);
    match request {
        Request::Counters => Answer::Counters(Counters {
            base_s: links.base_s(),
            links: links.counters(),
            ..lock(counters).clone()
        }),
        _ => Answer::Done,
    }
}
