//! Libraries that are loaded into programs: written for the `mpi.h` of an MPI, and built without linking that MPI.

use std::fs;
use std::path::{Path, PathBuf};

use hopmap_mpi_environment::{Compiler, CompilerError, Sources, output};

use crate::{reorder, source};

/// What every recorder of this hopmap is made of.
#[must_use]
pub fn sources() -> Sources<'static> {
    let texts = [
        &source::source(""),
        include_str!("procedures.csv"),
        include_str!("source.rs"),
        include_str!("events.rs"),
        include_str!("library.rs"),
    ];
    let build = &|compiler: &Compiler, folder: &Path| build(compiler, folder, source::source);
    Sources { name: "record", suffix: ".so", title: "the recorder", hash: Sources::hash_of(&texts), build }
}

/// What every library of this hopmap that reorders ranks is made of.
#[must_use]
pub fn reordering_sources() -> Sources<'static> {
    let texts = [
        &reorder::source(""),
        include_str!("source.rs"),
        include_str!("reorder.rs"),
        include_str!("library.rs"),
    ];
    let build = &|compiler: &Compiler, folder: &Path| build(compiler, folder, reorder::source);
    let title = "the library that reorders ranks";
    Sources { name: "reorder", suffix: ".so", title, hash: Sources::hash_of(&texts), build }
}

/// What the program that `hopmap reorder --where` starts is made of.
#[must_use]
pub fn where_sources() -> Sources<'static> {
    const TEXT: &str = include_str!("where.c");
    let build = &|compiler: &Compiler, folder: &Path| {
        let (from, to) = (folder.join("where.c"), folder.join("where"));
        fs::write(&from, TEXT).map_err(CompilerError::io("write", &from))?;
        compiler.output(&["-w", &from.to_string_lossy(), "-o", &to.to_string_lossy()])?;
        Ok(to)
    };
    Sources {
        name: "where",
        suffix: "",
        title: "a program that shows its rank",
        hash: Sources::hash_of(&[TEXT]),
        build,
    }
}

/// Compiles what `source` writes for the preprocessed header of the MPI.
fn build(compiler: &Compiler, folder: &Path, source: fn(&str) -> String) -> Result<PathBuf, CompilerError> {
    let path = |name: &str| folder.join(name);
    let write =
        |name: &str, text: &str| fs::write(path(name), text).map_err(CompilerError::io("write", &path(name)));
    write("header.c", "#include <mpi.h>\n")?;
    let header = compiler.output(&["-E", &path("header.c").to_string_lossy()])?;
    write("library.c", &source(&String::from_utf8_lossy(&header)))?;
    let (from, object, library) = (path("library.c"), path("library.o"), path("library.so"));
    let [from, object, to] = [&from, &object, &library].map(|path| path.to_string_lossy());
    // -w: compilers differ in what they warn about, and the user cannot change it.
    compiler.output(&["-std=gnu11", "-O2", "-fPIC", "-w", "-c", &from, "-o", &object])?;
    // With the C compiler itself: the library must not need MPI.
    let shown = compiler.shown()?;
    let linker = shown.split_whitespace().next().unwrap_or("cc");
    output(linker, &["-shared", &object, "-o", &to, "-lpthread", "-ldl"])?;
    Ok(library)
}
