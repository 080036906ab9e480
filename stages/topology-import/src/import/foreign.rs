//! Files that hopmap recognises, but does not read as machine topologies, with the way out; and foreign lines of files that it reads.

use std::path::Path;

use hopmap_formats::host_file;
use hopmap_formats::host_list::is_host_name;
use hopmap_model::InputPath;
use hopmap_text::{
    FileError, Foreign, foreign_lines, is_foreign, is_sentence, prefix_of_lines, prefixed_line,
    refuse_prefixed, shown,
};

use super::format::{MOST_BYTES, Sample, malformed, read_text};
use super::xml::{self, first_element};
use super::{Format, ImportError, Result, json_text};

/// What it is, how the beginning of a file tells, and what to do instead.
type Known = (&'static str, fn(&str) -> bool, &'static str);

/// How to get the labels of hosts.
pub(super) const HELP_ON_LABELS: &str = "give the table of `kubectl get nodes --show-labels`, or with `-L` the labels that name the switches: \
     `kubectl get nodes -L network.topology.nvidia.com/leaf,network.topology.nvidia.com/spine`; if they have other \
     names, rename their columns to `LEAF` and `SPINE`";

const KNOWN: [Known; 6] = [
    ("a list of Kubernetes", is_kubernetes, HELP_ON_LABELS),
    (
        "a table of `kubectl get nodes` without a label that is known to name switches",
        |text| {
            text.trim_start().starts_with("NAME ") && text.contains(" STATUS ") && text.contains(" ROLES ")
        },
        HELP_ON_LABELS,
    ),
    (
        "a graph in the DOT language of Graphviz",
        is_dot,
        "write the cables as CSV, one per row: `source,source_port,destination,destination_port,source_type,\
         destination_type` (types are `host` and `switch`)",
    ),
    (
        "a listing of `ibnetdiscover` whose GUIDs are no numbers",
        |text| {
            let guid = |line: &str| line.split_once("guid=").map(|(_, guid)| guid.trim().to_owned());
            let digits =
                |guid: &str| guid.trim_start_matches("0x").split('(').next().unwrap_or_default().to_owned();
            let is_number = |guid: &str| digits(guid).bytes().all(|byte| byte.is_ascii_hexdigit());
            let begins = |line: &&str| {
                ["sysimg", "switch", "ca", "rt"]
                    .iter()
                    .any(|kind| line.trim_start().starts_with(&format!("{kind}guid=")))
            };
            text.lines().filter(begins).filter_map(guid).any(|guid| !is_number(&guid))
        },
        "they tell which ports are of one host or switch: if something else took their place, give each its own number again",
    ),
    (
        "output of `lshw`",
        |text| matches!(first_element(text), Some("list" | "node")) && text.contains(" class=\""),
        "run `lstopo --of xml > HOST.xml` on the host, which writes its cores and caches for hopmap",
    ),
    (
        "a host file, which names no links",
        is_host_file,
        "give it as `hosts_file` of topology/synthetic, with the `shape` of the network",
    ),
];

/// What programs, or the shell, say instead of a topology, between semicolons; what that means; and what to do.
const SAID: [(&str, &str, &str); 4] = [
    (
        "Failed to run topology matrix;Failed to initialize NVML;NVIDIA-SMI;NVSMI LOG;nvidia_smi_log;\
         No devices were found;nvidia-smi: ",
        "`nvidia-smi` wrote no matrix of GPUs",
        "give the output of `nvidia-smi topo -m` from a host whose driver works, as `nvidia-smi -L` shows",
    ),
    (
        "CA type: ;Infiniband device ';hca_id:",
        "these are the InfiniBand adapters of one host",
        "give the output of `ibnetdiscover`, run as root on a host of the fabric: all its hosts, switches and cables",
    ),
    (
        "Hops between two GPUs;Link Type between two GPUs;\"(Topology) ",
        "`rocm-smi` wrote no table with the weights between GPUs",
        "give the output of `rocm-smi --showtopo`, without `--json`",
    ),
    (
        "No topology information available;slurm_load_topo error",
        "scontrol has no topology: no topology plugin is set in slurm.conf, or slurmctld did not answer",
        "describe the network by another file, or measure it with topology/probe; a network without levels is \
         topology/synthetic with `shape = \"auto\"`",
    ),
];

