//! Writes the C source of the recorder for an MPI: `runtime.c`, `events.c`, and wrappers of every procedure of the table
//! that the MPI's header declares, for C and Fortran.

use std::collections::BTreeMap;
use std::fmt::Write;

use hopmap_recording::CollectiveKind;

use crate::events::{Event, is_kept};
use crate::table::{Procedure, procedures};

/// What finds the MPI of a process, for every library that is loaded into it.
pub(crate) const SYMBOLS: &str = include_str!("symbols.c");
const RUNTIME: &str = concat!(include_str!("runtime.c"), include_str!("events.c"));

/// Kinds with a `BEFORE_…` macro.
const WITH_BEFORE: [&str; 9] = [
    "init",
    "session-init",
    "finalize",
    "session-finalize",
    "abort",
    "free",
    "free-window",
    "free-type",
    "request-free",
];

/// How gfortran, ifx, flang and others name the symbol of a procedure: `mpif.h` and `use mpi`; `mpi_f08`
/// without and with descriptors of arrays. MPICH's `mpi_f08` with large counts calls C.
const FORTRAN_ENDINGS: [&str; 3] = ["_", "_f08_", "_f08ts_"];

/// The parameters of each procedure that a preprocessed `mpi.h` declares, by name without its prefix, such as `MPI_`.
#[must_use]
pub fn prototypes(header: &str, prefix: &str) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    let declaration = format!("int {prefix}");
    for (at, _) in header.match_indices(&declaration) {
        // Not an `MPI_Fint`.
        if header[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &header[at + declaration.len()..];
        let Some((name, rest)) = rest.split_once('(') else { continue };
        let Some((parameters, _)) = rest.split_once(')') else { continue };
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        // Other parentheses: a pointer to a function, in procedures that are not wrapped.
        if is_name && !parameters.contains('(') {
            let parameters =
                parameters.split(',').map(|one| one.split_whitespace().collect::<Vec<_>>().join(" "));
            found.insert(name.to_owned(), parameters.filter(|one| one != "void").collect());
        }
    }
    found
}

/// The source for an MPI with this preprocessed header.
#[must_use]
pub fn source(header: &str) -> String {
    let prototypes = prototypes(header, "MPI_");
    let mut text = [SYMBOLS, RUNTIME].concat();
    for kind in CollectiveKind::ALL {
        let _ = writeln!(text, "#define KIND_{} {}", kind.name(), kind.number());
    }
    for procedure in procedures() {
        let mut is_here = false;
        for name in [procedure.name.to_owned(), format!("{}_c", procedure.name)] {
            let parameters = prototypes.get(&name).filter(|all| all.len() == procedure.arguments.len());
            if let Some(parameters) = parameters {
                c_wrapper(&mut text, &procedure, &name, parameters);
                is_here |= name == procedure.name;
            }
        }
        // The lengths of strings are hidden arguments.
        if is_here && !procedure.has("string") {
            fortran_wrappers(&mut text, &procedure);
        }
    }
    text
}

fn before(procedure: &Procedure) -> String {
    if WITH_BEFORE.contains(&procedure.kind) {
        format!("BEFORE_{};", procedure.kind.replace('-', "_"))
    } else {
        String::new()
    }
}

fn count(procedure: &Procedure) -> String {
    let count = format!("COUNT_{};", procedure.kind.replace('-', "_"));
    if procedure.is_persistent {
        format!("begin_capture(self); {count} end_capture(self, (uintptr_t) *request);")
    } else {
        count
    }
}

/// The condition under which a successful call counts.
fn counts(procedure: &Procedure) -> &'static str {
    if procedure.kind.ends_with("init") { "1" } else { "is_recording" }
}

fn c_wrapper(text: &mut String, procedure: &Procedure, name: &str, parameters: &[String]) {
    let declared = declared(parameters, procedure.arguments.iter().copied());
    let event = Event::of(procedure);
    let after = event.as_ref().and_then(|event| event.after.as_deref());
    let event_call = after.map_or_else(String::new, |after| {
        format!("enum {{ base = 0 }}; if (result == MPI_SUCCESS) {{ {after}; }} ")
    });
    let _ = write!(
        text,
        "\nMPI_SYMBOL(MPI_{name})\nint MPI_{name}({declared})\n{{\n    \
             struct thread *self = enter();\n    \
             int is_outermost = self->nested++ == 0;\n    \
             self->calls += (uint64_t) is_outermost;\n    \
             {before}\n    \
             {event_before}int result = PMPI(MPI_{name})({arguments});\n    \
             {event_end}\
             if (is_outermost && result == MPI_SUCCESS && {counts}) {{ {count} }}\n    \
             {event_after}self->nested--;\n    \
             leave(self);\n    \
             return result;\n}}\n",
        before = before(procedure),
        event_before = event_before(event.as_ref(), "is_outermost", ""),
        event_end = event_end(event.as_ref()),
        event_after = event_after(event.as_ref(), "is_outermost", &event_call),
        arguments = procedure.arguments.join(", "),
        counts = counts(procedure),
        count = count(procedure),
    );
}

