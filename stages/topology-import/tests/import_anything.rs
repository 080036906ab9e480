//! Every reader survives files of all other formats and empty files.

use hopmap_topology_import::import::Format;

use crate::support::description;

const TEXTS: &[&str] = &[
    "",
    "\n",
    "\u{feff}",
    "1\n",
    "0\n0\n",
    "{}",
    "[]",
    "null",
    "<?xml version=\"1.0\"?><topology version=\"2.0\"/>",
    "<platform version=\"4.1\"/>",
    "tleaf 1 2 3",
    "deco 0 0 0",
    "4:16:8\n1:10:100\n",
    "SwitchName=s0 Nodes=n[0-3]\n",
    "- topology: t\n  tree:\n    switches: []\n",
    "processors 0\n",
    "CDF\x02\0\0\0\0\0\0\0\0",
    "source,destination\na,b\n",
    "0,1\n1,0\n",
    "START mpiGraph v1.5\nEND mpiGraph\n",
    "Switch\t18446744073709551615 \"S-0000000000000001\"\t\t# \"\"\n",
    "torus3D 4294967295 4294967295 4294967295",
    "99999999999999999999",
];

#[test]
fn every_reader_survives_files_of_other_formats() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("machine");
    for format in Format::ALL {
        for text in TEXTS {
            std::fs::write(&file, text).unwrap();
            description::description(&file, *format);
        }
        description::description(folder.path(), *format);
    }
}
