//! Builds the recorder for an mpicc, and prints its path: `cargo run -p hopmap-record --example library mpicc CACHE`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use hopmap_record::library::{Cache, Compiler, Mpi};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, program, cache] = &arguments[..] else { return Err("two arguments: mpicc and cache".into()) };
    let cache = Cache::open(Some(cache.as_ref()))?;
    let library = Compiler::named(program, Mpi::default())?.library(&cache, &|line| println!("{line}"))?;
    println!("{}", library.path.display());
    Ok(())
}
