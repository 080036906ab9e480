//! The procedures of MPI that the recorder wraps: `procedures.csv`.
//!
//! | column | meaning |
//! |---|---|
//! | `procedure` | its name without `MPI_`; a twin with large counts (`_c`) has the same arguments |
//! | `kind` | what it sends, see `runtime.c`: `COUNT_…` |
//! | `mode` | `blocking`, `nonblocking`, or `persistent`, which sends when its request is started |
//! | `since` | version of MPI |
//! | `arguments` | what each argument is, in order; `runtime.c` uses them under these names |
//!
//! Arguments of the receiving side begin with `r`. `wait` procedures send nothing, but take time.

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Procedure {
    /// Name without `MPI_`.
    pub name: &'static str,
    /// What it sends.
    pub kind: &'static str,
    /// Whether it sends when its request is started.
    pub is_persistent: bool,
    /// Version of MPI that introduced it.
    pub since: &'static str,
    /// What each argument is.
    pub arguments: Vec<&'static str>,
}

impl Procedure {
    /// Whether it has this argument.
    #[must_use]
    pub fn has(&self, argument: &str) -> bool {
        self.arguments.contains(&argument)
    }
}

/// All procedures, in the order of the table.
#[must_use]
pub fn procedures() -> Vec<Procedure> {
    include_str!("procedures.csv").lines().skip(1).filter_map(procedure).collect()
}

fn procedure(line: &'static str) -> Option<Procedure> {
    let mut columns = line.split(',');
    let [name, kind, mode, since, arguments] = std::array::from_fn(|_| columns.next());
    Some(Procedure {
        name: name?,
        kind: kind?,
        is_persistent: mode? == "persistent",
        since: since?,
        arguments: arguments?.split_whitespace().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_recording::CollectiveKind;
    use std::collections::BTreeSet;

    #[test]
    fn every_line_is_a_procedure_that_stands_once() {
        let all = procedures();
        assert_eq!(all.len(), include_str!("procedures.csv").lines().count() - 1);
        let names: BTreeSet<_> = all.iter().map(|procedure| procedure.name).collect();
        assert_eq!(names.len(), all.len());
        for procedure in &all {
            let arguments: BTreeSet<_> = procedure.arguments.iter().collect();
            assert_eq!(arguments.len(), procedure.arguments.len(), "{}", procedure.name);
            assert!(["1", "2", "2.2", "3", "4"].contains(&procedure.since), "{}", procedure.name);
        }
    }

    #[test]
    fn every_collective_has_three_modes() {
        let all = procedures();
        for kind in CollectiveKind::ALL.map(CollectiveKind::name) {
            assert_eq!(all.iter().filter(|procedure| procedure.kind == kind).count(), 3, "{kind}");
        }
    }
}
