//! Builds the recorder for an mpicc, and prints its path: `cargo run -p hopmap-record --example library mpicc CACHE`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use hopmap_mpi_environment::{Cache, Compiler, Mpi};
use hopmap_record::library::sources;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, program, cache] = &arguments[..] else { return Err("two arguments: mpicc and cache".into()) };
    let cache = Cache::open(Some(cache.as_ref()))?;
    let compiler = Compiler::named(program, Mpi::default())?;
    let library = compiler.compile(&sources(), &cache, &|line| println!("{line}"))?;
    println!("{}", library.path.display());
    Ok(())
}
