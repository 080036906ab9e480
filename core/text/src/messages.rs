//! Lines that are messages of programs, and lines of shells and logs.

use std::borrow::Cow;

use memchr::{memchr2, memchr3};

/// Programs and libraries that write messages with their names.
const PROGRAMS: &str = "bash cat grep mpirun numactl orterun perl prterun python python3 salloc sbatch scontrol sh slurmstepd srun \
                        ssh stty sudo tee timeout tput";
/// First parts of the names of programs and libraries for InfiniBand.
const FAMILIES: [&str; 7] = ["ib", "libib", "libmlx", "libopa", "mad", "mlx", "umad"];
/// What messages begin with, or have after the name of their program.
const KINDS: [&str; 4] = ["warning", "error", "fatal", "warn"];
/// Beginnings of messages of remote shells and their banners, locales, ibdiagnet, kubectl, Slurm and script, and of prompts.
const MESSAGES: &str = "-E- |-I- |-W- |Error from server|Unable to connect to the server|The connection to the server|\
                        No resources found|Defaulted container |Defaulting container |Unable to use a TTY |\
                        Script started|Script done|❯ |Connection to |Last login: |LANGUAGE = (|\
                        LC_ALL = (|LANG = |are supported and installed on your|slurm_load_|discovering network|Welcome to |\
                        Web console: |Activate the web console with: |* Documentation: |* Management: |* Support: |****|\
                        Authorized users only|Authorised users only|Unauthorized |Unauthorised |You have mail|You have new mail|\
                        Last failed login: |There was 1 failed login |There were |This system is |This is a private |Use of this |\
                        Killed by signal |Permission denied|No modules loaded|Connection refused|Connection closed |Loading |\
                        Access to this |By using this |By accessing |You are accessing |System information as of ";
/// Lines of shells without further words.
const WORDS: [&str; 5] = ["Killed", "Terminated", "Aborted", "logout", "exit"];
/// Programs whose call behind `#` or `%` is a line of a terminal rather than a comment.
const CALLED: &str = "ibnetdiscover iblinkinfo ibdiagnet opareport opaextractlink kubectl scontrol nvidia-smi lstopo \
                      netloc_ib_gather_raw sudo ssh srun";
/// Times at the beginning of a line of a log, with `A` for a letter and `9` for a digit: also those of klog, syslog
/// and ctime.
const TIMES: &str = "9999-99-99T99:99:99|9999-99-99 99:99:99|9999/99/99 99:99:99|99:99:99|A9999 99:99:99|\
                     AAA 99 99:99:99|AAA  9 99:99:99|AAA AAA 99 99:99:99|AAA AAA  9 99:99:99";

/// The first words of a launch file of hopmap, in which no line is of another program: hosts may have any name.
const LAUNCH_FILE: &str = "# hopmap mapping ";

/// Whether a text is a launch file that hopmap wrote.
#[must_use]
pub fn is_launch_file(text: &str) -> bool {
    let last = text.trim_end().rsplit('\n').next().unwrap_or_default();
    // That of Flux is the last line.
    text.trim_start().starts_with(LAUNCH_FILE) || last.starts_with(LAUNCH_FILE)
}

/// Whether a line is one of numbers, as most lines of traces are, which have no sign of a message.
pub(crate) fn are_numbers(line: &[u8]) -> bool {
    let is_like = |byte: &u8| byte.is_ascii_digit() || *byte == b':';
    line.first().is_some_and(u8::is_ascii_digit)
        && (memchr3(b':', b';', b'$', line).is_none() && memchr2(b'#', b'%', line).is_none()
            || line.trim_ascii_end().iter().all(is_like))
}

/// Whether a line is a message of a program rather than a part of a file: `ibwarn: [7] …`, `src/query_smp.c:195; …`,
/// `srun: warning: …`, `Warning: …`; or one of a log with its time, or a command at a prompt.
#[must_use]
pub fn is_foreign(line: &str) -> bool {
    if are_numbers(line.as_bytes()) {
        return false;
    }
    let line = without_colours(line);
    let line = line.trim();
    if line.is_empty() {
        return false;
    }
    let begins = |text: &str| line.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
    let is_framed = line.len() > 4 && line.starts_with("* ") && line.ends_with(" *");
    if MESSAGES.split('|').any(begins)
        || WORDS.contains(&line)
        || is_framed
        || behind_time(line).is_some()
        || is_bracketed(line)
        || is_typed(line)
    {
        return true;
    }
    let Some((name, rest)) = line.split_once([':', ';']) else { return false };
    let bare = name.split_once('[').map_or(name, |(bare, _)| bare).trim_start_matches('-');
    let word = bare.rsplit('/').next().unwrap_or(bare);
    if bare.is_empty() || bare.contains(|c: char| c.is_whitespace() || "\"',=<>(){}#".contains(c)) {
        return false;
    }
    let is_of = |kinds: &[&str], text: &str| {
        kinds.iter().any(|kind| text.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind)))
    };
    let message = rest.trim_start();
    let is_said = rest.starts_with(' ') && !message.is_empty();
    let is_program = PROGRAMS.split_whitespace().any(|program| program == word)
        || FAMILIES.iter().any(|family| word.starts_with(family))
            && !word.contains('-')
            && message.contains(' ');
    let is_source = [".c", ".h", ".cc", ".cpp", ".py", ".pl"].iter().any(|end| word.ends_with(end))
        && rest.starts_with(|c: char| c.is_ascii_digit());
    is_source
        || is_said
            && (is_program && !is_row(message)
                || KINDS.iter().any(|kind| word.eq_ignore_ascii_case(kind)) && message.contains(' '))
        || is_said && is_of(&KINDS, message) && message.contains([' ', ':'])
}

