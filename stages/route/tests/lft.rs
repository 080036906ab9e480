//! InfiniBand forwarding tables are those of the dump with our entries instead of its own.

use std::path::Path;

use hopmap_model::InputPath;
use hopmap_route::{ExportFormat, ExportParams, Family, Instance, export};

const NETWORK: &str = r#"
hosts     = [{ name = "h1", performance = 1 }, { name = "h2", performance = 1 }]
switches  = [{ name = "swA", type = 1 }, { name = "swB", type = 1 }]
links     = [
    { a = "swA", b = "h1", bandwidth = 1, a_port = 1, b_port = 1 }, { a = "swB", b = "h2", bandwidth = 1, a_port = 1, b_port = 1 },
    { a = "swA", b = "swB", bandwidth = 1, a_port = 2, b_port = 2 }, { a = "swA", b = "swB", bandwidth = 1, a_port = 3, b_port = 3 },
]
processes = []
tables    = [
    { switch = "swA", destination = "h2", output = 3 }, { switch = "swB", destination = "h2", output = 1 },
]
"#;

const DUMP: &str = "\
Unicast lids [0-4] of switch Lid 1 guid 0x0000000000200000 ('swA'):
0x0001 000 # Switch portguid 0x0000000000200000: 'swA'
0x0002 001 # Channel Adapter portguid 0x0000000000100001: 'h1 HCA-1'
0x0004 002 # Channel Adapter portguid 0x0000000000100003: 'h2 HCA-1'
3 lids dumped
Unicast lids [0-4] of switch Lid 3 guid 0x0000000000200001 ('swB'):
0x0004 002 # Channel Adapter portguid 0x0000000000100003: 'h2 HCA-1'
1 lids dumped
";

fn written(network: &str, dump: &str) -> Result<String, String> {
    let instance = Instance::parse(network.as_bytes(), Path::new("network")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lfts.dump");
    std::fs::write(&file, dump).unwrap();
    let params =
        ExportParams { format: ExportFormat::Lft, family: Family::Cps, lids: Some(InputPath::new(file)) };
    let text = export::write(&instance.system, &instance.tables.unwrap(), &params);
    text.map(|file| file.text).map_err(|error| error.to_string())
}

#[test]
fn entries_replace_those_of_the_dump() {
    let expected = DUMP.replace(
        "0x0004 002 # Channel Adapter portguid 0x0000000000100003: 'h2 HCA-1'\n3",
        "0x0004 003 # Channel Adapter portguid 0x0000000000100003: 'h2 HCA-1'\n3",
    );
    let expected = expected.replace("0x0004 002", "0x0004 001");
    assert_eq!(written(NETWORK, DUMP).unwrap(), expected);
}

#[test]
fn a_dump_of_another_network_is_rejected() {
    let refused = |from: &str, to: &str| written(NETWORK, &DUMP.replace(from, to)).unwrap_err();
    assert!(refused("'swB'", "'swX'").contains("line 6: this switch is not in the machine"));
    assert!(refused("'h2 HCA-1'", "'h9 HCA-1'").contains("no LID for host `h2`"));
    assert!(refused("0x0004 002", "0x0004 port").contains("line 4: an entry has a LID and a port"));
    let first = &DUMP[..DUMP.find("Unicast lids [0-4] of switch Lid 3").unwrap()];
    assert!(written(NETWORK, first).unwrap_err().contains("does not contain switch `swB`"));
    assert!(written(NETWORK, "").unwrap_err().contains("the dump contains no switch"));
}
