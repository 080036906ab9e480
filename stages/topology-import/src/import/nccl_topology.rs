//! The GPUs of a host: the XML that NCCL writes with `NCCL_TOPO_DUMP_FILE`.
//!
//! `<system>` has a `<cpu>` per NUMA node, below them `<pci>` bridges and devices, and in these a `<gpu>` with its
//! `<nvlink>` connections to other GPUs or to switches (`src/graph/xml.cc` of NCCL). Connections are compared as in
//! `nvidia-smi topo -m`: more `NVLink` connections first, then one bridge, several bridges, a NUMA node, and the host.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hopmap_model::{Link, Node, to_u32};

use super::finish::{Parts, machine};
use super::format::{Sample, malformed, some};
use super::nvidia_smi::{self, Connection};
use super::xml::{Element, Xml, first_element};
use super::{ImportParams, Imported, Result};

const HELP: &str =
    "give the file that NCCL writes with `NCCL_TOPO_DUMP_FILE`, with a `<gpu>` in the `<pci>` of every GPU";
/// Class of PCI devices that are bridges of `NVSwitch`.
const SWITCH: &str = "0x068000";

pub(super) fn recognises(sample: &Sample) -> bool {
    sample.text().is_some_and(|text| first_element(text) == Some("system") && text.contains("<cpu "))
}

/// A GPU.
struct Gpu {
    bus: String,
    /// The NUMA node and the bridges above it, by their places in the file.
    above: Vec<usize>,
    /// Connections to other GPUs by bus id.
    links: BTreeMap<String, u32>,
    /// Connections to switches.
    to_switches: u32,
}

pub(super) fn read(text: &str, params: &ImportParams) -> Result<Imported> {
    let xml = Xml::parse(text)?;
    let root = xml.root();
    let mut hosts: Vec<(&str, Vec<(u32, Gpu)>)> = Vec::new();
    for cpu in root.all("cpu") {
        let hash = cpu.get("host_hash").unwrap_or_default();
        let index = hosts.iter().position(|(other, _)| *other == hash).unwrap_or_else(|| {
            hosts.push((hash, Vec::new()));
            hosts.len() - 1
        });
        collect(cpu, &mut vec![cpu.place()], &mut hosts[index].1)?;
    }
    hosts.retain(|(_, gpus)| !gpus.is_empty());
    let mut all = Vec::with_capacity(hosts.len());
    for (hash, mut gpus) in hosts {
        gpus.sort_by_key(|(device, _)| *device);
        if let Some(pair) = gpus.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(malformed(None, format!("GPU {} is in the file twice", pair[0].0), HELP));
        }
        all.push((hash, gpus.into_iter().map(|(_, gpu)| gpu).collect::<Vec<Gpu>>()));
    }
    match all.as_slice() {
        [] => nvidia_smi::host(&[], "", HELP, params),
        [(_, gpus)] => nvidia_smi::host(&rows(gpus), "the file does not name the host", HELP, params),
        hosts => joined(hosts, params),
    }
}

fn rows(gpus: &[Gpu]) -> Vec<Vec<Connection>> {
    gpus.iter().map(|one| gpus.iter().map(|other| connection(one, other)).collect()).collect()
}

/// Hosts whose GPUs share switches of `NVLink`: NCCL writes all of such a domain into one file (`ncclTopoFuseXml`).
fn joined(hosts: &[(&str, Vec<Gpu>)], params: &ImportParams) -> Result<Imported> {
    let names: Vec<&str> = hosts.iter().map(|(hash, _)| *hash).collect();
    let is_joined = hosts.iter().flat_map(|(_, gpus)| gpus).all(|gpu| gpu.to_switches > 0);
    if !is_joined || names.contains(&"") {
        let problem = format!("GPUs of several hosts without a common switch of NVLink: {}", some(&names));
        let help = "give the file of one host as `every_host`, and the network of the hosts as `path`; \
                    NCCL writes one host with `NCCL_MNNVL_ENABLE=0`";
        return Err(malformed(None, problem, help));
    }
    let mut notes =
        vec![format!("hosts joined by NVLink, with their `host_hash` for a name: {}", some(&names))];
    let mut parts = Parts::default();
    let switch = to_u32(hosts.len());
    for (host, (name, gpus)) in (0..).zip(hosts) {
        parts.nodes.push(Node::host(*name));
        parts.links.extend([Link::new(host, switch), Link::new(switch, host)]);
        parts.shapes.insert((*name).to_owned(), nvidia_smi::shape(&rows(gpus), HELP, &mut notes)?);
    }
    parts.nodes.push(Node::switch("nvlink"));
    Ok(Imported { system: machine(parts, params)?, notes })
}

