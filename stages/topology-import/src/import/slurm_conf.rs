//! `topology.conf` of Slurm: a tree of switches, blocks (topology.conf(5)), or rings (`ring_record.c` of Slurm's plugin
//! `topology/ring`, where every host is linked to the next and the last to the first).
//!
//! `scontrol show topology` prints the same with levels and sizes (`_print_topo_record` of Slurm's plugins), and repeats the
//! hosts of lower switches at higher ones.

use super::finish::imported;
use super::format::{Sample, malformed, note};
use super::slurm_tree::{Blocks, Lists, Switch, chosen, parts};
use super::{ImportError, ImportParams, Imported, Result, slurm_ring};

/// Every line begins like one of a topology.conf, and one defines a switch or a block.
pub(super) fn recognises(sample: &Sample) -> bool {
    let Some(text) = sample.text() else { return false };
    let mut names = false;
    for (_, line) in lines(text) {
        let Ok(entries) = entries(&line) else { return false };
        let Some((key, _)) = entries.first() else { continue };
        match key.as_str() {
            "switchname" | "blockname" | "ringname" | "torusname" => names = true,
            "aggregatedblock" | "blocksizes" | "include" | "allowemptyswitch" => {}
            _ => return false,
        }
    }
    names
}

/// The topologies of a file, which Slurm's configuration chooses from, and the number of speeds without a unit.
#[derive(Default)]
struct Listed {
    switches: Vec<Switch>,
    blocks: Blocks,
    rings: Vec<Switch>,
    speeds: usize,
    notes: Vec<String>,
}

pub(super) fn read(text: &str, params: &ImportParams) -> Result<Imported> {
    let Listed { switches, blocks, rings, speeds, mut notes } = listed(text)?;
    note(&mut notes, "ignoring LinkSpeed, which has no unit, of switches", speeds);
    let kinds = [("tree", switches.len()), ("block", blocks.bases.len()), ("ring", rings.len())];
    let names: Vec<&str> = kinds.iter().filter(|(_, count)| *count > 0).map(|(name, _)| *name).collect();
    if names.is_empty() {
        return Err(malformed(None, "no switches or blocks", "such as `SwitchName=s0 Nodes=n[0-3]`"));
    }
    let (parts, more) = match names[chosen(&names, params, " in one file")?] {
        "ring" => slurm_ring::parts(&rings)?,
        "tree" => parts(&switches)?,
        _ => {
            let (switches, more) = blocks.switches()?;
            notes.extend(more);
            parts(&switches)?
        }
    };
    notes.extend(more);
    imported(parts, params, notes)
}

fn listed(text: &str) -> Result<Listed> {
    let (mut found, lists) = (Listed::default(), Lists::new());
    for (line, content) in lines(text) {
        let entries = entries(&content).map_err(|word| {
            malformed(line, format!("`{word}` is not `Name=value`"), "such as `SwitchName=s0 Nodes=n[0-3]`")
        })?;
        let Some((key, value)) = entries.first() else { continue };
        match key.as_str() {
            "switchname" => {
                found.switches.push(switch(&lists, line, value, &entries[1..], &mut found.speeds)?);
            }
            "blockname" => {
                found.blocks.bases.push(block(&lists, line, value, &entries[1..])?);
                set_size(&mut found.blocks, line, &entries)?;
            }
            "aggregatedblock" => set_size(&mut found.blocks, line, &entries)?,
            "ringname" => found.rings.push(block(&lists, line, value, &entries[1..])?),
            "torusname" => {
                let problem = "`scontrol show topology` does not print where the hosts of a torus are";
                return Err(malformed(line, problem, "import topology.yaml, which has them"));
            }
            "blocksizes" => found.blocks.set_sizes(line, value)?,
            // Switches with nothing below them are said, whether they are allowed or not.
            "allowemptyswitch" => {}
            "include" => found
                .notes
                .push(format!("line {line}: the included file `{value}` is not read; import it as `path`")),
            _ => {
                let problem = format!("a line that begins with `{key}`");
                let help =
                    "lines must begin with SwitchName, BlockName, BlockSizes, RingName or AllowEmptySwitch";
                return Err(malformed(line, problem, help));
            }
        }
    }
    Ok(found)
}

