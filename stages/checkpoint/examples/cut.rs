//! Measures the speed of cutting files: `cargo run --release -p hopmap-checkpoint --example cut -- FILE
//! [EARLIER]`.
//!
//! Minimum CPU time of several runs for reading, cutting and hashing, first with the file (or EARLIER)
//! already in the store, then with an empty store.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for measuring")]

use std::fs::File;
use std::sync::Arc;

use hopmap_checkpoint::chunk::{Batch, Chunk, ChunkId, Earlier, EarlierChunk};
use hopmap_checkpoint::cut::{Known, cutter};
use rustix::time::{ClockId, clock_gettime};

fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Cuts a file; returns seconds, bytes, bytes that are neither zeros nor unchanged, and the chunks on
/// request.
fn cut(path: &str, earlier: Option<&Arc<Earlier>>, wanted: bool) -> (f64, usize, usize, Vec<EarlierChunk>) {
    let begin = seconds();
    let known = Known { earlier: earlier.cloned(), ..Known::default() };
    let mut cutter = cutter(Box::new(File::open(path).unwrap()), known).unwrap();
    let mut batch = Batch::default();
    let (mut bytes, mut new, mut chunks, mut goes_on) = (0, 0, Vec::new(), true);
    while goes_on {
        batch.clear();
        goes_on = cutter.cut(&mut batch, 16 << 20).unwrap();
        bytes += batch.chunks.iter().map(|chunk| chunk.length).sum::<usize>();
        new += batch
            .chunks
            .iter()
            .filter(|chunk| is_new(chunk, earlier))
            .map(|chunk| chunk.length)
            .sum::<usize>();
        if wanted {
            chunks.extend(batch.chunks.iter().map(kept));
        }
    }
    (seconds() - begin, bytes, new, chunks)
}

fn is_new(chunk: &Chunk, earlier: Option<&Arc<Earlier>>) -> bool {
    let base_chunk = chunk.base_chunk.and_then(|base_chunk| earlier?.get(base_chunk));
    !chunk.zero && base_chunk.is_none_or(|base_chunk| base_chunk.hash != chunk.hash.kept())
}

fn kept(chunk: &Chunk) -> EarlierChunk {
    let id = (!chunk.zero).then_some(ChunkId { pack: 1, block: 0, chunk: 0 });
    EarlierChunk { id, length: chunk.length, hash: chunk.hash.kept(), place: chunk.place }
}

fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let path = paths.first().unwrap();
    let chunks = cut(paths.get(1).unwrap_or(path), None, true).3;
    println!("{} chunks before", chunks.len());
    for earlier in [Some(Arc::new(Earlier::new(chunks))), None] {
        let mut runs: Vec<_> = (0..7).map(|_| cut(path, earlier.as_ref(), false)).collect();
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (time, bytes, new, _) = &runs[0];
        let rate = *bytes as f64 / time / 1e9;
        println!("{bytes} bytes, {new} new, {time:.4} s, {rate:.2} GB/s, {:.3} s/GB", 1.0 / rate);
    }
}
