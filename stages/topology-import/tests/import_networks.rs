//! Fabrics with several networks, and with adapters whose description is no host name: the truth is known, since
//! they are generated.

use hopmap_model::{Paths, SystemGraph};
use hopmap_test_support::given_data;
use hopmap_topology_import::import::{ImportParams, Imported, read};
use proptest::prelude::*;

use crate::support::fabric::Fabric;

fn import(text: &str, change: impl FnOnce(&mut ImportParams)) -> Result<Imported, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fabric");
    std::fs::write(&path, text).unwrap();
    let mut params = ImportParams::of(&path);
    change(&mut params);
    read(&path, &params).map_err(|error| error.to_string())
}

fn given(name: &str, change: impl FnOnce(&mut ImportParams)) -> Option<Result<Imported, String>> {
    let path = given_data()?.join("reports").join(name);
    let mut params = ImportParams::of(&path);
    change(&mut params);
    Some(read(&path, &params).map_err(|error| error.to_string()))
}

/// Hosts by name, with their nodes.
fn by_name(system: &SystemGraph) -> Vec<(&str, u32)> {
    let mut all: Vec<_> =
        system.hosts().map(|(node, ..)| (&*system.nodes[node as usize].name, node)).collect();
    all.sort_unstable();
    all
}

fn hosts(system: &SystemGraph) -> Vec<&str> {
    by_name(system).into_iter().map(|(name, _)| name).collect()
}

