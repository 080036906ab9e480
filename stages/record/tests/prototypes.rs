//! The table against the headers of the installed MPIs.

use std::path::Path;
use std::process::Command;

use hopmap_record::source::prototypes;
use hopmap_record::table::procedures;
use hopmap_test_support::program;

/// Words of the standard's parameter names for ours.
const NAMES: [(&str, &[&str]); 12] = [
    ("count", &["count", "sendcount", "origin_count", "recvcount"]),
    ("counts", &["sendcounts", "recvcounts"]),
    ("type", &["datatype", "sendtype", "origin_datatype", "origin_type"]),
    ("types", &["sendtypes"]),
    ("dest", &["dest"]),
    ("target", &["target_rank"]),
    ("root", &["root"]),
    ("comm", &["comm", "comm_old", "old_comm", "peer_comm", "bridge_comm", "local_comm", "comm_cart"]),
    ("request", &["request"]),
    ("win", &["win"]),
    ("rcounts", &["recvcounts"]),
    (
        "newcomm",
        &[
            "newcomm",
            "new_comm",
            "comm_new",
            "comm_cart",
            "comm_graph",
            "comm_dist_graph",
            "newintercomm",
            "newintracomm",
        ],
    ),
];

#[test]
fn the_table_agrees_with_the_installed_headers() {
    for compiler in ["mpicc.openmpi", "mpicc.mpich"] {
        let Some(compiler) = program(compiler) else { continue };
        let prototypes = prototypes(&header(&compiler), "MPI_");
        let mut known = 0;
        for procedure in procedures() {
            for name in [procedure.name.to_owned(), format!("{}_c", procedure.name)] {
                let Some(parameters) = prototypes.get(&name) else { continue };
                known += 1;
                assert_eq!(parameters.len(), procedure.arguments.len(), "{name}: {parameters:?}");
                for (parameter, argument) in parameters.iter().zip(&procedure.arguments) {
                    let Some((_, names)) = NAMES.iter().find(|(own, _)| own == argument) else { continue };
                    let theirs = parameter.split('[').next().unwrap();
                    let theirs = theirs.rsplit([' ', '*']).next().unwrap();
                    assert!(names.contains(&theirs), "{name}: {argument} is `{parameter}`");
                }
            }
        }
        assert!(known > 120, "{}: {known}", compiler.display());
    }
}

/// Every procedure with a send buffer or a destination is in the table.
#[test]
fn no_sending_procedure_of_the_installed_headers_is_missing() {
    for compiler in ["mpicc.openmpi", "mpicc.mpich"] {
        let Some(compiler) = program(compiler) else { continue };
        let known = procedures();
        for (name, parameters) in prototypes(&header(&compiler), "MPI_") {
            let has =
                |word: &str| parameters.iter().any(|one| one.split(['[', ' ', '*']).any(|own| own == word));
            let sends = has("dest") || has("target_rank") || has("sendbuf") || (has("root") && has("buffer"));
            // Spawning and connecting take a root, but send nothing of the user.
            let short = name.strip_suffix("_c").unwrap_or(&name);
            let is_known = known.iter().any(|procedure| procedure.name == short);
            assert!(
                !sends || is_known,
                "{name} of {} is not in the table: {parameters:?}",
                compiler.display()
            );
        }
    }
}

fn header(compiler: &Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("header.c");
    std::fs::write(&file, "#include <mpi.h>\n").unwrap();
    let output = Command::new(compiler).arg("-E").arg(&file).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}
