//! Several programs in one job.

use hopmap_mpi_environment::program_in;

use crate::error::LaunchError;
use crate::launch::Launch;

/// Between two programs of a command.
const SEPARATOR: &str = ":";
/// Slurm's option for a file of programs.
pub const MULTI_PROG: &str = "--multi-prog";
const FORM: &str = "such as -n 4 ./a : -n 2 ./b";

/// The options of a launcher and what it starts: one program, programs with their numbers of ranks, as `-n 4 ./a : -n 2 ./b`, or
/// `--multi-prog FILE` of Slurm.
///
/// The number of all ranks is left out before several programs: Hydra takes one `-n` for each ("duplicate setting"). Rank files of Open
/// MPI and machine files of Hydra count the ranks of all programs. The sequential mapper of Open MPI 4.1.4 begins its file again at every
/// program, and `hopmap reorder` keeps ranks in their program, so both are refused.
pub fn with_programs(
    launch: Launch,
    mut options: Vec<String>,
    programs: &[String],
) -> Result<Vec<String>, LaunchError> {
    let is_of_slurm = programs.first().is_some_and(|word| word == MULTI_PROG);
    if !programs.iter().any(|word| word == SEPARATOR) && !is_of_slurm {
        return Ok(options.into_iter().chain(programs.iter().cloned()).collect());
    }
    match launch {
        Launch::Slurm if is_of_slurm => {}
        Launch::OpenMpi4 | Launch::OpenMpi5 | Launch::Mpich | Launch::IntelMpi if !is_of_slurm => {
            let number = options.iter().position(|word| word == "-n");
            let number = number.filter(|at| at + 1 < options.len());
            let ranks = number.and_then(|at| options.drain(at..at + 2).next_back());
            check_ranks(programs, &ranks.unwrap_or_default())?;
        }
        _ => {
            let problem = "this launcher cannot map several programs of one job";
            let help = "open-mpi-4, open-mpi-5, mpich and intel-mpi can, and slurm with --programs FILE";
            return Err(LaunchError::new(problem, help));
        }
    }
    Ok(options.into_iter().chain(programs.iter().cloned()).collect())
}

/// Whether these are several programs with their numbers of ranks.
#[must_use]
pub fn are_several(words: &[String]) -> bool {
    words.first().is_some_and(|word| word.starts_with('-') && word != MULTI_PROG)
}

/// The words of each program without options of its ranks. The file of `--multi-prog` is in the place of its programs.
#[must_use]
pub fn programs_of(words: &[String]) -> Vec<&[String]> {
    match words {
        [option, list @ ..] if option == MULTI_PROG => vec![list],
        words if are_several(words) => {
            let programs = words.split(|word| word == SEPARATOR);
            programs.map(|program| &program[program_in(program)..]).collect()
        }
        program => vec![program],
    }
}

/// The programs must have all ranks of the mapping.
fn check_ranks(programs: &[String], ranks: &str) -> Result<(), LaunchError> {
    let mut sum = 0_u64;
    for program in programs.split(|word| word == SEPARATOR) {
        let count = match program {
            [option, count, _, ..] if ["-n", "-np"].contains(&option.as_str()) => count.parse::<u32>().ok(),
            _ => None,
        };
        let Some(count) = count.filter(|count| *count > 0) else {
            let problem = format!("`{}` does not begin with its number of ranks", program.join(" "));
            return Err(LaunchError::new(problem, FORM));
        };
        sum += u64::from(count);
    }
    if sum.to_string() != ranks {
        let problem = format!("the programs have {sum} ranks, and {ranks} are to be started");
        return Err(LaunchError::new(problem, "give as many ranks as the slots, or --ranks"));
    }
    Ok(())
}