const HELP_ON_FAILURE: &str = "run the command again until it succeeds, and write only its output to the file: `COMMAND > FILE`; those of InfiniBand \
     need root and a port that is up: `sudo ibnetdiscover -C mlx5_0 -P 1 > FILE`";

/// Refuses a file that is of a format without what is before every line: of one of numbers only if that says nothing.
pub(super) fn refuse_prefix(sample: &Sample, told: impl Fn(&Sample, bool) -> Option<Format>) -> Result<()> {
    let head = String::from_utf8_lossy(&sample.head);
    let mut found = None;
    let count = head.lines().filter(|line| !line.trim().is_empty()).count();
    let is_known = |text: &str, says_nothing: bool| {
        // Rows of numbers may be the rest of any line.
        let begins = text.trim_start().starts_with(|c: char| c.is_ascii_digit());
        let sample = Sample::of(Path::new(""), text.as_bytes().to_vec());
        found = told(&sample, says_nothing && text.lines().count() == count)
            .filter(|format| begins || ![Format::Kahip, Format::Matrix].contains(format));
        found.is_some()
    };
    match prefix_of_lines(&head, is_known) {
        // The names of rows may be words and numbers.
        Some(prefix)
            if matches!(found, Some(Format::Kahip | Format::Matrix))
                && !head.lines().all(|line| line.trim().is_empty() || prefix.is_before(line)) =>
        {
            Ok(())
        }
        Some(prefix) if head.lines().count() < 2 && !prefix.has_time() => Ok(()),
        Some(prefix)
            if prefix.is_words() && told(sample, true).is_some() && told(sample, false).is_none() =>
        {
            Ok(())
        }
        Some(prefix) => Err(prefix.of_all(&head, found.map_or("", Format::name)).into()),
        None => Ok(()),
    }
}

/// Refuses texts in which some lines have a prefix, as they would be skipped.
pub(super) fn refuse_prefixed_lines(files: &[InputPath]) -> Result<()> {
    for path in files.iter().take(MOST_FILES).map(InputPath::path) {
        // The reader says what is wrong with a file that is no text.
        let is_text = Sample::new(path)?.text.is_some();
        if let Some(text) = is_text.then(|| hopmap_text::read_text(path, MOST_BYTES).ok()).flatten() {
            refuse_prefixed(&text).map_err(|error| error.in_file(path))?;
        }
    }
    Ok(())
}

/// The error of a line that is as others are without words before it, or else the error of its reader.
pub(super) fn or_prefixed(error: ImportError, path: &Path) -> ImportError {
    let ImportError::File(FileError { line: Some(line), .. }) = &error else { return error };
    let text = hopmap_text::read_text(path, MOST_BYTES).unwrap_or_default();
    prefixed_line(&text, *line).map_or(error, ImportError::from)
}

/// Lines behind its first comments that say why a command failed, at most.
const MOST_REASONS: usize = 3;

