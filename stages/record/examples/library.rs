//! Builds the recorder, or the library that reorders ranks, for an mpicc, and prints its path:
//! `cargo run -p hopmap-record --example library mpicc CACHE [reorder]`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use hopmap_mpi_environment::{Cache, Compiler, Mpi};
use hopmap_record::library::{reordering_sources, sources};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, program, cache, rest @ ..] = &arguments[..] else {
        return Err("two arguments: mpicc and cache".into());
    };
    let sources = if rest.is_empty() { sources() } else { reordering_sources() };
    let cache = Cache::open(Some(cache.as_ref()))?;
    let compiler = Compiler::named(program, Mpi::default())?;
    let library = compiler.compile(&sources, &cache, &|line| println!("{line}"))?;
    println!("{}", library.path.display());
    Ok(())
}