fn switch(
    lists: &Lists,
    line: usize,
    name: &str,
    entries: &[(String, String)],
    speeds: &mut usize,
) -> Result<Switch> {
    let mut switch = Switch { name: Lists::own_name(line, name)?, line, ..Switch::default() };
    let is_printed = entries.iter().any(|(key, _)| key == "level");
    let repeats_hosts = is_printed && entries.iter().any(|(key, _)| key == "switches");
    for (key, value) in entries {
        match key.as_str() {
            "level" => {}
            "nodes" if repeats_hosts => {}
            "switches" => switch.switches.extend(lists.names(line, value)?),
            "nodes" => switch.hosts.extend(lists.hosts(line, value)?),
            "linkspeed" => *speeds += usize::from(!is_printed),
            _ => return Err(unknown(line, key, "SwitchName, Switches, Nodes and LinkSpeed")),
        }
    }
    if !(switch.hosts.is_empty() || switch.switches.is_empty()) {
        let problem = format!("`{name}` has both hosts and switches below it");
        return Err(malformed(line, problem, "Slurm accepts either `Nodes=` or `Switches=`"));
    }
    Ok(switch)
}

fn block(lists: &Lists, line: usize, name: &str, entries: &[(String, String)]) -> Result<Switch> {
    let mut block = Switch { name: Lists::own_name(line, name)?, line, ..Switch::default() };
    for (key, value) in entries {
        match key.as_str() {
            "nodes" => block.hosts.extend(lists.hosts(line, value)?),
            "blockindex" | "blocksize" | "ringsize" => {}
            _ => return Err(unknown(line, key, "Nodes after the name")),
        }
    }
    Ok(block)
}

/// Takes the size of a block as `scontrol show topology` prints it.
fn set_size(blocks: &mut Blocks, line: usize, entries: &[(String, String)]) -> Result<()> {
    let size = entries.iter().find(|(key, _)| key == "blocksize");
    size.map_or(Ok(()), |(_, size)| blocks.set_sizes(line, size))
}

fn unknown(line: usize, key: &str, known: &str) -> ImportError {
    malformed(line, format!("unknown key `{key}`"), format!("allowed are {known}"))
}

/// Lines with their numbers, without comments; lines that end with a backslash are joined with the next one.
fn lines(text: &str) -> impl Iterator<Item = (usize, String)> + '_ {
    let mut numbered = (1..).zip(text.lines());
    std::iter::from_fn(move || {
        let (number, first) = numbered.next()?;
        let mut joined = String::new();
        let mut next = Some(first);
        while let Some(line) = next {
            let line = line.split('#').next().unwrap_or("").trim_end();
            match line.strip_suffix('\\') {
                Some(begun) => {
                    joined.push_str(begun);
                    next = numbered.next().map(|(_, line)| line);
                }
                None => {
                    joined.push_str(line);
                    next = None;
                }
            }
        }
        Some((number, joined))
    })
}

