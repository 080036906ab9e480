//! Where text goes: results to standard output, everything else to standard error. Failures of commands: which exit status an
//! error of the app has, and how it is printed.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::{IsTerminal, Write, stdout};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use clap::error::ContextKind;
use hopmap_command::{Answer, Exit, Failure};
use hopmap_durable::DurableError;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, Report, Severity, SourceCode};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::engine::StoreError;
use crate::source::Problems;

/// What a command gives, and why it does not.
pub(crate) type Result<T = Exit, E = Failure> = std::result::Result<T, E>;

/// Standard output as hopmap found it, where programs that it starts have another one.
static RESULTS: OnceLock<File> = OnceLock::new();

/// Keeps standard output to results: what the programs print there that hopmap starts goes to standard error.
pub(super) fn keep_to_results() {
    let Ok(out) = stdout().as_fd().try_clone_to_owned() else { return };
    if nix::unistd::dup2_stdout(std::io::stderr()).is_ok() {
        // Nobody else sets it.
        let _ = RESULTS.set(out.into());
    }
}

/// Whether a terminal understands more than lines of text.
fn is_terminal() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb")
}

/// Whether messages have colours.
fn has_styles() -> bool {
    is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// How to print.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    json: bool,
    quiet: bool,
}

#[expect(clippy::unused_self, reason = "callers print through their output, whatever it is set to")]
impl Output {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet }
    }

    /// Whether results are wanted as JSON.
    #[must_use]
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Whether to draw progress bars.
    pub(crate) fn is_interactive(self) -> bool {
        self.is_talkative() && is_terminal()
    }

    /// Whether to say on standard error what happens.
    pub(crate) fn is_talkative(self) -> bool {
        !self.quiet && !self.json
    }

    /// Prints a line of the result, unless quiet or JSON is wanted.
    pub fn line(self, line: impl Display) {
        if self.is_talkative() {
            self.raw(format!("{line}\n").as_bytes());
        }
    }

    /// Prints a line of the result that says what is wrong; when quiet to standard error, which cron mails.
    pub(crate) fn fault(self, line: impl Display) {
        self.fault_when_quiet(&line);
        self.line(line);
    }

    /// Says what is wrong to those who hear of nothing else.
    pub(crate) fn fault_when_quiet(self, line: impl Display) {
        if self.quiet && !self.json {
            let _ = writeln!(std::io::stderr().lock(), "{line}");
        }
    }

    /// Prints an answer: its lines, or its JSON where that is wanted.
    pub(crate) fn answer(self, answer: &Answer) {
        if let (true, Some(json)) = (self.json, &answer.json) {
            self.raw(format!("{json}\n").as_bytes());
        }
        answer.lines.iter().for_each(|line| self.line(line));
    }

    /// Prints a value as JSON, where that is wanted.
    pub fn json(self, value: &impl Serialize) {
        if self.json {
            self.document(value);
        }
    }

    /// Prints a value that was asked for as JSON.
    pub(crate) fn document(self, value: &impl Serialize) {
        // Values are plain data with text keys: they always have a form in JSON.
        let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
        text.push('\n');
        self.raw(text.as_bytes());
    }

    /// Prints bytes that were asked for, even when quiet.
    pub fn raw(self, bytes: &[u8]) {
        // A reader that has seen enough closes the pipe: that is not an error.
        let _ = match RESULTS.get() {
            Some(mut results) => results.write_all(bytes),
            None => stdout().lock().write_all(bytes),
        };
    }

    /// Says something on standard error, unless quiet.
    pub fn note(self, line: impl Display) {
        if self.is_talkative() {
            let _ = writeln!(std::io::stderr().lock(), "{line}");
        }
    }

    /// Prints an error to standard error.
    pub(crate) fn error(self, report: &Report) {
        let _ = write!(std::io::stderr().lock(), "{}", render(report.as_ref()));
    }
}

/// Text without control characters that damaged files bring along. Of what a terminal obeys only colours and styles stay
/// (`ESC [ numbers m`): those are ours, and from a file they do no harm.
fn printable(text: &str, is_terminal: bool) -> String {
    let is_style = |rest: &str| {
        let numbers = rest
            .strip_prefix("\u{1b}[")
            .map(|rest| rest.trim_start_matches(|it: char| it.is_ascii_digit() || it == ';'));
        is_terminal && numbers.is_some_and(|end| end.starts_with('m'))
    };
    let shown = |(at, character): (usize, char)| {
        let stays = !character.is_control() || character == '\n' || is_style(&text[at..]);
        if stays { character.to_string() } else { character.escape_default().to_string() }
    };
    text.char_indices().map(shown).collect()
}

/// An error without its code: miette would print it in a line of its own.
#[derive(Debug)]
struct WithoutCode<'a>(&'a dyn Diagnostic);

