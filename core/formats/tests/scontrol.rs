//! Compares host lists with `scontrol`, where Slurm is installed. Requires `HOPMAP_SYSTEM_TESTS=1`.

use std::path::Path;
use std::process::Command;

use hopmap_formats::host_list::{compress, expand};
use hopmap_test_support::system_tests;

/// Lists that `scontrol` accepts; it does not accept text after a bracket.
const LISTS: &[&str] = &[
    "node[001-128,200-210]",
    "n[1-3],x[01-03,10]",
    "r[1-2]n[01-03]",
    "a[1-3]b[1-2]c[1-2]",
    "a[1-2]b[1-2]c[1-2]d[1-2]e[3,1]",
    "a[1-2]3[4-5]",
    "[1-3]",
    "[1-2][3-4]",
    "a[3,1],a3,b,a3",
    "a[8-0010],a[098-102]",
    "rack-1.node[00-9],login1",
    "a,,b,",
    "n[1,1,2-3,03]",
    "x1y2z[9-11]",
];

fn scontrol(folder: &Path, what: &str, list: &str) -> String {
    let configuration = folder.join("slurm.conf");
    std::fs::write(&configuration, "ClusterName=test\nSlurmctldHost=localhost\nNodeName=n1\n").unwrap();
    let mut command = Command::new("scontrol");
    let output = command.env("SLURM_CONF", configuration).args(["show", what, list]).output().unwrap();
    assert!(output.status.success(), "{list}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn lists_are_read_and_written_as_scontrol_does() {
    if !system_tests() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for list in LISTS {
        let names = expand(list).unwrap();
        let expected = scontrol(folder.path(), "hostnames", list);
        assert_eq!(names, expected.lines().collect::<Vec<_>>(), "{list}");
        assert_eq!(
            compress(&names),
            scontrol(folder.path(), "hostlist", &names.join(",")).trim_end(),
            "{list}"
        );
        assert_eq!(scontrol(folder.path(), "hostnames", &compress(&names)), expected, "{list}");
    }
}