/// The `Key=value` pairs of a line, with keys in lower case. Values may be quoted; blanks around `=` are
/// allowed.
fn entries(line: &str) -> Result<Vec<(String, String)>, String> {
    let mut entries = Vec::new();
    let mut rest = line.trim_start();
    if let Some((word, file)) = rest.split_once(char::is_whitespace)
        && word.eq_ignore_ascii_case("include")
        && !file.trim_start().starts_with('=')
    {
        return Ok(vec![("include".to_owned(), file.trim().to_owned())]);
    }
    while !rest.is_empty() {
        let word = || rest.split_whitespace().next().unwrap_or("").to_owned();
        let (key, after) = rest.split_once('=').ok_or_else(word)?;
        let key = key.trim_end();
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.') {
            return Err(word());
        }
        let after = after.trim_start();
        let (value, more) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or_else(word)?,
            None => after.split_at(after.find(char::is_whitespace).unwrap_or(after.len())),
        };
        entries.push((key.to_ascii_lowercase(), value.to_owned()));
        rest = more.trim_start();
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::hops;
    use crate::import::samples::{fault, import};
    use hopmap_model::{NodeKind, Paths};

    #[test]
    fn rings_are_closed() {
        let Imported { system, notes } =
            import("RingName=r1 Nodes=n[3,1,2,10]\nRingName=r2 Nodes=m[1-2]\n").unwrap();
        assert_eq!([hops(&system, "n3", "n1"), hops(&system, "n3", "n10")], [Some(1), Some(1)]);
        assert_eq!([hops(&system, "n3", "n2"), hops(&system, "n1", "m1")], [Some(2), None]);
        assert_eq!([hops(&system, "m1", "m2"), hops(&system, "m2", "m1")], [Some(1), Some(1)]);
        assert!(notes[0].contains("no path joins") && notes[0].contains("4 with `n1`; 2 with"), "{notes:?}");
        assert_eq!(system.links.len(), 10);
        let twice = "RingName=r1 Nodes=n[1-3]\nRingName=r2 Nodes=n3\n";
        assert_eq!(fault(twice), "2: the host `n3` is twice in rings, first in `r1`");
        let twice = "RingName=r1 Nodes=n[1-3]\nRingName=r1 Nodes=n4\n";
        assert_eq!(fault(twice), "2: the ring `r1` is defined twice");
        let mixed = "RingName=r1 Nodes=n[1-3]\nSwitchName=s Nodes=n4\n";
        assert_eq!(fault(mixed), "0: 2 topologies in one file: `tree`, `ring`");
    }

    #[test]
    fn switches_are_linked_to_the_nodes_below() {
        let text = "# two levels\nswitchname = s0 NODES=\"n[0-1]\" # leaf\nSwitchName=s1 Nodes=n2,n10 LinkSpeed=40\n\
                    SwitchName=top \\\n  Switches=s[0-1]\n";
        let Imported { system, notes } = import(text).unwrap();
        let names: Vec<_> = system.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["n0", "n1", "n2", "n10", "s0", "s1", "top"]);
        assert_eq!((system.links.len(), system.slots.len()), (12, 4));
        assert_eq!([hops(&system, "n0", "n1"), hops(&system, "n0", "n10")], [Some(2), Some(4)]);
        assert!(Paths::new(&system).unwrap().tree().is_some());
        assert_eq!(notes, ["ignoring LinkSpeed, which has no unit, of switches: 1"]);
    }

    #[test]
    fn unconnected_parts_remain_separate() {
        let Imported { system, notes } = import("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\n").unwrap();
        assert_eq!(hops(&system, "n1", "n2"), None);
        assert!(notes[0].ends_with("cannot communicate: 2, by hosts 1 with `n1`; 1 with `n2`"), "{notes:?}");
    }

    #[test]
    fn spines_above_the_same_switches_are_kept() {
        let text = "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=x Switches=a,b\nSwitchName=y Switches=a,b\n";
        let Imported { system, notes } = import(text).unwrap();
        assert_eq!((system.links.len(), hops(&system, "n1", "n2")), (12, Some(4)));
        assert!(notes[0].contains("several switches"), "{notes:?}");
    }

    #[test]
    fn blocks_of_blocks_are_switches() {
        let text = "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockName=b3 Nodes=n[9-12]\nBlockSizes=4,8\n";
        let Imported { system, notes } = import(text).unwrap();
        let hops: Vec<_> = ["n2", "n5", "n9"].map(|to| hops(&system, "n1", to).unwrap()).to_vec();
        assert_eq!(hops, [2, 4, 6]);
        assert_eq!(system.nodes.iter().filter(|node| node.kind == NodeKind::Switch).count(), 6);
        assert_eq!(
            notes,
            ["2 blocks without a common larger block are connected by an additional top switch"]
        );
        assert!(fault("BlockName=b1 Nodes=n1\nBlockSizes=4,6\n").starts_with("2: a block of 6"));
        // Slurm refuses any other ratio, too (block_record.c).
        assert!(fault("BlockName=b1 Nodes=n[1-4]\nBlockSizes=4,12\n").starts_with("2: a block of 12"));
        assert_eq!(fault("BlockName=b1\nBlockName=b2\n"), "0: no hosts");
        let small = import("BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n5\nBlockSizes=4,8\n").unwrap();
        assert_eq!(small.notes, ["blocks with fewer hosts than the smallest size, 4: 1"]);
        assert!(fault("BlockName=b1 Nodes=n1\nBlockSizes=4,x\n").starts_with("2: `x` is not a block size"));
    }

    #[test]
    fn what_scontrol_prints_is_what_was_configured() {
        let machine = |text: &str| import(text).unwrap().system;
        let same = |configured: &str, printed: &str| assert_eq!(machine(configured), machine(printed));
        same(
            "SwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n[3-4]\nSwitchName=top Switches=s[0-1]\n",
            "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2] \nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[3-4] \n\
             SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[0-1] \n",
        );
        same(
            "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockName=b3 Nodes=n[5-6]\nBlockSizes=2,4\n",
            "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2\n\
             BlockName=b3 BlockIndex=2 Nodes=n[5-6] BlockSize=2\nAggregatedBlock=b[1-2] BlockIndex=3 Nodes=n[1-4] BlockSize=4\n",
        );
        same("RingName=r Nodes=n[1-3]\n", "RingName=r Nodes=n[1-3] RingSize=3\n");
        assert_eq!(
            fault("TorusName=t Dims=2x1x1 Nodes=n[1-2]\n"),
            "1: `scontrol show topology` does not print where the hosts of a torus are"
        );
    }

    #[test]
    fn contradictions_are_reported_with_their_lines() {
        let s = "SwitchName=s Nodes=n1\n";
        assert!(
            fault(&format!("{s}SwitchName=t Switches=u\n"))
                .starts_with("2: `t` is above the switch `u`, which")
        );
        assert!(
            fault(&format!("{s}SwitchName=s Nodes=n2\n")).starts_with("2: the switch `s` is defined twice")
        );
        let circle =
            format!("{s}SwitchName=t Switches=u\nSwitchName=u Switches=t\nSwitchName=v Switches=t\n");
        assert!(fault(&circle).contains("is below itself"), "{}", fault(&circle));
        assert!(
            fault("SwitchName=s Nodes=n1 Switches=t\n").starts_with("1: `s` has both hosts and switches")
        );
        assert_eq!(fault("SwitchName=s LinkSpeed=3\n"), "0: no hosts");
        assert!(fault(&format!("{s}SwitchName=t Nodes=n[2-\n")).starts_with("2: host list, column"));
        assert!(
            fault(&format!("{s}SwitchName=t Nodes=n2,n2\n")).starts_with("2: `t` lists the host `n2` twice")
        );
        assert!(fault(&format!("{s}SwitchName=t Nodes=s\n")).contains("a switch elsewhere"));
        assert!(fault(&format!("{s}SwitchName=t Nodes=ALL\n")).starts_with("2: `ALL`"));
    }

    #[test]
    fn only_topology_conf_is_detected() {
        let recognised = |text: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            super::super::recognise(file.path()).ok() == Some(crate::import::Format::SlurmConf)
        };
        assert!(recognised("\n# x\nBlockSizes=2\nBlockName=b Nodes=n1\n"));
        for text in [
            "",
            "SwitchName s",
            "NodeName=n1\nSwitchName=s Nodes=n1\n",
            "BlockSizes=2\n",
            "source,destination\n",
        ] {
            assert!(!recognised(text), "{text}");
        }
    }
}