/// Refuses a file in which nothing is but comments, as a command begins with, and why it failed.
pub(super) fn refuse_failure(sample: &Sample) -> Result<()> {
    let head = String::from_utf8_lossy(&sample.head);
    let lines = || (1..).zip(head.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    let (comments, others): (Vec<_>, Vec<_>) =
        lines().partition(|(_, line)| line.starts_with('#') && !is_foreign(line));
    let is_reason =
        |(_, line): &(usize, &str)| is_foreign(line) || is_sentence(line) && !line.contains(['=', '"', ',']);
    match others[..] {
        [(line, reason), ..]
            if sample.is_whole()
                && !comments.is_empty()
                && others.len() <= MOST_REASONS
                && others.iter().all(is_reason) =>
        {
            let problem =
                format!("there are only comments and a message, so the command failed: `{}`", shown(reason));
            Err(malformed(line, problem, HELP_ON_FAILURE))
        }
        [] if sample.is_whole() && !comments.is_empty() => {
            let problem = "there are only comments, so the command that should write the machine failed, or was stopped";
            Err(malformed(None, problem, HELP_ON_FAILURE))
        }
        _ => Ok(()),
    }
}

/// Refuses a file of no format that is known, but not read.
pub(super) fn refuse(sample: &Sample) -> Result<()> {
    let Some(text) = sample.text() else { return Ok(()) };
    // Messages of a shell are no longer in the text of the sample.
    for (line, message) in (1..).zip(String::from_utf8_lossy(&sample.head).lines()) {
        let says = |(words, ..): &&(&str, _, _)| words.split(';').any(|words| message.contains(words));
        if let Some((_, problem, help)) = SAID.iter().find(says) {
            return Err(malformed(line, format!("{problem}: `{}`", shown(message.trim())), *help));
        }
    }
    if text.trim().is_empty() && !sample.head.trim_ascii().is_empty() {
        let head = String::from_utf8_lossy(&sample.head);
        let said = (1..).zip(head.lines()).find(|(_, line)| is_foreign(line)).unwrap_or((1, ""));
        let problem = format!(
            "only messages are here, so the command that should write the machine failed: `{}`",
            shown(said.1.trim())
        );
        return Err(malformed(said.0, problem, HELP_ON_FAILURE));
    }
    let Some((what, _, help)) = KNOWN.iter().find(|(_, is_it, _)| is_it(text)) else { return Ok(()) };
    Err(malformed(None, format!("this is {what}, which is not read"), *help))
}

/// What is said of the foreign lines in the files behind a path, of which all but a single one are named.
pub(super) fn notes(path: &Path, files: &[InputPath], mut others: Option<Foreign>) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    for file in files.iter().take(MOST_FILES) {
        let found = Foreign::of_file(lines_in(file.path())?.into_iter().chain(others.take()));
        let name = || file.path().strip_prefix(path).unwrap_or(file.path()).display();
        notes.extend(found.map(|found| match file.path() == path {
            true => found.to_string(),
            false => format!("{}: {found}", name()),
        }));
    }
    Ok(notes)
}

/// Files whose foreign lines are looked for.
const MOST_FILES: usize = 256;

/// The foreign lines of a text file, if there are any.
fn lines_in(path: &Path) -> Result<Option<Foreign>> {
    let Some(head) = Sample::new(path)?.text else { return Ok(None) };
    let mut all: Vec<Foreign> = foreign_lines(path).into_iter().collect();
    if first_element(&head).is_some() {
        let text = read_text(path)?;
        all.extend(xml::others(&text));
    }
    Ok(Foreign::of_file(all))
}

/// An object or a list of the API, as JSON or YAML.
pub(super) fn is_kubernetes(text: &str) -> bool {
    let text = &*json_text::own(text);
    let text = text.trim_start().trim_start_matches("---").trim_start();
    let has = |key| text.contains(key);
    text.starts_with("apiVersion:") || text.starts_with('{') && has("\"apiVersion\"") && has("\"kind\"")
}

/// `strict digraph "name" {` in the first lines that are no comments.
fn is_dot(text: &str) -> bool {
    let is_code = |line: &&str| !line.trim_start().starts_with(['/', '#', '*']);
    let code: String = text.lines().filter(is_code).flat_map(|line| [line, "\n"]).collect();
    let head = code.split_once('{').map_or("", |(head, _)| head).to_ascii_lowercase();
    let word = head.split_whitespace().find(|word| *word != "strict");
    word.is_some_and(|word| ["graph", "digraph"].contains(&word))
}

/// Hosts with slots, or one on every line.
fn is_host_file(text: &str) -> bool {
    host_file::expand(text).is_ok_and(|file| {
        let is_one = |line: &str| line.split_whitespace().count() < 2;
        !file.hosts.is_empty()
            && file
                .hosts
                .iter()
                .all(|(name, _)| is_host_name(name) && !name.starts_with(|c: char| c.is_ascii_digit()))
            && (text.contains("slots") || text.lines().all(is_one))
    })
}

#[cfg(test)]
mod tests {
    use crate::import::{Format, ImportParams, read};

