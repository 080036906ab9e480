//! Imports a machine topology and prints its size, to measure how long that takes: `cargo run --release -p
//! hopmap-topology --example import -- PATH`.
#![allow(clippy::print_stdout, reason = "a command-line program")]

use hopmap_topology_import::import::{ImportParams, files, read, recognise};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let path = std::path::PathBuf::from(path);
        println!("format: {}, files: {}", recognise(&path)?.name(), files(&path, None)?.len());
        let imported = read(&path, &ImportParams::of(&path))?;
        let system = imported.system;
        println!(
            "nodes: {}, links: {}, slots: {}, entries of tables: {}",
            system.nodes.len(),
            system.links.len(),
            system.slots.len(),
            system.routing.forwarding.len()
        );
        imported.notes.iter().for_each(|note| println!("{note}"));
    }
    Ok(())
}