/// Collects the GPUs below an element.
fn collect(element: Element<'_>, above: &mut Vec<usize>, gpus: &mut Vec<(u32, Gpu)>) -> Result<()> {
    for pci in element.all("pci") {
        if let Some(gpu) = pci.all("gpu").next() {
            let device = gpu.need("dev")?;
            let device =
                device.parse().map_err(|_| gpu.wrong(format!("`dev=\"{device}\"` is not a number"), HELP))?;
            gpus.push((device, self::gpu(pci.need("busid")?, gpu, above)?));
        }
        above.push(pci.place());
        collect(pci, above, gpus)?;
        above.pop();
    }
    Ok(())
}

fn gpu(bus: &str, gpu: Element<'_>, above: &[usize]) -> Result<Gpu> {
    let (mut links, mut to_switches) = (BTreeMap::new(), 0u32);
    for link in gpu.all("nvlink") {
        let count = link.need("count")?;
        let count: u32 =
            count.parse().ok().filter(|count| (1..=999).contains(count)).ok_or_else(|| {
                link.wrong(format!("`count=\"{count}\"` is not a number from 1 to 999"), HELP)
            })?;
        match link.get("tclass") {
            Some(SWITCH) => to_switches = to_switches.saturating_add(count),
            _ => *links.entry(link.need("target")?.to_ascii_lowercase()).or_default() += count,
        }
    }
    Ok(Gpu { bus: bus.to_ascii_lowercase(), above: above.to_vec(), links, to_switches })
}

/// The best connection of two GPUs.
fn connection(one: &Gpu, other: &Gpu) -> Connection {
    if one.bus == other.bus {
        return Connection::Same;
    }
    let direct = one.links.get(&other.bus).copied().unwrap_or(0);
    match direct.max(one.to_switches.min(other.to_switches)) {
        0 => {}
        links => return Connection::NvLink(Reverse(links)),
    }
    let common = one.above.iter().zip(&other.above).take_while(|(one, other)| one == other).count();
    match common {
        0 => Connection::System,
        1 => Connection::HostBridge,
        _ if common == one.above.len() && common == other.above.len() => Connection::Bridge,
        _ => Connection::Bridges,
    }
}

#[cfg(test)]
mod tests {
    use hopmap_model::CostModel;

    use super::*;
    use crate::import::Format;
    use crate::import::samples::{import, is_recognised};

    /// Four GPUs: two below a bridge each, on two NUMA nodes.
    fn topology(links: [&str; 4]) -> String {
        let gpu = |device: usize| {
            format!(
                "<pci busid=\"0000:0{device}:00.0\" class=\"0x030200\"><gpu dev=\"{device}\" sm=\"90\" rank=\"{device}\">{}</gpu></pci>",
                links[device]
            )
        };
        let cpu = |number: usize| {
            format!(
                "<cpu numaid=\"{number}\" arch=\"x86_64\"><pci busid=\"0000:1{number}:00.0\" class=\"0x060400\">{}{}</pci></cpu>",
                gpu(2 * number),
                gpu(2 * number + 1)
            )
        };
        format!("<system version=\"1\">\n{}\n{}\n</system>\n", cpu(0), cpu(1))
    }

    fn levels(text: &str) -> Vec<Vec<u32>> {
        assert!(is_recognised(Format::NcclTopology, text));
        let system = import(text).unwrap().system;
        let CostModel::Levels(levels) = &system.cost else { panic!("no levels") };
        levels.groups.clone()
    }

