//! Writes the C source of the library of `hopmap reorder` for an MPI: `symbols.c`, `reorder.c`, and a wrapper of every procedure that
//! the MPI's header declares with a communicator, its extensions (`MPIX_`) and large counts (`_c`) included.

use std::fmt::Write;

use crate::source::{SYMBOLS, declared, prototypes};

/// Procedures that get the first `MPI_COMM_WORLD`: `MPI_Abort` ends all of it, and conversions keep its number in Fortran.
const UNCHANGED: [&str; 3] = ["MPI_Abort", "MPI_Comm_c2f", "MPI_Comm_toint"];

/// What is done before and after a call: with the parameters `p0`, `p1`, ….
const OWN: [(&str, &str, &str); 9] = [
    ("MPI_Init", "", "if (result == MPI_SUCCESS) reorder();"),
    ("MPI_Init_thread", "", "if (result == MPI_SUCCESS) reorder();"),
    ("MPI_Comm_get_attr", "", "AFTER_GET_ATTRIBUTE(p0, p1, p2, p3);"),
    ("MPI_Attr_get", "", "AFTER_GET_ATTRIBUTE(p0, p1, p2, p3);"),
    // Errors that belong to no communicator are handled as those of the first one.
    (
        "MPI_Comm_set_errhandler",
        "if (p0 == original && original != reordered) PMPI(MPI_Comm_set_errhandler)(original, p1);",
        "",
    ),
    ("MPI_Comm_create_errhandler", "STAND_IN(handler, p0);", ""),
    ("MPI_Comm_create_keyval", KEYS, ""),
    ("MPI_Keyval_create", KEYS, ""),
    ("MPI_Group_from_session_pset", "", "result = reordered_group(p1, p2, result);"),
];

const KEYS: &str = "Dl_info object; if (!IS_OF_FORTRAN(__builtin_return_address(0))) { STAND_IN(copier, p0); STAND_IN(deleter, p1); }";

/// The source for an MPI with this preprocessed header.
#[must_use]
pub fn source(header: &str) -> String {
    let mut text = [SYMBOLS, include_str!("reorder.c")].concat();
    for prefix in ["MPI_", "MPIX_"] {
        for (name, parameters) in prototypes(header, prefix) {
            wrapper(&mut text, &format!("{prefix}{name}"), &parameters);
        }
    }
    text
}

fn wrapper(text: &mut String, name: &str, parameters: &[String]) {
    let own = OWN.iter().find(|(own, ..)| *own == name);
    let is_communicator =
        |parameter: &String| parameter.starts_with("MPI_Comm ") && !parameter.contains(['*', '[']);
    if UNCHANGED.contains(&name) || (own.is_none() && !parameters.iter().any(is_communicator)) {
        return;
    }
    let names: Vec<String> = (0..parameters.len()).map(|index| format!("p{index}")).collect();
    let given = names.iter().zip(parameters).map(|(name, parameter)| match is_communicator(parameter) {
        true => format!("REAL({name})"),
        false => name.clone(),
    });
    let given = given.collect::<Vec<_>>().join(", ");
    let declared = declared(parameters, names.iter().map(String::as_str));
    let (before, after) = own.map_or(("", ""), |(_, before, after)| (before, after));
    // `PMPI_…` is the same function here: who calls it, such as Open MPI's Fortran interface, means the same communicator.
    let _ = write!(
        text,
        "\nMPI_SYMBOL({name})\nint {name}({declared})\n{{\n    {before}\n    int result = PMPI({name})({given});\n    {after}\n    \
         return result;\n}}\nint P{name}({declared}) __attribute__((alias(\"{name}\")));\n",
    );
}
