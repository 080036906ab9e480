//! Damages instances, inventories and dumps of forwarding tables: for any bytes, reading returns an error or a consistent result.
//!
//! `HOPMAP_SOAK=1` does many thousands of cases; `HOPMAP_SEED=N` repeats one.

use hopmap_test_support::{Random, damage, has_little_memory, only_seed, seeds, with_extreme_numbers};

use crate::support::body;

const TOML: &str = r#"note = "n"
hosts     = [{ name = "h1", performance = 2, capabilities = ["fpga"], devices = { camera = 1 } }, { name = "h2", performance = 1.5 }]
switches  = [{ name = "A", type = 1 }, { name = "B", type = 2 }]
links     = [
    { a = "A", b = "h1", bandwidth = 4, a_port = 1, b_port = 0 }, { a = "B", b = "h2", bandwidth = 4 },
    { a = "A", b = "B", bandwidth = 3 }, { a = "B", b = "A", bandwidth = 3, a_port = 7, b_port = 9, directed = true },
]
processes = [{ name = "P1", requires = 1, capabilities = ["fpga"], devices = { camera = 1 } }, { name = "P2", requires = 1 }]
streams   = [{ from = "P1", to = "P2", bandwidth = 2 }, { from = "P2", to = "P1", bandwidth = 1 }]
mapping   = { P1 = "h1", P2 = "h2" }
tables    = [{ switch = "A", destination = "h2", output = 0 }, { switch = "B", input = 1, destination = "h2", output = 0 }]
"#;
const JSON: &str = r#"{"hosts": [{"name": "a", "performance": 1}, {"name": "b", "performance": 1}], "switches": [{"name": "s", "type": 1}],
"links": [{"a": "a", "b": "s", "bandwidth": 1}, {"a": "s", "b": "b", "bandwidth": 2}], "processes": [{"name": "p", "requires": 1}],
"streams": [{"from": "p", "to": "p", "bandwidth": 1}], "mapping": null, "expected": {"objective": 1}}"#;
const NETWORK: &str = r#"
hosts     = [{ name = "h1", performance = 1 }, { name = "h2", performance = 1 }]
switches  = [{ name = "A", type = 1 }]
links     = [{ a = "A", b = "h1", bandwidth = 1 }, { a = "A", b = "h2", bandwidth = 1 }]
processes = []
tables    = [{ switch = "A", destination = "h2", output = 1 }]
"#;
const KIT: &str = r#"cable_cost = 0.5
nodes    = [{ name = "cpu", count = 4, performance = 10, ports = 1, bandwidth = 100, capabilities = ["fpga"], devices = { camera = 1 } }]
switches = [{ name = "sw", count = 2, type = 1, ports = 8, bandwidth = 50, cost = 2 }]
boards   = [{ name = "carrier", count = 2, chips = 4, connectors = 2 }]
cables   = 12
"#;
const BOARDS: &str = r#"boards = [{ name = "carrier", count = 3, cost = 1, nodes = [{ name = "cpu0", performance = 1 }, { name = "cpu1", performance = 1 }],
    switches = [{ name = "sw", type = 1 }],
    links = [{ a = "cpu0", b = "sw", bandwidth = 100 }, { a = "cpu1", b = "sw", bandwidth = 100 }],
    connectors = [{ at = "sw", bandwidth = 50 }, { at = "sw", bandwidth = 50, port = 7 }] }]
"#;
const DUMP: &str = "Unicast lids [0-4] of switch Lid 1 guid 0x0000000000200000 ('A'):\n0x0001 000 # Switch portguid 0x0000000000200000: 'A'\n\
0x0002 001 # Channel Adapter portguid 0x0000000000100001: 'h1 HCA-1'\n0x0004 002 : (Channel Adapter portguid 0x0000000000100003: 'h2')\n\
0x0005 002 : (path #2 out of 2: portguid 0x0000000000100003)\n4 lids dumped\n";

/// An intact file of a kind.
fn sample(kind: usize, random: &mut Random) -> Vec<u8> {
    let text = match kind {
        0 => [TOML, JSON][random.below(2)],
        1 => [KIT, BOARDS][random.below(2)],
        _ => DUMP,
    };
    text.as_bytes().to_vec()
}

#[test]
fn intact_files_are_read() {
    for kind in 0..body::KINDS {
        for seed in 0..8 {
            assert!(body::file(kind, &sample(kind, &mut Random(seed)), NETWORK), "{kind}");
        }
    }
}

#[test]
fn damaged_files_give_an_error_or_a_consistent_result() {
    let mut read = [0u32; body::KINDS];
    for seed in seeds(3000, 500_000) {
        let mut random = Random(seed);
        let kind = random.below(body::KINDS);
        let mut bytes = sample(kind, &mut random);
        damage(&mut bytes, &mut random, b"{}[]=,:\"'.-e0129 \nabhPx#()");
        read[kind] += u32::from(body::file(kind, &bytes, NETWORK));
    }
    // Some damage is harmless: notes, bandwidths, names of adapters.
    assert!(only_seed().is_some() || read.iter().all(|&read| read > 0), "{read:?}");
}

#[test]
fn extreme_numbers_give_an_error_or_a_consistent_result_in_little_memory() {
    if !has_little_memory() {
        return;
    }
    for kind in 0..body::KINDS {
        let samples: std::collections::BTreeSet<_> =
            (0..8).map(|seed| sample(kind, &mut Random(seed))).collect();
        for bytes in samples.iter().flat_map(|sample| with_extreme_numbers(sample)) {
            body::file(kind, &bytes, NETWORK);
        }
    }
}
