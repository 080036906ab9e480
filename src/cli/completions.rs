//! `hopmap completions`: what a shell needs to complete the command line.

use clap::{Args, ValueEnum};
use clap_complete::Shell;
use hopmap_command::Exit;

use super::output::Output;

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopmap completions bash > ~/.local/share/bash-completion/completions/hopmap
  hopmap completions zsh > ~/.zfunc/_hopmap          # a folder of $fpath
  hopmap completions fish > ~/.config/fish/completions/hopmap.fish")]
pub(crate) struct Arguments {
    /// The shell.
    shell: KnownShell,
}

/// Shells whose completions are tried.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum KnownShell {
    Bash,
    Zsh,
    Fish,
}

impl From<KnownShell> for Shell {
    fn from(shell: KnownShell) -> Self {
        match shell {
            KnownShell::Bash => Self::Bash,
            KnownShell::Zsh => Self::Zsh,
            KnownShell::Fish => Self::Fish,
        }
    }
}

pub(crate) fn main(arguments: &Arguments, mut definition: clap::Command, output: Output) -> Exit {
    let mut text = Vec::new();
    clap_complete::generate(Shell::from(arguments.shell), &mut definition, "hopmap", &mut text);
    output.raw(&text);
    Exit::Done
}
