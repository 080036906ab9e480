//! The arguments of launchers that give variables to the ranks.
//!
//! `LD_PRELOAD` must not reach the launcher itself. It is given to the ranks by an option directly after the
//! launcher's name, where all forms of its command line allow it, also those with several programs (`:`):
//!
//! | launcher | option | |
//! |---|---|---|
//! | Open MPI | `-x LD_PRELOAD=…` | of the first program for all; `OMPI_MCA_mca_base_env_list` does the same, but an `-x` of the user is then an error |
//! | MPICH, Intel MPI | `-genv LD_PRELOAD …` | for all programs |
//! | Slurm | `--export=ALL,LD_PRELOAD=…` | |
//!
//! Tested with Open MPI 4.1.4 and MPICH 4.0.2.

use hopmap_mpi_environment::Implementation;

/// Variable with the libraries that the dynamic loader loads first.
pub const PRELOAD: &str = "LD_PRELOAD";

/// The value of `LD_PRELOAD`: the recorder, and what is there already.
#[must_use]
pub fn preload(library: &str, existing: Option<&str>) -> String {
    match existing.filter(|existing| !existing.is_empty()) {
        Some(existing) => format!("{library}:{existing}"),
        None => library.to_owned(),
    }
}

/// The arguments of a launcher with which its ranks load the library, and have these variables of the
/// launcher's environment.
#[must_use]
pub fn arguments(
    launcher: Implementation,
    library: &str,
    existing: Option<&str>,
    names: &[&str],
    given: &[String],
) -> Vec<String> {
    let value = preload(library, existing);
    let setting = format!("{PRELOAD}={value}");
    let mut all = match launcher {
        Implementation::OpenMpi => vec!["-x".to_owned(), setting.clone()],
        Implementation::Mpich | Implementation::IntelMpi => {
            vec!["-genv".to_owned(), PRELOAD.to_owned(), value.clone()]
        }
        Implementation::Slurm => vec![format!("--export=ALL,{setting}")],
    };
    if launcher == Implementation::OpenMpi {
        all.extend(launcher.options_to_hand_on(names));
    }
    // What the user gives to the ranks is kept, and comes after ours.
    let mut before = "";
    let mut is_value = false;
    for argument in given {
        let kept = match argument.split_once('=') {
            _ if is_value => preload(library, Some(argument)),
            Some((PRELOAD, other)) => format!("{PRELOAD}={}", preload(library, Some(other))),
            Some(("--export", other)) if launcher == Implementation::Slurm => {
                format!("--export={other},{setting},{}", names.join(","))
            }
            None if argument == PRELOAD && before == "-x" => setting.clone(),
            _ => argument.clone(),
        };
        is_value = argument == PRELOAD && ["-genv", "-env"].contains(&before);
        before = argument;
        all.push(kept);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(launcher: Implementation, existing: Option<&str>, given: &str) -> String {
        let given: Vec<String> = given.split(' ').map(str::to_owned).collect();
        arguments(launcher, "/r.so", existing, &["DIR"], &given).join(" ")
    }

    #[test]
    fn every_launcher_gives_the_library_to_the_ranks() {
        let rest = "-n 2 ./a : -n 1 ./b";
        for (launcher, expected) in [
            (Implementation::OpenMpi, "-x LD_PRELOAD=/r.so -x DIR"),
            (Implementation::Mpich, "-genv LD_PRELOAD /r.so"),
            (Implementation::Slurm, "--export=ALL,LD_PRELOAD=/r.so"),
        ] {
            assert_eq!(of(launcher, None, rest), format!("{expected} {rest}"));
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
            of(Implementation::Mpich, None, "-genv LD_PRELOAD /m.so ./a"),
            "-genv LD_PRELOAD /r.so -genv LD_PRELOAD /r.so:/m.so ./a"
        );
        assert_eq!(
            of(Implementation::Slurm, None, "--export=A=1 ./a"),
            "--export=ALL,LD_PRELOAD=/r.so --export=A=1,LD_PRELOAD=/r.so,DIR ./a"
        );
    }
}
