//! The programs of a recording, where one job has several.

use crate::recording::Recording;

/// More programs are not listed: they are one that gets other arguments on every rank.
const MOST_PROGRAMS: usize = 8;
/// Most characters of a command line that are shown.
const MOST_SHOWN: usize = 60;

impl Recording {
    /// Which ranks ran which program, in a line; none if there was one, or if that of a rank is unknown.
    ///
    /// Programs differ by their arguments too: two inputs of one solver are two programs.
    pub(crate) fn programs(&self) -> Option<String> {
        let all: Vec<&str> =
            self.processes.iter().map(|process| process.program.as_deref()).collect::<Option<_>>()?;
        let files: Vec<&str> = all.iter().map(|line| line.split(' ').next().unwrap_or_default()).collect();
        let groups = [groups(&all), groups(&files)];
        let groups = groups.iter().find(|groups| groups.len() <= MOST_PROGRAMS)?;
        let line =
            |(program, ranks): &(&str, Vec<usize>)| format!("{} `{}`", ranges(ranks), shortened(program));
        let lines: Vec<String> = groups.iter().map(line).collect();
        (groups.len() > 1).then(|| format!("programs: {}", lines.join(", ")))
    }
}

/// The ranks of every program, in the order of their first ranks.
fn groups<'a>(all: &[&'a str]) -> Vec<(&'a str, Vec<usize>)> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for (rank, program) in all.iter().enumerate() {
        match groups.iter().position(|(known, _)| known == program) {
            Some(index) => groups[index].1.push(rank),
            None if groups.len() > MOST_PROGRAMS => break,
            None => groups.push((program, vec![rank])),
        }
    }
    groups
}

fn ranges(ranks: &[usize]) -> String {
    let runs = ranks.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}–{last}"),
        _ => run[0].to_string(),
    });
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{noun} {}", runs.collect::<Vec<_>>().join(", "))
}

/// The begin of a command line. Slurm starts programs by their absolute paths, whose ends differ: only these are shown.
fn shortened(line: &str) -> String {
    let file = line.split(' ').next().filter(|file| file.starts_with('/')).unwrap_or_default();
    let program = &line[file.rfind('/').map_or(0, |slash| slash + 1)..];
    // A command line may have any bytes, such as those of a terminal's control sequences.
    let shown: String = program.chars().take(MOST_SHOWN).flat_map(char::escape_debug).collect();
    if program.chars().nth(MOST_SHOWN).is_some() { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Method;
    use crate::recording::Process;

    fn said(programs: &[&str]) -> Option<String> {
        let process = |program: &&str| Process { program: Some((*program).to_owned()), ..Process::default() };
        let recording = Recording {
            method: Method::Preload,
            processes: programs.iter().map(process).collect(),
            traffic: Vec::new(),
            histogram: Vec::new(),
            communicators: Vec::new(),
            calls: Vec::new(),
            counted: Vec::new(),
            incomplete: None,
            foreign: None,
        };
        recording.programs()
    }

    #[test]
    fn several_programs_are_listed_with_their_ranks() {
        assert_eq!(said(&["./a"; 4]), None);
        assert_eq!(said(&["./a", "./a", "./b"]).unwrap(), "programs: ranks 0–1 `./a`, rank 2 `./b`");
        assert_eq!(
            said(&["lmp -in a", "lmp -in b", "lmp -in a"]).unwrap(),
            "programs: ranks 0, 2 `lmp -in a`, rank 1 `lmp -in b`"
        );
        let [a, b] = ["ocean -f /x/y", "ice"].map(|name| format!("/{}/{name}", "folder".repeat(10)));
        assert_eq!(said(&[&a, &b]).unwrap(), "programs: rank 0 `ocean -f /x/y`, rank 1 `ice`");
    }

    #[test]
    fn arguments_that_differ_on_every_rank_make_no_programs() {
        let lines: Vec<String> = (0..12).map(|rank| format!("./a --rank {rank}")).collect();
        let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(said(&lines), None);
        lines[11] = "./b";
        assert_eq!(said(&lines).unwrap(), "programs: ranks 0–10 `./a`, rank 11 `./b`");
    }
}