    #[test]
    fn foreign_files_are_named_with_and_without_a_format() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine");
        for (text, what) in [
            ("{\n \"apiVersion\": \"v1\",\n \"items\": [],\n \"kind\": \"List\"\n}\n", "Kubernetes"),
            ("---\napiVersion: v1\nitems:\n- kind: Node\n", "Kubernetes"),
            (
                "NAME   STATUS   ROLES    AGE   VERSION\nn1     Ready    <none>   3d    v1.31\n",
                "without a label",
            ),
            ("// cables\n/* of\n * two */\nstrict Digraph \"G\"\n{\n n1:eth0 -> leaf:swp1\n}\n", "DOT"),
            ("graph{a--b}", "DOT"),
            ("n1 slots=8\nn2 slots=8\n", "a host file"),
            ("n1\nn2\n", "a host file"),
            ("CA 'mlx5_0'\n\tCA type: MT4123\n\tNumber of ports: 1\n", "InfiniBand adapters"),
            ("Infiniband device 'mlx5_0' port 1 status:\n", "InfiniBand adapters"),
            ("=== Hops between two GPUs ===\n GPU0 GPU1\nGPU0 0 1\n", "no table with the weights"),
            (
                "{\"system\": {\"(Topology) Weight between DRM devices 0 and 1\": \"40\"}}",
                "no table with the weights",
            ),
            ("<!-- lshw -->\n<list>\n<node id=\"n\" class=\"system\"/>\n</list>\n", "`lshw`"),
            ("+-----+\n| NVIDIA-SMI 535.54  Driver Version: 535.54 |\n", ":2: `nvidia-smi` wrote no matrix"),
            ("$ nvidia-smi topo -m\nFailed to run topology matrix\n", ": `Failed to run topology matrix`"),
            (
                "12:00:01 source,destination\n12:00:01 a,b\n",
                "every line is behind `12:00:01 `; without it, this is `graph-csv`",
            ),
            ("0: SwitchName=s Nodes=a\n0: SwitchName=t Nodes=b\n", "every line is behind `0: `"),
            (
                "[1,0]<stdout>:source,destination\n[1,0]<stdout>:a,b\n",
                "every line is behind `[1,0]<stdout>:`",
            ),
            (
                "ibwarn: [7] mad_rpc_open_port: can't open UMAD port ((null):0)\n",
                "the command that should write",
            ),
            ("\nibnetdiscover: Permission denied\n", ":2: only messages are here"),
            ("bash: nvidia-smi: command not found\n", ":1: `nvidia-smi` wrote no matrix"),
            (
                "#\n# Topology file: generated on x\n#\nibnetdiscover: iberror: failed\n",
                ":4: there are only comments",
            ),
            (
                "# Topology file\nsrc/ibnetdisc.c:811; Failed to resolve self\ndiscover failed\n",
                ":2: there are only comments",
            ),
            (
                "# Topology file: generated on x\nvendid=0x2c9\ndevid=0xd2f2\nswitchguid=0x9c05<redacted>(9c05<redacted>)\n\
                 Switch\t2 \"S-9c05<redacted>\"\t\t# \"sw1\" enhanced port 0 lid 1 lmc 0\n",
                "whose GUIDs are no numbers",
            ),
            ("# Topology file: generated on x\n#\n", "there are only comments, so the command"),
            ("{\"a\": \"s\",\n\"b\": \"s\"\n}done\n", ":3: `done` is behind the last bracket"),
            ("{\"a\": \"s\", \"b\": \"s\"} done\n", ":1: `done` is behind the last bracket"),
            ("12:00:01 0 1 2\n12:00:01 1 0 2\n12:00:02 2 2 0\n", "; without it, this is `matrix`"),
            (
                "[n1] 0 1 2\n[n1] 1 0 2\n[n1] 2 2 0\n",
                ":1: every line is behind `[n1] `; without it, this is `matrix`",
            ),
            (
                "INFO 4:16:64\nINFO 1:10:100\n",
                ":1: every line is behind `INFO `; without it, this is `kahip`",
            ),
            (
                "12:00:01 tleaf 2 2 5\n12:00:01 2 1\n",
                ":1: every line is behind `12:00:01 `; without it, this is `scotch`",
            ),
            ("0,1,2\n1,0,x\n2,1,0\n", ":2: as a `matrix`: `x` is not a valid cost"),
            ("0,1,2\nINFO 1,0,3\n2,1,0\n", ":2: the row `1,0,3` is behind `INFO `"),
        ] {
            std::fs::write(&path, text).unwrap();
            // What is wrong with some is found without a format only.
            let is_damaged =
                [":2: as a", ":2: the row", "behind the last"].iter().any(|word| what.contains(word));
            for format in [None, Some(Format::Hwloc), Some(Format::NvidiaSmi)] {
                if is_damaged && format.is_some() {
                    continue;
                }
                let params = ImportParams { format, ..ImportParams::of(&path) };
                let error = read(&path, &params).unwrap_err().to_string();
                assert!(error.contains(what), "{text}: {error}");
            }
        }
    }
}
