//! Prints a fat tree of three levels in the format of `ibnetdiscover` (`blocks`), `ibnetdiscover -p`
//! (`columns`) or `dump_fts` (`tables`): `cargo run --release -p hopmap-topology-import --example fat_tree -- 36
//! 10000 blocks`.
#![allow(clippy::print_stderr, reason = "a command-line program")]

#[path = "../tests/support/fat_tree.rs"]
mod fat_tree;

use std::io::{BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| arguments.get(place).and_then(|text| text.parse().ok());
    let (Some(radix), Some(hosts), Some(form)) = (number(0), number(1), arguments.get(2)) else {
        eprintln!("usage: fat_tree PORTS HOSTS blocks|columns|tables");
        return ExitCode::FAILURE;
    };
    let tree = fat_tree::FatTree::new(radix, hosts);
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = match form.as_str() {
        "columns" => tree.columns(&mut out),
        "tables" => tree.tables(&mut out),
        _ => tree.blocks(&mut out),
    };
    match written.and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
