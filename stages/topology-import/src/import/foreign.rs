//! Files that hopmap recognises, but does not read as machine topologies, with the way out; and foreign lines of files that it reads.

use std::path::Path;

use hopmap_formats::host_file;
use hopmap_formats::host_list::is_host_name;
use hopmap_model::InputPath;
use hopmap_text::{Foreign, foreign_lines, is_foreign, prefixed, prefixed_line, shown};

use super::format::{MOST_BYTES, Sample, malformed, read_text};
use super::xml::{self, first_element};
use super::{Format, Result, json_text};

/// What it is, how the beginning of a file tells, and what to do instead.
type Known = (&'static str, fn(&str) -> bool, &'static str);

/// How to get the labels of hosts.
pub(super) const HELP_ON_LABELS: &str = "give the table of `kubectl get nodes --show-labels`, or with `-L` the labels that name the switches: \
     `kubectl get nodes -L network.topology.nvidia.com/leaf,network.topology.nvidia.com/spine`; if they have other \
     names, rename their columns to `LEAF` and `SPINE`";

const KNOWN: [Known; 5] = [
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

/// Refuses a file that has the same before every line or before some, without which these are of a format.
pub(super) fn refuse_prefix(sample: &Sample, format: impl Fn(&Sample) -> Option<Format>) -> Result<()> {
    if let Some((prefix, behind)) = prefixed(&String::from_utf8_lossy(&sample.head))
        && let Some(format) = format(&Sample::of(Path::new(""), behind.into_bytes()))
    {
        let problem = format!("{} is before every line, which are `{}` without", prefix.what, format.name());
        return Err(malformed(prefix.line, problem, prefix.help));
    }
    Ok(())
}

/// Refuses texts in which some lines have a prefix, as they would be skipped.
pub(super) fn refuse_prefixed_lines(files: &[InputPath]) -> Result<()> {
    for path in files.iter().take(MOST_FILES).map(InputPath::path) {
        // The reader says what is wrong with a file that is no text.
        let is_text = Sample::new(path)?.text.is_some();
        let text = is_text.then(|| hopmap_text::read_text(path, MOST_BYTES).ok()).flatten();
        if let Some(prefix) = text.and_then(|text| prefixed_line(&text)) {
            let problem = format!("this line is one of the file behind {}", prefix.what);
            return Err(malformed(prefix.line, problem, prefix.help).in_file(path));
        }
    }
    Ok(())
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
                "12:00:00 source,destination\n12:00:00 a,b\n",
                "a time is before every line, which are `graph-csv`",
            ),
            (
                "0: SwitchName=s Nodes=a\n0: SwitchName=t Nodes=b\n",
                "a label with a colon is before every line",
            ),
            (
                "[1,0]<stdout>:source,destination\n[1,0]<stdout>:a,b\n",
                "a label in brackets is before every line",
            ),
            (
                "ibwarn: [7] mad_rpc_open_port: can't open UMAD port ((null):0)\n",
                "the command that should write",
            ),
            ("\nibnetdiscover: Permission denied\n", ":2: only messages are here"),
            ("bash: nvidia-smi: command not found\n", ":1: `nvidia-smi` wrote no matrix"),
        ] {
            std::fs::write(&path, text).unwrap();
            for format in [None, Some(Format::Hwloc), Some(Format::NvidiaSmi)] {
                let params = ImportParams { format, ..ImportParams::of(&path) };
                let error = read(&path, &params).unwrap_err().to_string();
                assert!(error.contains(what), "{text}: {error}");
            }
        }
    }
}