/// The words of programs for this launcher: `file` is one as of `srun --multi-prog`, with lines `RANKS PROGRAM ARGUMENTS…`, and is at
/// `path`. An error has the number of its line, or 0.
pub fn programs_of_file(launch: Launch, text: &str, path: &str) -> Result<Vec<String>, (usize, String)> {
    let mut words: Vec<String> = Vec::new();
    let mut next = 0_u32;
    for (number, line) in (1..).zip(text.lines()) {
        let fault = |what: &str| (number, what.to_owned());
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut program = shlex::split(line).ok_or_else(|| fault("quotes must be closed"))?.into_iter();
        let ranks = program.next().unwrap_or_default();
        let (first, last) = ranks.split_once('-').unwrap_or((&ranks, &ranks));
        let range = first.parse::<u32>().ok().zip(last.parse::<u32>().ok());
        let Some((_, last)) =
            range.filter(|(first, last)| *first == next && last >= first && *last < u32::MAX)
        else {
            return Err((
                number,
                format!("`{ranks}` is not a range such as {next}-{} that begins with rank {next}", next + 3),
            ));
        };
        let program: Vec<String> = program.collect();
        match program.first() {
            None => return Err(fault("the program is missing")),
            Some(_)
                if program
                    .iter()
                    .any(|word| word == SEPARATOR || word.contains("%t") || word.contains("%o")) =>
            {
                return Err(fault("`:`, `%t` and `%o` are not taken in a program"));
            }
            Some(_) => {}
        }
        if !words.is_empty() {
            words.push(SEPARATOR.to_owned());
        }
        words.extend(["-n".to_owned(), (last - next + 1).to_string()]);
        words.extend(program);
        next = last + 1;
    }
    match words.is_empty() {
        true => Err((0, "it has no program".to_owned())),
        false if launch == Launch::Slurm => Ok(vec![MULTI_PROG.to_owned(), path.to_owned()]),
        false => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn started(launch: Launch, programs: &str) -> String {
        let options = words("-n 6 --rankfile f");
        with_programs(launch, options, &words(programs))
            .map_or_else(|error| error.to_string(), |words| words.join(" "))
    }

    #[test]
    fn several_programs_have_their_own_numbers_of_ranks() {
        assert_eq!(started(Launch::OpenMpi4, "./a -n 3"), "-n 6 --rankfile f ./a -n 3");
        let two = "-n 4 ./a x : -n 2 ./b";
        assert_eq!(started(Launch::OpenMpi4, two), format!("--rankfile f {two}"));
        assert_eq!(started(Launch::Mpich, two), format!("--rankfile f {two}"));
        assert_eq!(started(Launch::Slurm, "--multi-prog p"), "-n 6 --rankfile f --multi-prog p");
        for launch in [Launch::OpenMpiHosts, Launch::Reorder, Launch::Slurm, Launch::Flux] {
            assert_eq!(started(launch, two), "this launcher cannot map several programs of one job");
        }
        let wrong = "the programs have 5 ranks, and 6 are to be started";
        assert_eq!(started(Launch::Mpich, "-n 4 ./a : -n 1 ./b"), wrong);
        let wrong = "`./b` does not begin with its number of ranks";
        assert_eq!(started(Launch::Mpich, "-n 4 ./a : ./b"), wrong);
    }

    #[test]
    fn each_program_begins_behind_its_options() {
        let read = |text: &str| {
            let words = words(text);
            programs_of(&words).iter().map(|program| program.join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(read("./a : x"), ["./a : x"]);
        assert_eq!(read("-n 4 ./a x : -np 2 -x V ./b"), ["./a x", "./b"]);
        assert_eq!(read("--multi-prog f"), ["f"]);
        assert_eq!(read("-n 4"), [""]);
    }

    #[test]
    fn a_file_of_programs_is_that_of_slurm() {
        let read = |launch, text: &str| programs_of_file(launch, text, "f").map(|words| words.join(" "));
        let file = "# coupled\n0-3 ./a 'x y'\n\n4 ./b\n";
        assert_eq!(read(Launch::OpenMpi4, file).unwrap(), "-n 4 ./a x y : -n 1 ./b");
        assert_eq!(read(Launch::Slurm, file).unwrap(), "--multi-prog f");
        let refused = |text: &str| read(Launch::Mpich, text).unwrap_err();
        assert_eq!(refused("0-3 ./a\n5 ./b").1, "`5` is not a range such as 4-7 that begins with rank 4");
        assert_eq!(refused("0-3").1, "the program is missing");
        assert_eq!(refused("0 ./a %t").0, 1);
        assert_eq!(refused("* ./a").0, 1);
        assert_eq!(refused("0-4294967295 ./a").0, 1);
        assert_eq!(refused("\n").0, 0);
        assert_eq!(refused("0 './a").1, "quotes must be closed");
    }
}
