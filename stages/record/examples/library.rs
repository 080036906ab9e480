//! Builds the recorder for an mpicc, and prints its path: `cargo run -p hopmap-record --example library mpicc CACHE`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use hopmap_record::library::Compiler;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, program, cache] = &arguments[..] else { return Err("two arguments: mpicc and cache".into()) };
    let library = Compiler::find(Some(program), None, None)?.library(cache.as_ref())?;
    println!("{}", library.display());
    Ok(())
}