/// Whether what follows the name of a host or program is the rest of a row of a table rather than a message.
fn is_row(text: &str) -> bool {
    text.contains(',') && !text.contains(' ')
}

/// What a log says behind the time at the beginning of a line, `2026-11-29 12:00:00,123 …` or `[12:00:00] …`, or behind the seconds
/// of dmesg, `[ 12.000001] …`.
pub(crate) fn behind_time(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('[').unwrap_or(line);
    let is_like = |(byte, shape): (u8, u8)| match shape {
        b'9' => byte.is_ascii_digit(),
        b'A' => byte.is_ascii_alphabetic(),
        _ => byte == shape,
    };
    let begins = |time: &&str| rest.len() > time.len() && rest.bytes().zip(time.bytes()).all(is_like);
    if let Some(time) = TIMES.split('|').find(begins) {
        // A fraction and a zone, but not the rest of an address such as 10:22:33:44:55:66.
        let rest = &rest[time.len()..];
        let message = rest.trim_start_matches(|c: char| c.is_ascii_digit() || ".,+-:Z]".contains(c));
        return message.strip_prefix(char::is_whitespace).filter(|_| !rest.starts_with(':'));
    }
    let fraction = rest.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
    let is_time = fraction.len() > 9 && fraction.bytes().zip(*b".999999] A").all(is_like);
    is_time.then(|| &fraction[9..])
}

/// Whether a line is one of Open MPI, `[host:4711] …` or `[host][[4711,1],2][file.c:7:function] …`, or one of the log of
/// SimGrid, `[0.500000] [smpi/INFO] …` or `[host:rank:(1) 0.5] file.cpp:7: [smpi/INFO] …`.
fn is_bracketed(line: &str) -> bool {
    let Some((within, message)) = line.strip_prefix('[').and_then(|line| line.split_once("] ")) else {
        return false;
    };
    let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let is_process = |(host, id): (&str, &str)| is_name(host) && id.parse::<u32>().is_ok();
    let has_level = |level| message.contains('[') && message.contains(level);
    within.split_once(':').is_some_and(is_process) && !is_row(message)
        || within.contains("][") && within.contains(".c:")
        || ["/CRITICAL] ", "/ERROR] ", "/WARNING] ", "/INFO] ", "/VERBOSE] ", "/DEBUG] "]
            .into_iter()
            .any(has_level)
}

/// Whether a line is a command at the prompt of a shell: `$ ibnetdiscover`, `user@host:~$ ibnetdiscover`,
/// `[user@host dir]$ ibnetdiscover`, `user@host dir % ibnetdiscover`, `# ibnetdiscover`, `PS C:\> kubectl`; or the trace that `set -x` writes
/// of it, `++ kubectl get nodes`.
fn is_typed(line: &str) -> bool {
    let traced = line.trim_start_matches('+');
    if traced.len() < line.len() && traced.starts_with(' ') {
        return traced.trim_start().starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '.');
    }
    let path = line.strip_prefix("PS ").unwrap_or(line);
    if path.get(1..3) == Some(":\\") && path.contains('>') {
        return true;
    }
    let Some((at, sign)) = line.match_indices(['$', '#', '%']).next() else { return false };
    let (prompt, rest) = (&line[..at], &line[at + 1..]);
    let prompt =
        prompt.rsplit_once(") ").filter(|(name, _)| name.starts_with('(')).map_or(prompt, |(_, rest)| rest);
    let is_called = || CALLED.split(' ').any(|called| rest.split(' ').nth(1) == Some(called));
    let is_word = |word: &str| word.chars().all(|c| c.is_alphanumeric() || "._-:~/@".contains(c));
    let is_prompt = is_word(prompt) || prompt.starts_with('[') && prompt.ends_with(']') || sign == "%";
    let user = prompt.split(' ').next().unwrap_or_default().trim_start_matches('[');
    let is_of_user = is_prompt && is_word(user) && user.contains('@');
    (rest.starts_with(' ') || rest.is_empty() && (at > 0 || sign == "$"))
        && (is_of_user || is_word(prompt) && (sign == "$" || is_called()))
}

const COLOUR: &str = "\u{1b}[";

/// The text without the colours of terminals, such as `ESC [ 1 ; 31 m`.
pub(crate) fn without_colours(text: &str) -> Cow<'_, str> {
    if !text.contains(COLOUR) {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split(COLOUR);
    let first = parts.next().unwrap_or_default();
    let plain = |part: &str| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        rest.strip_prefix(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest).to_owned()
    };
    Cow::Owned(std::iter::once(first.to_owned()).chain(parts.map(plain)).collect())
}
