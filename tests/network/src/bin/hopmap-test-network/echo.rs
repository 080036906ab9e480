//! Messages there and back over TCP, timed by the one who sends first.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use hopmap_test_network::Error;

use crate::failure::failed;
use crate::hosts::on_host;

/// Exchanges that are not counted: the first ones set up caches and windows.
const WARM_UP: u32 = 5;

/// Answers at this address, a thread for every connection; says when it listens.
pub(crate) fn pong(address: SocketAddrV4, listening: &mut dyn FnMut()) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    listening();
    for stream in listener.incoming() {
        let mut stream = stream?;
        thread::spawn(move || answer(&mut stream));
    }
    Ok(())
}

/// Reads the size of messages, and answers each of them with a byte.
fn answer(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut header = [0; 8];
    stream.read_exact(&mut header)?;
    let size = u64::from_le_bytes(header);
    if size == 0 {
        return Ok(());
    }
    let mut buffer = vec![0; 1 << 16];
    loop {
        let mut left = size;
        while left > 0 {
            let most = left.min(buffer.len() as u64) as usize;
            match stream.read(&mut buffer[..most])? {
                0 => return Ok(()),
                read => left -= read as u64,
            }
        }
        stream.write_all(&[1])?;
    }
}

/// Half the times of exchanges in seconds, in ascending order.
pub(crate) fn ping(address: SocketAddrV4, count: u32, bytes: u32, timeout: Duration) -> io::Result<Vec<f64>> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::V4(address), timeout)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    stream.write_all(&u64::from(bytes).to_le_bytes())?;
    let message = vec![1; bytes as usize];
    let mut halves = Vec::new();
    for _ in 0..WARM_UP + count {
        let begin = Instant::now();
        stream.write_all(&message)?;
        stream.read_exact(&mut [0])?;
        halves.push(begin.elapsed().as_secs_f64() / 2.0);
    }
    halves.drain(..WARM_UP as usize);
    halves.sort_by(f64::total_cmp);
    Ok(halves)
}

/// The same between two hosts of the network that this process is the first of, with messages of one byte.
pub(crate) fn between_hosts([from, to]: [&str; 2], address: Ipv4Addr, count: u32) -> Result<Vec<f64>, Error> {
    let fail = |error| failed("calibration", error);
    let listener = on_host(to, || TcpListener::bind((address, 0)).map_err(fail))?;
    let SocketAddr::V4(address) = listener.local_addr().map_err(fail)? else { return Ok(Vec::new()) };
    let answering = thread::spawn(move || answer(&mut listener.accept()?.0));
    let halves = on_host(from, || ping(address, count, 1, Duration::from_secs(5)).map_err(fail));
    answering.join().map_err(|_| failed("calibration", "it panicked"))?.map_err(fail)?;
    halves
}
