//! The recorder as a library: written for the `mpi.h` of an MPI, and built without linking that MPI.

use std::fs;
use std::path::{Path, PathBuf};

use hopmap_mpi_environment::{Compiler, CompilerError, Sources, output};

use crate::source::source;

/// What every recorder of this hopmap is made of.
#[must_use]
pub fn sources() -> Sources<'static> {
    let texts = [
        &source(""),
        include_str!("procedures.csv"),
        include_str!("source.rs"),
        include_str!("events.rs"),
        include_str!("library.rs"),
    ];
    let (hash, build) = (Sources::hash_of(&texts), &build);
    Sources { name: "record", suffix: ".so", title: "the recorder", hash, build }
}

fn build(compiler: &Compiler, folder: &Path) -> Result<PathBuf, CompilerError> {
    let path = |name: &str| folder.join(name);
    let write =
        |name: &str, text: &str| fs::write(path(name), text).map_err(CompilerError::io("write", &path(name)));
    write("header.c", "#include <mpi.h>\n")?;
    let header = compiler.output(&["-E", &path("header.c").to_string_lossy()])?;
    write("record.c", &source(&String::from_utf8_lossy(&header)))?;
    let (from, object, library) = (path("record.c"), path("record.o"), path("record.so"));
    let [from, object, to] = [&from, &object, &library].map(|path| path.to_string_lossy());
    // -w: compilers differ in what they warn about, and the user cannot change it.
    compiler.output(&["-std=gnu11", "-O2", "-fPIC", "-w", "-c", &from, "-o", &object])?;
    // With the C compiler itself: the library must not need MPI.
    let shown = compiler.shown()?;
    let linker = shown.split_whitespace().next().unwrap_or("cc");
    output(linker, &["-shared", &object, "-o", &to, "-lpthread", "-ldl"])?;
    Ok(library)
}