/// The links between all pairs of hosts.
fn hops(system: &SystemGraph) -> Vec<Option<u32>> {
    let (paths, all) = (Paths::new(system).unwrap(), by_name(system));
    all.iter()
        .flat_map(|(_, a)| all.iter().map(move |(_, b)| (*a, *b)))
        .map(|(a, b)| paths.hops(a, b))
        .collect()
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn a_storage_network_on_the_same_adapters_is_said_and_can_be_left_out() {
    let Some(whole) = given("ib-compute-and-storage.topo", |_| ()) else { return };
    let notes = whole.unwrap().notes;
    assert!(notes.len() == 1 && notes[0].contains("storage-leaf (6 hosts)"), "{notes:?}");
    for (networks, leave_out) in [(&["leaf1"][..], &[][..]), (&[], &["storage*"]), (&[], &["mlx5_1"])] {
        let imported = given("ib-compute-and-storage.topo", |params| {
            (params.networks, params.leave_out) = (strings(networks), strings(leave_out));
        });
        let system = imported.unwrap().unwrap().system;
        let hops = hops(&system);
        let count = |links| hops.iter().filter(|hops| **hops == Some(links)).count();
        assert_eq!((hosts(&system).len(), count(2), count(4)), (6, 12, 18));
        assert_eq!(system.nodes.len(), 9);
    }
    let error = given("ib-compute-and-storage.topo", |params| params.leave_out = strings(&["stor"]));
    let error = error.unwrap().unwrap_err();
    assert!(error.contains("`leave_out` matches nothing: no switch, host or adapter is `stor`"), "{error}");
}

#[test]
fn adapters_without_a_host_name_are_machines_of_their_own() {
    for (name, expected) in [
        ("ib-localhost.topo", ["host-0c42a10300020010", "host-0c42a10300030020", "n01"]),
        ("ib-default-names.topo", ["host-0c42a10300020010", "host-0c42a10300030020", "n01"]),
    ] {
        let Some(imported) = given(name, |_| ()) else { return };
        let Imported { system, notes } = imported.unwrap();
        assert_eq!(hosts(&system).len(), expected.len(), "{notes:?}");
        assert_eq!(hops(&system)[1..3], [Some(3), Some(3)]);
        assert_eq!(notes.len(), 1, "{notes:?}");
    }
}

/// Two functions of one card have two GUIDs, and one system image GUID.
#[test]
fn adapters_of_one_card_are_one_machine() {
    let mut fabric = Fabric::default();
    let leaf = fabric.switch("leaf");
    for name in ["localhost mlx5_0", "localhost mlx5_1", "n1 mlx5_0", "MT4129 ConnectX7"] {
        fabric.adapter(name, leaf, false);
    }
    let text = fabric.blocks();
    assert_eq!(hosts(&import(&text, |_| ()).unwrap().system).len(), 4);
    let image = |adapter: u64| format!("sysimgguid={:#x}", 0x0c42_a103_0000_0000 + (adapter + 2) * 0x1_0010);
    let text = text.replace(&image(1), &image(0)).replace(&image(3), &image(2));
    assert_eq!(hosts(&import(&text, |_| ()).unwrap().system), ["host-0c42a10300020020", "n1"]);
}

/// Leaves of some hosts each below a spine, in each of some rails; the same hosts, or every other one, on a storage network.
#[derive(Debug, Clone)]
struct Shape {
    leaves: usize,
    width: usize,
    rails: usize,
    /// Leaves of the storage network, with a spine of its own or that of the first rail if there are several.
    storage: usize,
    is_slow: bool,
    shares_spine: bool,
    servers: usize,
    is_of_all: bool,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let sizes = (2..5usize, 2..6usize, 1..5usize, 1..3usize, 0..3usize);
    (sizes, any::<[bool; 3]>()).prop_map(
        |((leaves, width, rails, storage, servers), [is_slow, shares_spine, is_of_all])| Shape {
            leaves,
            width,
            rails,
            storage,
            is_slow,
            shares_spine,
            servers: if is_slow && shares_spine { 0 } else { servers },
            // Two leaves of one host each join none.
            is_of_all: is_of_all || is_slow || leaves * width < 4 * storage,
        },
    )
}

impl Shape {
    fn compute(&self) -> Fabric {
        let mut fabric = Fabric::default();
        for rail in 0..self.rails {
            let spine = fabric.switch(format!("spine{rail}"));
            for leaf in 0..self.leaves {
                let switch = fabric.switch(format!("leaf{rail}.{leaf}"));
                fabric.trunks.push((spine, switch));
                (0..self.width).for_each(|host| {
                    fabric.adapter(format!("n{} mlx5_{rail}", self.width * leaf + host), switch, false);
                });
            }
        }
        fabric
    }

    fn whole(&self) -> Fabric {
        let mut fabric = self.compute();
        let spine = match self.shares_spine {
            true => 0,
            false if self.storage > 1 => fabric.switch("storage-spine"),
            false => usize::MAX,
        };
        let first = fabric.switches.len();
        for leaf in 0..self.storage {
            let switch = fabric.switch(format!("storage-{leaf}"));
            if spine != usize::MAX {
                fabric.trunks.push((spine, switch));
            }
        }
        let step = if self.is_of_all { 1 } else { 2 };
        for host in (0..self.width * self.leaves).step_by(step) {
            fabric.adapter(format!("n{host} mlx5_9"), first + host / step % self.storage, self.is_slow);
        }
        (0..self.servers).for_each(|server| {
            fabric.adapter(format!("fs{server} mlx5_0"), first, self.is_slow);
            fabric.adapter(format!("fs{server} mlx5_1"), first, self.is_slow);
        });
        fabric
    }
}

#[test]
fn hosts_that_no_path_joins_are_said() {
    let mut fabric = Fabric::default();
    for (name, count) in [("c", 1), ("b", 2), ("a", 3)] {
        let leaf = fabric.switch(format!("leaf-{name}"));
        (0..count).for_each(|host| fabric.adapter(format!("{name}{host} mlx5_0"), leaf, false));
    }
    let texts = |fabric: &Fabric| {
        [fabric.blocks(), fabric.csv(true), fabric.csv(false), fabric.json(false), fabric.slurm()]
    };
    for text in texts(&fabric) {
        let notes = import(&text, |_| ()).unwrap().notes;
        let said = "parts that no path joins, so that they cannot communicate: 3, by hosts 3 with `a0`; 2 with `b0`; 1 with `c0`";
        assert!(notes.iter().any(|note| note == said), "{notes:?}");
    }
    // Hosts do not forward from one network to another.
    (0..2).for_each(|leaf| fabric.adapter(format!("a0 mlx5_{}", leaf + 1), leaf, false));
    for text in texts(&fabric) {
        let notes = import(&text, |_| ()).unwrap().notes;
        assert!(notes.iter().any(|note| note.contains("no network in common: `")), "{notes:?}");
    }
}

/// An accelerator's network is faster, but does not join all hosts.
#[test]
fn a_slower_network_stays_if_only_it_joins_the_hosts() {
    let mut fabric = Fabric::default();
    let leaf = fabric.switch("leaf");
    for host in 0..8 {
        let domain =
            if host % 4 == 0 { fabric.switch(format!("nvlink{host}")) } else { fabric.switches.len() - 1 };
        fabric.adapter(format!("n{host} mlx5_0"), leaf, true);
        fabric.adapter(format!("n{host} mlx5_1"), domain, false);
    }
    let Imported { system, notes } = import(&fabric.csv(true), |_| ()).unwrap();
    assert_eq!(system.links.len(), 32, "{notes:?}");
    assert!(notes[0].starts_with("several networks"), "{notes:?}");
}

#[test]
fn switches_are_left_out_by_their_guids() {
    let mut fabric = Fabric::default();
    let leaves = ["s-leaf", "other"].map(|name| fabric.switch(name));
    for (host, leaf) in (0..3).flat_map(|host| leaves.map(|leaf| (host, leaf))) {
        fabric.adapter(format!("n{host} mlx5_{leaf}"), leaf, false);
    }
    let guid = format!("{:016x}", Fabric::guid(1));
    let short = guid.trim_start_matches('0');
    let grouped = format!("{}:{}:{}:{}", &guid[..4], &guid[4..8], &guid[8..12], &guid[12..]);
    let forms = [
        format!("0x{guid}"),
        format!("0x{}", short.to_uppercase()),
        format!("S-{guid}"),
        guid.clone(),
        grouped,
    ];
    for form in forms.into_iter().chain([format!("0x{}*", &guid[..15]), "other".to_owned()]) {
        let system = import(&fabric.blocks(), |params| params.leave_out = vec![form.clone()]).unwrap().system;
        assert_eq!(system.nodes.last().map(|node| &*node.name), Some("s-leaf"), "{form}");
        assert_eq!((system.nodes.len(), system.links.len()), (4, 6), "{form}");
    }
    let system = import(&fabric.blocks(), |params| params.leave_out = strings(&["s-*"])).unwrap().system;
    assert_eq!(system.nodes.last().map(|node| &*node.name), Some("other"));
}

#[test]
fn short_and_full_names_are_one_machine_unless_devices_contradict() {
    for (names, hosts, said) in [
        (&["n1.x mlx5_0", "n1 mlx5_1"][..], 1, false),
        (&["n1 mlx5_0", "n1", "n2", "n2"], 2, false),
        (&["n1.x mlx5_0", "n1 mlx5_0"], 2, true),
        (&["n1.x mlx5_0", "n1.y mlx5_1", "n1 mlx5_2"], 3, true),
    ] {
        let mut fabric = Fabric::default();
        let leaf = fabric.switch("leaf");
        names.iter().for_each(|name| fabric.adapter(*name, leaf, false));
        let Imported { system, notes } = import(&fabric.blocks(), |_| ()).unwrap();
        assert_eq!((system.hosts().count(), !notes.is_empty()), (hosts, said), "{names:?}: {notes:?}");
    }
}

#[test]
fn every_host_has_its_number_of_slots() {
    let mut fabric = Fabric::default();
    let leaf = fabric.switch("leaf");
    (0..3).for_each(|host| fabric.adapter(format!("n{host} mlx5_0"), leaf, false));
    let read = |slots: &str| import(&fabric.blocks(), |params| params.slots = slots.parse().unwrap());
    let slots = |text| read(text).unwrap().system.hosts().map(|(.., slots)| slots).collect::<Vec<_>>();
    assert_eq!([slots("8"), slots("8,4(x2)")], [[8, 8, 8], [8, 4, 4]]);
    assert_eq!(read("8,4").unwrap_err(), "`slots` has 2 numbers, but the machine topology has 3 hosts");
}

#[test]
fn a_report_with_more_links_than_it_states_is_said() {
    let mut fabric = Fabric::default();
    let leaf = fabric.switch("leaf");
    (0..3).for_each(|host| fabric.adapter(format!("n{host} hfi1_0"), leaf, false));
    let text = fabric.report().replace("3 Links", "2 Links");
    assert_eq!(
        import(&text, |_| ()).unwrap().notes,
        ["line 2 states 2 links, but 3 are listed: all of them are read"]
    );
}

/// The node description format `%h` of rdma-ndd: the same text on every card of a host.
#[test]
fn hosts_whose_cards_have_the_bare_name_are_not_taken_apart() {
    let mut fabric = Fabric::default();
    let spine = fabric.switch("spine");
    for rail in 0..4 {
        let leaf = fabric.switch(format!("leaf {rail}"));
        fabric.trunks.push((spine, leaf));
        (0..3).for_each(|host| fabric.adapter(format!("dgx{host}"), leaf, false));
    }
    for text in [fabric.blocks(), fabric.report()] {
        assert_eq!(hosts(&import(&text, |_| ()).unwrap().system), ["dgx0", "dgx1", "dgx2"]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hosts_are_as_far_as_in_the_network_of_the_fastest_adapters(shape in shapes()) {
        let (compute, whole) = (shape.compute(), shape.whole());
        let plain = import(&compute.blocks(), |_| ()).unwrap();
        prop_assert!(plain.notes.is_empty(), "{:?}", plain.notes);
        prop_assert_eq!(plain.system.links.len(), 2 * (compute.adapters.len() + compute.trunks.len()));
        let only_switches = |in_lines, adapter: &str| {
            let text: String = whole.link_info(in_lines);
            format!("{}\n", text.split(adapter).next().unwrap_or_default())
        };
        let adapter = format!("\n0x{:016x}", Fabric::guid(whole.switches.len()));
        let only_switches = [only_switches(false, "\nCA: "), only_switches(true, &adapter)];
        let fabrics = [whole.blocks(), whole.report(), whole.link_info(false), whole.link_info(true)];
        let fabrics = fabrics.into_iter().chain(only_switches);
        let rated = fabrics.chain([whole.csv(true), whole.json(true)]).map(|text| (text, true));
        let unrated = [whole.csv(false), whole.json(false), whole.slurm()].map(|text| (text, false));
        for (text, has_rates) in rated.chain(unrated) {
            let all = import(&text, |_| ()).unwrap();
            let everything = import(&text, |params| params.networks = strings(&["*"])).unwrap().system;
            let kept = match shape.is_slow && has_rates {
                true => {
                    prop_assert_eq!(everything.links.len(), 2 * (whole.adapters.len() + whole.trunks.len()));
                    let without_first = |text: &str| {
                        let first = hosts(&plain.system)[0];
                        import(text, |params| params.leave_out = strings(&[first])).unwrap().system
                    };
                    let (fewer, expected) = (without_first(&text), without_first(&compute.blocks()));
                    prop_assert_eq!((hosts(&fewer), hops(&fewer)), (hosts(&expected), hops(&expected)));
                    all
                }
                false => {
                    // Rates do not tell which network is which.
                    let said = |notes: &[String]| notes.iter().any(|note| note.contains("storage-"));
                    prop_assert!(said(&all.notes), "{:?}", all.notes);
                    if shape.shares_spine {
                        let leaves = import(&text, |params| params.networks = strings(&["leaf*"])).unwrap();
                        prop_assert!(said(&leaves.notes), "{:?}", leaves.notes);
                    }
                    prop_assert_eq!(&all.system, &everything);
                    // What it suggests can be pasted, and leaves out storage or compute.
                    let notes = all.notes.join(" ");
                    let lists: Vec<Vec<String>> = notes.split("`leave_out = [").skip(1)
                        .map(|list| serde_json::from_str(&format!("[{}]", list.split_once(']').unwrap().0)).unwrap())
                        .collect();
                    prop_assert!(lists.len() > 1, "{}", notes);
                    let is_storage = |list: &Vec<String>| list.iter().all(|text| text.starts_with("storage-"));
                    prop_assert!(lists.iter().any(is_storage) || lists.len() == 3, "{}", notes);
                    for list in lists {
                        import(&text, |params| params.leave_out = list).unwrap();
                    }
                    let servers = shape.servers > 0;
                    let patterns = if servers { &["storage-*", "fs*"][..] } else { &["storage-*"] };
                    import(&text, |params| params.leave_out = strings(patterns)).unwrap()
                }
            };
            prop_assert_eq!(hosts(&kept.system), hosts(&plain.system), "{:?}", kept.notes);
            prop_assert_eq!(hops(&kept.system), hops(&plain.system), "{:?}", kept.notes);
            prop_assert!(kept.notes.iter().any(|note| note.contains("left out")), "{:?}", kept.notes);
        }
    }

    /// Adapters are last: some of them and all switches are listed.
    #[test]
    fn listings_of_links_that_are_cut_are_said(shape in shapes(), in_lines: bool, cut in 850..980usize) {
        let compute = shape.compute();
        for text in [compute.link_info(in_lines), compute.blocks()] {
            let end = text.len() * cut / 1000;
            let refused = import(&text[..end], |_| ()).unwrap_err();
            let words = ["truncated", "cut off", "not listed"];
            prop_assert!(words.iter().any(|word| refused.contains(word)), "{}", refused);
            let read = import(&text[..end], |params| params.allow_truncated = true).unwrap();
            prop_assert!(read.notes.iter().any(|note| note.contains("`allow_truncated` permits")), "{:?}", read.notes);
        }
    }

    #[test]
    fn one_slow_cable_takes_no_rail_apart(leaves in 2..5usize, rails in 2..5usize, slow in 0..16usize) {
        let shape = Shape { leaves, rails, storage: 1, is_slow: false, shares_spine: false, servers: 0, width: 2, is_of_all: true };
        let mut fabric = shape.compute();
        let count = fabric.adapters.len();
        fabric.adapters[slow % count].is_slow = true;
        let Imported { system, notes } = import(&fabric.blocks(), |_| ()).unwrap();
        prop_assert_eq!(system.links.len(), 2 * (count + fabric.trunks.len()), "{:?}", notes);
    }

    /// Rails with a cable that is missing, and servers with two of the leaves.
    #[test]
    fn rails_are_no_several_networks(shape in shapes(), servers in 0..3usize, missing: prop::sample::Index) {
        let mut fabric = Shape { width: 5 * shape.width, ..shape }.compute();
        fabric.adapters.remove(missing.index(fabric.adapters.len()));
        for (server, leaf) in (0..servers).flat_map(|server| [(server, 1), (server, 2)]) {
            fabric.adapter(format!("fs{server} mlx5_{leaf}"), leaf, false);
        }
        for text in [fabric.blocks(), fabric.csv(true)] {
            let notes = import(&text, |_| ()).unwrap().notes;
            prop_assert!(notes.iter().all(|note| !note.contains("several networks")), "{:?}", notes);
        }
    }

    /// Machines of one to three cards on different leaves, some of which have no name.
    #[test]
    fn machines_are_never_joined_by_what_is_no_name(
        machines in prop::collection::vec((1..4usize, 0..14usize), 2..8),
    ) {
        let mut fabric = Fabric::default();
        let spine = fabric.switch("spine");
        let mut expected = 0;
        for (number, &(cards, kind)) in machines.iter().enumerate() {
            expected += if kind < 4 { 1 } else { cards };
            for card in 0..cards {
                let leaf = fabric.switch(format!("leaf {number} {card}"));
                fabric.trunks.push((spine, leaf));
                let description = match kind {
                    0 => format!("n{number} mlx5_{card}"),
                    1 => format!("n{number} HCA-{}", card + 1),
                    2 => format!("n{number}{} hfi1_{card}", if card == 1 { "" } else { ".cluster" }),
                    3 => format!("n{number}-ib mlx4_{card} (rail {card})"),
                    4 => format!("localhost mlx5_{card}"),
                    5 => format!("(none) HCA-{card}"),
                    6 => "MT4123 ConnectX6   Mellanox Technologies".to_owned(),
                    7 => format!("host mlx5_{card}"),
                    8 => String::new(),
                    9 => format!("localhost.localdomain mlx5_{card}"),
                    10 => format!("Voltaire HCA {card}"),
                    11 => "BlueField-3".to_owned(),
                    12 => format!("mlx5_{card}"),
                    _ => format!("unknown hfi1_{card}"),
                };
                fabric.adapter(description, leaf, false);
            }
        }
        for text in [fabric.blocks(), fabric.report(), fabric.link_info(false), fabric.link_info(true)] {
            let Imported { system, notes } = import(&text, |_| ()).unwrap();
            prop_assert_eq!(hosts(&system).len(), expected, "{:?}", notes);
            prop_assert_eq!(notes.iter().any(|note| note.contains("no host name")), machines.iter().any(|(_, kind)| *kind > 3));
        }
    }

    /// A name that is on all machines, as of an image that all were started from.
    #[test]
    fn a_name_of_several_machines_is_none(count in 2..6usize, cards in 1..3usize, text in 0..3usize) {
        let mut fabric = Fabric::default();
        let leaf = fabric.switch("leaf");
        for card in (0..count).flat_map(|_| 0..cards) {
            let description = match text {
                0 => format!("compute mlx5_{card}"),
                1 => "compute".to_owned(),
                _ => format!("Blade Server Adapter {card}"),
            };
            fabric.adapter(description, leaf, false);
        }
        for text in [fabric.blocks(), fabric.report()] {
            prop_assert_eq!(hosts(&import(&text, |_| ()).unwrap().system).len(), count * cards);
        }
    }
}
