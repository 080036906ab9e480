//! Commands: an index, and a page for every few that belong together with the help of each.

use hopmap_command::Exit;

use super::markdown::{Pages, anchor, head, sentence, table};

/// Pages: file, title, and the commands on it. Commands that no page names are on the last one.
const GROUPS: &[(&str, &str, &[&str])] = &[
    ("run", "Commands: pipelines and stages", &["init", "run", "plan", "why", "check", "graph", "exec"]),
    ("results", "Commands: results", &["show", "query", "diff", "report", "runs", "gc"]),
    ("reproduce", "Commands: baselines and archives", &["accept", "lock", "verify", "export", "import"]),
    ("topology", "Commands: machine topologies", &["topology", "agent"]),
    ("checkpoint", "Commands: checkpoint stores", &["checkpoint"]),
    ("other", "Commands: everything else", &[]),
];

/// Columns of the help: what clap takes where there is no terminal.
const WIDTH: usize = 100;

pub(super) fn add(pages: &mut Pages, definition: clap::Command) {
    let mut definition = definition.term_width(WIDTH);
    definition.build();
    let mut rows = Vec::new();
    for (file, title, names) in GROUPS {
        let here: Vec<&clap::Command> = shown(&definition)
            .filter(|command| match names.is_empty() {
                false => names.contains(&command.get_name()),
                true => GROUPS.iter().all(|(_, _, names)| !names.contains(&command.get_name())),
            })
            .collect();
        let mut text = head(title, "`hopmap COMMAND --help` prints the same text.");
        for command in here {
            rows.extend(all(command).map(|command| {
                let name = full_name(command);
                let link = format!("[`{name}`](commands/{file}.md#{})", anchor(&name));
                [link, sentence(&command.get_about().map(ToString::to_string).unwrap_or_default())]
            }));
            for command in all(command) {
                let help = command.clone().render_long_help().to_string();
                let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
                text +=
                    &format!("\n## {}\n\n```text\n{}\n```\n", full_name(command), lines.join("\n").trim());
            }
        }
        pages.insert(format!("commands/{file}.md"), text);
    }
    let introduction = "Every command takes `--json`, which prints results as JSON, and `--quiet`, which prints \
        nothing but errors. [Exit codes](exit-codes.md) are the same for all commands.";
    pages.insert("commands.md".into(), head("Commands", introduction) + &table(["command", "purpose"], rows));
    let rows = Exit::ALL.map(|exit| [exit.code().to_string(), exit.meaning().to_owned()]);
    let introduction = "What the shell sees in `$?` after a command. `hopmap record`, `reorder` and `tune` start programs, and end with \
        the code of a launcher or program that failed: such as 255 where Open MPI or Hydra does not reach a host, or 128 and the \
        number of a signal, as 139 after a segmentation fault.";
    pages
        .insert("exit-codes.md".into(), head("Exit codes", introduction) + &table(["code", "meaning"], rows));
}

/// Subcommands that people see.
fn shown(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

/// A command and its subcommands.
fn all(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    std::iter::once(command).chain(shown(command))
}

/// What is typed, from `hopmap` on.
fn full_name(command: &clap::Command) -> String {
    command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned()
}
