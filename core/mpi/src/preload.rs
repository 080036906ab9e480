//! The arguments of launchers that preload a library into the ranks.
//!
//! `LD_PRELOAD` must not reach the launcher itself. It is given to the ranks by an option directly after the
//! launcher's name, where all forms of its command line allow it, also those with several programs (`:`):
//!
//! | launcher | option | |
//! |---|---|---|
//! | Open MPI | `-x LD_PRELOAD=…` | of the first program for all; `OMPI_MCA_mca_base_env_list` does the same, but an `-x` of the user is then an error |
//! | MPICH, Intel MPI | `-genv LD_PRELOAD …` | for all programs |
//! | Slurm | `--export=ALL,LD_PRELOAD=…` | a list that begins with `NONE` exports nothing, so that it is left out |
//!
//! Where the user gives `LD_PRELOAD` to the ranks, or limits their variables, these options are completed. The
//! arguments of the program stay as they are.
//!
//! Tested with Open MPI 4.1.4, MPICH 4.0.2 and Slurm 22.05.8.

use hopmap_process::on_path;

use crate::Implementation;

/// Variable with the libraries that the dynamic loader loads first.
pub const PRELOAD: &str = "LD_PRELOAD";

/// Options with two values.
const WITH_TWO_VALUES: [&str; 8] =
    ["-genv", "-env", "-mca", "--mca", "-gmca", "--gmca", "--prtemca", "--pmixmca"];

/// Options whose value may be the name of a program on `PATH`, as `node` in `--map-by node`.
const WITH_ONE_VALUE: [&str; 37] = [
    "-x",
    "-n",
    "-np",
    "--np",
    "-c",
    "-N",
    "-H",
    "-host",
    "--host",
    "-hosts",
    "-f",
    "-ppn",
    "-map-by",
    "--map-by",
    "-bind-to",
    "--bind-to",
    "-rank-by",
    "--rank-by",
    "-launcher",
    "-bootstrap",
    "-rmk",
    "--launch-agent",
    "-genvlist",
    "-envlist",
    "--export",
    "--mpi",
    "-w",
    "-J",
    "--job-name",
    "-p",
    "--partition",
    "-A",
    "--account",
    "-C",
    "--constraint",
    "--qos",
    "--comment",
];

/// The value of `LD_PRELOAD`: a library, before those that are preloaded already.
#[must_use]
pub fn preload(library: &str, existing: Option<&str>) -> String {
    match existing.filter(|existing| !existing.is_empty()) {
        Some(existing) => format!("{library}:{existing}"),
        None => library.to_owned(),
    }
}

/// What the reading of a launcher's arguments expects.
#[derive(Clone, Copy)]
enum Expected {
    /// An option or the program comes next.
    Options,
    /// So many values of an option come next.
    Values(usize),
    /// Perhaps the value of an option.
    MaybeValue,
    /// Assignments of `env`, then its program.
    Assignments,
    /// Behind the program, up to the next one after `:`.
    Program,
}

/// For each argument of a launcher whether the launcher reads it, or `env` in the place of the program. An
/// option that is not listed above has no value if an executable file comes next.
fn are_options(given: &[String]) -> Vec<bool> {
    let mut expected = Expected::Options;
    let read = |word: &String| {
        let is_option = word.starts_with('-') && word.len() > 1;
        expected = match expected {
            Expected::Values(left) if left > 1 && !word.contains('=') => Expected::Values(left - 1),
            Expected::Values(_) => Expected::Options,
            Expected::Program if word == ":" => Expected::Options,
            Expected::Assignments if word.contains('=') => Expected::Assignments,
            Expected::Assignments | Expected::Program => Expected::Program,
            _ if WITH_TWO_VALUES.contains(&word.as_str()) => Expected::Values(2),
            _ if WITH_ONE_VALUE.contains(&word.as_str()) => Expected::Values(1),
            _ if is_option => {
                if word == "--" || word.contains('=') {
                    Expected::Options
                } else {
                    Expected::MaybeValue
                }
            }
            Expected::MaybeValue if on_path(word).is_none() => Expected::Options,
            _ if word == "env" || word.ends_with("/env") => Expected::Assignments,
            Expected::Options | Expected::MaybeValue => Expected::Program,
        };
        !matches!(expected, Expected::Program)
    };
    given.iter().map(read).collect()
}

