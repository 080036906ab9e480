//! What programs write, read without ever making them wait for a full pipe.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// Longest line; a longer one comes in pieces.
const LONGEST_LINE: u64 = 1 << 16;

/// The bytes of a stream, collected by a thread of its own up to a bound.
#[derive(Debug, Clone, Default)]
pub struct Capture {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    closed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    is_closed: bool,
}

impl Capture {
    /// Keeps the first `most` bytes. The rest is read and dropped.
    pub fn first(stream: Option<impl Read + Send + 'static>, most: usize) -> Self {
        Self::collect(stream, move |bytes, piece| {
            let room = most - bytes.len();
            bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        })
    }

    /// Keeps the last `most` bytes.
    pub fn last(stream: Option<impl Read + Send + 'static>, most: usize) -> Self {
        Self::collect(stream, move |bytes, piece| {
            bytes.extend_from_slice(piece);
            bytes.drain(..bytes.len().saturating_sub(most));
        })
    }

    fn collect(
        stream: Option<impl Read + Send + 'static>,
        keep: impl Fn(&mut Vec<u8>, &[u8]) + Send + 'static,
    ) -> Self {
        let capture = Self::default();
        let Self { shared } = capture.clone();
        thread::spawn(move || {
            if let Some(mut stream) = stream {
                let mut piece = [0; 1 << 14];
                loop {
                    match stream.read(&mut piece) {
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Ok(0) | Err(_) => break,
                        Ok(count) => keep(&mut shared.lock().bytes, &piece[..count]),
                    }
                }
            }
            shared.lock().is_closed = true;
            shared.closed.notify_all();
        });
        capture
    }

    /// Number of bytes that are kept so far.
    #[must_use]
    pub fn length(&self) -> usize {
        self.shared.lock().bytes.len()
    }

    /// What is kept when the stream is closed, or at `deadline`: a process elsewhere may hold it open.
    #[must_use]
    pub fn bytes(&self, deadline: Instant) -> Vec<u8> {
        let left = deadline.saturating_duration_since(Instant::now());
        let is_open = |state: &mut State| !state.is_closed;
        let state = self.shared.closed.wait_timeout_while(self.shared.lock(), left, is_open);
        state.unwrap_or_else(PoisonError::into_inner).0.bytes.clone()
    }

    /// The last lines that are not blank, without control characters, when the stream is closed or at `deadline`.
    #[must_use]
    pub fn last_lines(&self, most: usize, deadline: Instant) -> Vec<String> {
        let bytes = self.bytes(deadline);
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(most)..];
        last.iter().map(|line| line.chars().filter(|letter| !letter.is_control()).collect()).collect()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `each` with every line of a stream, without white space at its end, until the stream ends.
pub fn for_each_line(stream: impl Read, mut each: impl FnMut(&str)) {
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    while matches!(stream.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line), Ok(read) if read > 0) {
        each(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    #[test]
    fn the_first_or_the_last_bytes_are_kept() {
        let text = || Some(&b"one\n\ntwo\x1b[0m \nthree\n"[..]);
        assert_eq!(Capture::first(text(), 5).bytes(soon()), b"one\n\n");
        assert_eq!(Capture::last(text(), 4).bytes(soon()), b"ree\n");
        assert_eq!(Capture::last(text(), 100).last_lines(2, soon()), ["two[0m", "three"]);
        assert_eq!(Capture::first(None::<&[u8]>, 5).bytes(soon()), b"");
    }

    #[test]
    fn lines_have_a_bound() {
        let mut text = vec![b'x'; LONGEST_LINE as usize + 1];
        text.extend_from_slice(b"\r\nshort\nlast");
        let mut lengths = Vec::new();
        for_each_line(text.as_slice(), |line| lengths.push(line.len()));
        assert_eq!(lengths, [LONGEST_LINE as usize, 1, 5, 4]);
    }
}