impl Display for WithoutCode<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self.0, f)
    }
}

impl Error for WithoutCode<'_> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl Diagnostic for WithoutCode<'_> {
    fn severity(&self) -> Option<Severity> {
        self.0.severity()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.0.help()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.0.labels()
    }
}

/// An error as users see it: code, message, place with snippet, hint.
pub(crate) fn render(error: &dyn Diagnostic) -> String {
    let is_terminal = is_terminal();
    let mut theme = match (is_terminal, has_styles()) {
        (true, true) => GraphicalTheme::unicode(),
        (true, false) => GraphicalTheme::unicode_nocolor(),
        (false, _) => GraphicalTheme::none(),
    };
    theme.characters.error = match error.code() {
        Some(code) => format!("error[{code}]:"),
        None => "error:".to_owned(),
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(100)
        .with_wrap_lines(is_terminal)
        .with_cause_chain();
    let mut text = String::new();
    match handler.render_report(&mut text, &WithoutCode(error)) {
        Ok(()) => printable(text.trim_start(), is_terminal),
        Err(_) => format!("error: {error}\n"),
    }
}

/// Prints what is wrong with the arguments, with a stable code like other errors. Clap has no other way to change its first word.
pub(super) fn wrong_arguments(mut error: clap::Error) {
    // It would also list those that help hides.
    error.remove(ContextKind::ValidSubcommand);
    let text = error.render();
    let text = if has_styles() { text.ansi().to_string() } else { text.to_string() };
    let _ = write!(std::io::stderr().lock(), "{}", text.replacen("error:", "error[command::arguments]:", 1));
}

/// Standard output without the buffer that looks for the ends of lines.
pub(super) fn unbuffered() -> Box<dyn Write + Send> {
    // A second handle, so that dropping it does not close the first.
    let out = match RESULTS.get() {
        Some(results) => results.as_fd().try_clone_to_owned(),
        None => stdout().as_fd().try_clone_to_owned(),
    };
    out.map_or_else(|_| Box::new(stdout()) as Box<dyn Write + Send>, |out| Box::new(File::from(out)))
}

/// Prints a failure to standard error, after what was found out before it.
pub(super) fn report(failure: &Failure, output: Output) -> Exit {
    output.answer(&failure.answer);
    let reports = &failure.reports;
    output.json(&errors(reports));
    reports.iter().for_each(|report| output.error(report));
    if reports.len() > 1 {
        let _ = writeln!(std::io::stderr().lock(), "{} errors", reports.len());
    }
    failure.exit
}

/// Errors as JSON.
pub(super) fn errors(reports: &[Report]) -> Json {
    let help = |report: &Report| report.help().map(|help| help.to_string());
    let error =
        |report: &Report| json!({ "code": code(report), "message": message(report), "help": help(report) });
    json!({ "errors": reports.iter().map(error).collect::<Vec<_>>() })
}

/// The stable code of an error, which `docs/reference/errors.md` explains.
pub(crate) fn code(report: &Report) -> Option<String> {
    report.code().map(|code| code.to_string())
}

/// An error with its causes, in one line.
pub(crate) fn message(report: &Report) -> String {
    report.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::new(Exit::Usage, problems.0.into_iter().map(Report::new))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let exit = match error {
            StoreError::Durable(DurableError::Busy { .. }) => Exit::Locked,
            StoreError::Missing(_) | StoreError::Foreign(_) => Exit::Usage,
            _ => Exit::Failed,
        };
        Self::new(exit, [Report::new(error)])
    }
}

/// Text in lines of at most `width` letters.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().filter(|line| line.is_empty() || line.len() + word.len() < width);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use miette::miette;

    use super::{printable, render};

    #[test]
    fn the_code_of_an_error_is_before_its_message() {
        let error = miette!(code = "trace::damaged", help = "copy it again", "it is damaged");
        let rendered = render(error.wrap_err("stage `a`").as_ref());
        assert_eq!(
            rendered,
            "error[trace::damaged]: stage `a`\n  `-> it is damaged\n  help: copy it again\n"
        );
        assert_eq!(render(miette!("lost").as_ref()), "error: lost\n");
    }

    #[test]
    fn control_characters_of_files_are_escaped_and_styles_stay() {
        let text = "\u{1b}[1;31merror\u{1b}[0m: `\u{1b}]0;title\u{7}\u{9b}2J\u{1b}[2Ja\0\r`\n";
        let escaped = r"`\u{1b}]0;title\u{7}\u{9b}2J\u{1b}[2Ja\u{0}\r`";
        assert_eq!(printable(text, true), format!("\u{1b}[1;31merror\u{1b}[0m: {escaped}\n"));
        assert_eq!(printable(text, false), format!("\\u{{1b}}[1;31merror\\u{{1b}}[0m: {escaped}\n"));
    }
}
