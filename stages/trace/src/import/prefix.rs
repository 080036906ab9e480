//! What launchers and loggers write before every line of a program, so that no line looks like one of its file.

use hopmap_text::{behind_time, is_foreign};

/// What a prefix is, the text behind it, and how to leave it out.
type Prefix = (&'static str, fn(&str) -> Option<&str>, &'static str);

const PREFIXES: [Prefix; 3] = [
    (
        "a time",
        behind_time,
        "print without it, as `kubectl logs` without `--timestamps` does, or cut it off with `cut -c`",
    ),
    (
        "a label in brackets",
        |line| {
            let (label, rest) = line.strip_prefix('[')?.split_once(']')?;
            let of_tag = rest.strip_prefix("<std").and_then(|rest| rest.split_once('>'));
            is_label(label).then_some(of_tag.map_or(rest, |(_, rest)| rest).trim_start_matches([':', ' ']))
        },
        "run `mpirun` without `--tag-output`, `mpiexec` without `-prepend-rank` or `torchrun` without `--tee`, or delete it: \
         `sed 's/^\\[[^]]*\\]\\(<[a-z]*>\\)\\{0,1\\}[: ]*//'`",
    ),
    (
        "a label with a colon",
        |line| {
            let (label, rest) = line.split_once(": ")?;
            is_label(label.trim_start()).then_some(rest.trim_start())
        },
        "run `srun` without `--label` or `pdsh` with `-N`, or delete it: `sed 's/^[^:]*: *//'`",
    ),
];

fn is_label(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-@/,".contains(c))
}

/// What is before every line of a text but those of other programs, the text behind it, and how to leave it out.
pub(super) fn prefixed(text: &str) -> Option<(&'static str, String, &'static str)> {
    PREFIXES.iter().find_map(|&(what, behind, help)| {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let lines = lines.filter(|line| behind(line).is_some() || !is_foreign(line));
        let behind: Vec<&str> = lines.map(behind).collect::<Option<_>>()?;
        (behind.len() > 1).then(|| (what, behind.join("\n") + "\n", help))
    })
}