/// The index of the first program among the arguments of a launcher; their number without one.
#[must_use]
pub fn program_in(given: &[String]) -> usize {
    are_options(given).iter().position(|is_option| !is_option).unwrap_or(given.len())
}

/// The arguments of a launcher with `words` before each of its programs.
#[must_use]
pub fn before_programs(given: &[String], words: &[String]) -> Vec<String> {
    let options = are_options(given);
    let mut all = Vec::new();
    for (index, word) in given.iter().enumerate() {
        // The first word of a program follows an option, or is the first of all.
        if !options[index] && index.checked_sub(1).is_none_or(|before| options[before]) {
            all.extend_from_slice(words);
        }
        all.push(word.clone());
    }
    all
}

impl Implementation {
    /// The arguments of this launcher with which its ranks load a library, beside those of `existing`, and have these
    /// variables, which must also be in the environment of the launcher.
    #[must_use]
    pub fn with_preload(
        self,
        library: &str,
        existing: Option<&str>,
        variables: &[(&str, &str)],
        given: &[String],
    ) -> Vec<String> {
        let value = preload(library, existing);
        let setting = format!("{PRELOAD}={value}");
        let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
        let mut all = match self {
            Self::OpenMpi => vec!["-x".to_owned(), setting.clone()],
            Self::Mpich | Self::IntelMpi => [(PRELOAD, value.as_str())]
                .iter()
                .chain(variables)
                .flat_map(|(name, value)| ["-genv", name, value].map(str::to_owned))
                .collect(),
            Self::Slurm => vec![format!("--export=ALL,{setting}")],
        };
        if self == Self::OpenMpi {
            all.extend(self.options_to_hand_on(&names));
        }
        let ours = all.clone();
        // What the user gives to the ranks is kept, and comes after ours.
        let exported = |other: &str| {
            // Slurm exports nothing if a list begins with one of these. Ours alone mean the same.
            let is_none = ["NONE", "NIL"].iter().any(|none| other.eq_ignore_ascii_case(none));
            let kept = if is_none { String::new() } else { format!("{other},") };
            format!("{kept}{setting},{}", names.join(","))
        };
        let mut before = ["", ""];
        for (argument, is_option) in given.iter().zip(are_options(given)) {
            let kept = match argument.split_once('=') {
                _ if !is_option => argument.clone(),
                _ if before[1] == PRELOAD && ["-genv", "-env"].contains(&before[0]) => {
                    preload(library, Some(argument))
                }
                Some((PRELOAD, other)) => format!("{PRELOAD}={}", preload(library, Some(other))),
                None if argument == PRELOAD && before[1] == "-x" => setting.clone(),
                Some(("--export", other)) if self == Self::Slurm => format!("--export={}", exported(other)),
                _ if before[1] == "--export" && self == Self::Slurm => exported(argument),
                _ => argument.clone(),
            };
            before = [before[1], argument];
            all.push(kept);
            // Open MPI's `-x` is for one program of several.
            if self == Self::OpenMpi && argument == ":" {
                all.extend(ours.iter().cloned());
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn of(launcher: Implementation, existing: Option<&str>, given: &str) -> String {
        launcher.with_preload("/r.so", existing, &[("DIR", "to")], &words(given)).join(" ")
    }

    #[test]
    fn words_are_put_before_every_program() {
        let of = |given: &str| before_programs(&words(given), &words("r -m")).join(" ");
        assert_eq!(of("-n 2 ./a -n 3"), "-n 2 r -m ./a -n 3");
        assert_eq!(of("-n 2 ./a x : -n 1 ./b"), "-n 2 r -m ./a x : -n 1 r -m ./b");
        assert_eq!(of("./a"), "r -m ./a");
    }

    #[test]
    fn every_launcher_gives_the_library_to_the_ranks() {
        let rest = "-n 2 ./a : -n 1 ./b";
        for (launcher, expected) in [
            (Implementation::OpenMpi, "-x LD_PRELOAD=/r.so -x DIR"),
            (Implementation::Mpich, "-genv LD_PRELOAD /r.so -genv DIR to"),
            (Implementation::Slurm, "--export=ALL,LD_PRELOAD=/r.so"),
        ] {
            // Open MPI's option is for one program of several.
            let rest = match launcher {
                Implementation::OpenMpi => rest.replace(": ", &format!(": {expected} ")),
                _ => rest.to_owned(),
            };
            assert_eq!(of(launcher, None, "-n 2 ./a : -n 1 ./b"), format!("{expected} {rest}"));
        }
    }

    #[test]
    fn an_existing_preload_is_kept() {
        let open = |existing, given: &str| of(Implementation::OpenMpi, existing, given);
        assert_eq!(open(Some("/m.so"), "./a"), "-x LD_PRELOAD=/r.so:/m.so -x DIR ./a");
        let both = "-x LD_PRELOAD=/r.so -x DIR -x LD_PRELOAD=/r.so:/m.so ./a";
        assert_eq!(open(None, "-x LD_PRELOAD=/m.so ./a"), both);
        assert_eq!(
            open(Some("/m.so"), "-x LD_PRELOAD ./a"),
            "-x LD_PRELOAD=/r.so:/m.so -x DIR -x LD_PRELOAD=/r.so:/m.so ./a"
        );
        assert_eq!(
            open(None, "-n 2 env A=1 LD_PRELOAD=/m.so ./a LD_PRELOAD=/n.so"),
            "-x LD_PRELOAD=/r.so -x DIR -n 2 env A=1 LD_PRELOAD=/r.so:/m.so ./a LD_PRELOAD=/n.so"
        );
        assert_eq!(
            of(Implementation::Mpich, None, "-genv LD_PRELOAD /m.so ./a"),
            "-genv LD_PRELOAD /r.so -genv DIR to -genv LD_PRELOAD /r.so:/m.so ./a"
        );
    }

    #[test]
    fn variables_that_srun_does_not_export_are_added() {
        let start = "--export=ALL,LD_PRELOAD=/r.so";
        for (given, expected) in [
            ("--export=A=1 ./a", "--export=A=1,LD_PRELOAD=/r.so,DIR ./a"),
            ("--export NONE ./a", "--export LD_PRELOAD=/r.so,DIR ./a"),
            ("--export=NONE ./a", "--export=LD_PRELOAD=/r.so,DIR ./a"),
        ] {
            assert_eq!(of(Implementation::Slurm, None, given), format!("{start} {expected}"));
        }
    }

    #[test]
    fn arguments_of_the_program_stay_as_they_are() {
        for (launcher, given) in [
            (Implementation::Slurm, "-n 2 ./a --export=csv"),
            (Implementation::Slurm, "-l /bin/sh --export NONE"),
            (Implementation::OpenMpi, "-n 2 ./a -x LD_PRELOAD=/m.so"),
            (Implementation::OpenMpi, "--map-by sh --mca pml ob1 ./a -x LD_PRELOAD"),
            (Implementation::Mpich, "-l -n 2 ./a -genv LD_PRELOAD /m.so"),
        ] {
            let all = of(launcher, None, given);
            assert!(all.ends_with(&format!(" {given}")), "{all}");
        }
        // The next program has options of its own.
        let all = of(Implementation::OpenMpi, None, "./a -x LD_PRELOAD=/m.so : -x LD_PRELOAD=/m.so ./b");
        let ours = "-x LD_PRELOAD=/r.so -x DIR";
        let expected = format!(" ./a -x LD_PRELOAD=/m.so : {ours} -x LD_PRELOAD=/r.so:/m.so ./b");
        assert!(all.ends_with(&expected), "{all}");
    }

    #[test]
    fn the_program_is_found_among_the_options() {
        for (given, expected) in [
            ("-n 2 ./a b", 2),
            ("--map-by sh --oversubscribe sh a", 3),
            ("-genv A=1 ./a", 2),
            ("--unknown 3 ./a", 2),
            ("--unknown=3 ./a", 1),
            ("-- ./a", 1),
            ("-n 2", 2),
        ] {
            assert_eq!(program_in(&words(given)), expected, "{given}");
        }
    }
}