    #[test]
    fn bridges_and_numa_nodes_are_levels() {
        assert_eq!(levels(&topology([""; 4])), [[0, 0, 1, 1], [0, 0, 0, 0]]);
        // Two words of a shell made the file one that is not XML.
        let notes = import(&(topology([""; 4]) + "$\nsome words\n")).unwrap().notes;
        assert_eq!(notes.last().unwrap(), "lines of other programs, skipped: 2, the first in line 5: `$`");
    }

    #[test]
    fn a_switch_connects_all_gpus_alike() {
        let link = "<nvlink target=\"0000:c4:00.0\" count=\"12\" tclass=\"0x068000\"/>";
        assert_eq!(levels(&topology([link; 4])), [[0, 0, 0, 0]]);
    }

    #[test]
    fn direct_links_come_before_bridges() {
        let to = |device: usize| {
            format!("<nvlink target=\"0000:0{device}:00.0\" count=\"4\" tclass=\"0x030200\"/>")
        };
        let links = [to(2), to(3), to(0), to(1)];
        let text = topology([&links[0], &links[1], &links[2], &links[3]]);
        assert_eq!(levels(&text), [[0, 1, 0, 1], [0, 0, 0, 0]]);
    }

    /// They were one host, or "GPU 0 is in the file twice". Elements on one line are different ones.
    #[test]
    fn hosts_of_one_domain_are_joined() {
        let link = "<nvlink target=\"0000:c4:00.0\" count=\"18\" tclass=\"0x068000\"/>";
        let cpus = |hash: &str, link: &str| {
            let one = topology([link; 4])
                .replace("<cpu ", &format!("<cpu host_hash=\"{hash}\" "))
                .replace('\n', "");
            one.replace("<system version=\"1\">", "").replace("</system>", "")
        };
        let both = |link: &str| {
            format!("<system version=\"1\">{}{}</system>", cpus("0xa2", link), cpus("0xa1", link))
        };
        let imported = import(&both(link)).unwrap();
        let names: Vec<_> = imported.system.nodes.iter().map(|node| &*node.name).collect();
        assert_eq!((names, imported.system.slots.len()), (vec!["0xa2", "0xa1", "nvlink"], 8));
        assert_eq!(crate::import::hops(&imported.system, "0xa1", "0xa2"), Some(2));
        assert!(imported.notes[0].contains("2 (`0xa2`, `0xa1`)"), "{:?}", imported.notes);
        let error = import(&both("")).unwrap_err().to_string();
        assert!(error.ends_with("without a common switch of NVLink: 2 (`0xa2`, `0xa1`)"), "{error}");
        let one = format!("<system version=\"1\">{}</system>", cpus("0xa1", ""));
        assert_eq!(levels(&one), [[0, 0, 1, 1], [0, 0, 0, 0]]);
    }

    #[test]
    fn the_two_hosts_of_a_report_are_read() {
        let Some(data) = hopmap_test_support::given_data() else { return };
        let path = data.join("reports/nccl-two-hosts.xml");
        let system = crate::import::read(&path, &ImportParams::default()).unwrap().system;
        assert_eq!(system.hosts().map(|(_, _, slots)| slots).collect::<Vec<_>>(), [4, 4]);
    }

    #[test]
    fn damaged_files_are_one_message() {
        let refused = |text: &str| import(text).unwrap_err().to_string();
        assert!(refused("<system version=\"1\"><cpu numaid=\"0\"/></system>").ends_with("0 GPUs"));
        let twice = topology([""; 4]).replace("dev=\"1\"", "dev=\"0\"");
        assert!(refused(&twice).ends_with("GPU 0 is in the file twice"), "{}", refused(&twice));
        let link = "<nvlink target=\"x\" count=\"-1\" tclass=\"0x030200\"/>";
        let wrong = refused(&topology([link, "", "", ""]));
        assert!(wrong.contains("`count=\"-1\"` is not a number from 1 to 999"), "{wrong}");
    }
}