/// Statements in braces, if there are events: before the call of MPI, directly after it, and at the end.
fn event_before(event: Option<&Event>, condition: &str, language: &str) -> String {
    let statements = event.map(|event| event.before(language)).unwrap_or_default();
    if statements.is_empty() {
        return String::new();
    }
    format!("if (UNLIKELY(self->events != NULL) && {condition}) {{ {statements}}}\n    ")
}

fn event_end(event: Option<&Event>) -> &'static str {
    if event.is_some() {
        "if (UNLIKELY(self->events != NULL)) self->events->end = ticks();\n    "
    } else {
        ""
    }
}

fn event_after(event: Option<&Event>, condition: &str, call: &str) -> String {
    let Some(Event { class, .. }) = event else { return String::new() };
    format!("if (UNLIKELY(self->events != NULL) && {condition}) {{ {call}end_event(self, {class}); }}\n    ")
}

/// The parameters of a procedure under other names.
pub(crate) fn declared<'a>(parameters: &[String], names: impl Iterator<Item = &'a str>) -> String {
    let declared: Vec<String> = parameters.iter().zip(names).map(|(one, name)| renamed(one, name)).collect();
    if declared.is_empty() { "void".to_owned() } else { declared.join(", ") }
}

/// A parameter such as `const int sendcounts[]` under another name.
fn renamed(parameter: &str, name: &str) -> String {
    let (start, brackets) = parameter.split_at(parameter.find('[').unwrap_or(parameter.len()));
    let kept = start.trim_end().trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    format!("{kept}{name}{brackets}")
}

/// Open MPI's Fortran calls `PMPI_…`, past the wrappers of C; MPICH's calls `MPI_…`, except where it was
/// configured otherwise. So a call counts here if no wrapper of C has seen it.
fn fortran_wrappers(text: &mut String, procedure: &Procedure) {
    let arguments: Vec<&str> =
        procedure.arguments.iter().copied().filter(|name| !["argc", "argv"].contains(name)).collect();
    let name = procedure.name.to_lowercase();
    let each =
        |form: &dyn Fn(&str) -> String| -> String { arguments.iter().map(|name| form(name)).collect() };
    let declared = each(&|name| format!("void *{name}_f, "));
    let passed = each(&|name| format!("{name}_f, "));
    let has_before = WITH_BEFORE.contains(&procedure.kind);
    if has_before {
        fortran_step(text, procedure, "before", &declared, &before(procedure));
    }
    fortran_step(text, procedure, "count", &declared, &count(procedure));
    let event = Event::of(procedure);
    let after = event.as_ref().and_then(|event| event.after.as_deref());
    if let Some(after) = after {
        fortran_event(text, procedure, &declared, after);
    }
    for ending in FORTRAN_ENDINGS {
        let base = if ending == "_" { "1" } else { "F08_BASE" };
        let event_call = after.map_or_else(String::new, |_| {
            format!("if (!error || *error == MPI_SUCCESS) event_of_{name}({passed}self, {base}); ")
        });
        let before = if has_before { format!("before_{name}({passed}self);\n    ") } else { String::new() };
        let _ = write!(
            text,
            "\nvoid mpi_{name}{ending}({declared}MPI_Fint *error)\n{{\n    \
                 static __typeof__(mpi_{name}{ending}) *real;\n    \
                 if (UNLIKELY(!real)) real = required_symbol(\"mpi_{name}{ending}\");\n    \
                 struct thread *self = enter();\n    \
                 uint64_t calls = self->calls;\n    \
                 {before}{event_before}real({passed}error);\n    \
                 {event_end}\
                 int is_counted = self->calls != calls || (error && *error != MPI_SUCCESS);\n    \
                 if (!is_counted && {counts}) count_{name}({passed}self);\n    \
                 {event_after}leave(self);\n}}\n",
            counts = counts(procedure),
            event_before = event_before(event.as_ref(), "self->depth == 1", "FORTRAN_"),
            event_end = event_end(event.as_ref()),
            event_after =
                event_after(event.as_ref(), "self->depth == 1 && self->calls == calls", &event_call),
        );
    }
}

/// A function that runs a macro with the arguments converted to C.
fn fortran_step(text: &mut String, procedure: &Procedure, step: &str, declared: &str, body: &str) {
    let mut arguments = procedure.arguments.clone();
    // The lengths of other arguments depend on these.
    arguments.sort_by_key(|name| !["comm", "sbuf"].contains(name));
    let is_needed = |name: &&str| match *name {
        "request" => {
            procedure.is_persistent || procedure.kind.contains("start") || procedure.kind == "request-free"
        }
        _ => procedure.kind != "wait",
    };
    let converted: String =
        arguments.into_iter().filter(is_needed).map(|name| converted(name, procedure.kind)).collect();
    let name = procedure.name.to_lowercase();
    let _ = write!(
        text,
        "\nstatic inline void {step}_{name}({declared}struct thread *self)\n{{\n{converted}    (void) self;\n    {body}\n}}\n"
    );
}

/// A function that records a call with the arguments converted to C.
fn fortran_event(text: &mut String, procedure: &Procedure, declared: &str, after: &str) {
    let is_needed = |name: &&&str| match **name {
        "request" | "requests" => !is_kept(procedure, name),
        name => !["types", "rtypes", "counts", "rcounts", "sbuf", "win", "op"].contains(&name),
    };
    let converted: String =
        procedure.arguments.iter().filter(is_needed).map(|name| event_argument(name)).collect();
    let name = procedure.name.to_lowercase();
    let _ = write!(
        text,
        "\nstatic void event_of_{name}({declared}struct thread *self, int base)\n{{\n{converted}    {after};\n}}\n"
    );
}

/// The same as `converted`, and what only events need. Indices begin with 1 in Fortran.
fn event_argument(name: &str) -> String {
    match name {
        "tag" | "rtag" | "source" => format!("    int {name} = *(MPI_Fint *) {name}_f;\n"),
        "status" | "statuses" => format!("    MPI_Status *{name} = {name}_f;\n"),
        "which" | "indices" | "flag" | "outcount" => format!("    const int *{name} = {name}_f;\n"),
        "message" => {
            "    MPI_Message message_[1] = { FROM_FORTRAN(Message, *(MPI_Fint *) message_f) }, *message = message_;\n"
                .to_owned()
        }
        _ => converted(name, ""),
    }
}

/// The declaration of an argument with a handle or a value of C, made from a pointer of Fortran.
fn converted(name: &str, kind: &str) -> String {
    let handle = |kind: &str, of: &str| {
        format!("    MPI_{kind} {name} = FROM_FORTRAN({of}, *(MPI_Fint *) {name}_f); (void) {name};\n")
    };
    let pointer = |kind: &str| {
        format!(
            "    MPI_{kind} {name}_[1] = {{ FROM_FORTRAN({kind}, *(MPI_Fint *) {name}_f) }}, *{name} = {name}_; (void) {name};\n"
        )
    };
    let value =
        |type_: &str, from: &str| format!("    {type_} {name} = *({from} *) {name}_f; (void) {name};\n");
    let length = if kind.starts_with("neighbor") { "degree(self, comm)" } else { "peers(self, comm)" };
    match name {
        "count" | "rcount" | "partitions" => value("MPI_Count", "MPI_Fint"),
        "elements" => value("MPI_Count", "MPI_Count"),
        "dest" | "target" | "root" | "n" => value("int", "MPI_Fint"),
        "type" | "rtype" => handle("Datatype", "Type"),
        "comm" => handle("Comm", "Comm"),
        "win" => handle("Win", "Win"),
        "op" => handle("Op", "Op"),
        "newcomm" | "oldcomm" => pointer("Comm"),
        "oldwin" | "newwin" => pointer("Win"),
        "session" => pointer("Session"),
        "request" => pointer("Request"),
        "counts" | "rcounts" => format!("    const MPI_Fint *{name} = {name}_f; (void) {name};\n"),
        "sbuf" => "    const void *sbuf = buffer_of(sbuf_f); (void) sbuf;\n".to_owned(),
        // Those that are not read may be shorter.
        "types" => format!(
            "    MPI_Datatype *types = sbuf == MPI_IN_PLACE ? NULL : types_of(self, 0, types_f, {length}); (void) types;\n"
        ),
        "rtypes" => {
            format!(
                "    MPI_Datatype *rtypes = sbuf == MPI_IN_PLACE ? types_of(self, 1, rtypes_f, {length}) : NULL; (void) rtypes;\n"
            )
        }
        "requests" => "    MPI_Request *requests = requests_of(self, requests_f, n);\n".to_owned(),
        _ => String::new(),
    }
}
