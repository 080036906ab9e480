//! opensm loads the exported tables, and packets of a simulated fabric follow them (with `HOPMAP_SYSTEM_TESTS=1`).

use std::path::Path;
use std::process::Command;

use hopmap_model::InputPath;
use hopmap_route::{ExportFormat, ExportParams, Family, Instance, export};
use hopmap_test_support::{program, system_tests};

/// A triangle of switches with one host each.
const NET: &str = "Switch 8 \"S0\"\n[1] \"H1\"[1]\n[3] \"S1\"[3]\n[4] \"S2\"[4]\n\n\
Switch 8 \"S1\"\n[1] \"H2\"[1]\n[3] \"S0\"[3]\n[4] \"S2\"[3]\n\n\
Switch 8 \"S2\"\n[1] \"H3\"[1]\n[3] \"S1\"[4]\n[4] \"S0\"[4]\n\n\
Hca 2 \"H1\"\n[1] \"S0\"[1]\n\nHca 2 \"H2\"\n[1] \"S1\"[1]\n\nHca 2 \"H3\"\n[1] \"S2\"[1]\n";

/// The same, with tables that send from H1 to H3 through S1, which is not the shortest path.
const INSTANCE: &str = r#"
hosts     = [{ name = "H1", performance = 1 }, { name = "H2", performance = 1 }, { name = "H3", performance = 1 }]
switches  = [{ name = "S0", type = 1 }, { name = "S1", type = 1 }, { name = "S2", type = 1 }]
links     = [
    { a = "S0", b = "H1", bandwidth = 1, a_port = 1, b_port = 1 }, { a = "S1", b = "H2", bandwidth = 1, a_port = 1, b_port = 1 },
    { a = "S2", b = "H3", bandwidth = 1, a_port = 1, b_port = 1 }, { a = "S0", b = "S1", bandwidth = 1, a_port = 3, b_port = 3 },
    { a = "S0", b = "S2", bandwidth = 1, a_port = 4, b_port = 4 }, { a = "S1", b = "S2", bandwidth = 1, a_port = 4, b_port = 3 },
]
processes = []
tables    = [
    { switch = "S0", destination = "H3", output = 3 }, { switch = "S1", destination = "H3", output = 4 },
    { switch = "S2", destination = "H3", output = 1 },
]
"#;

/// Runs opensm on the fabric, with the tables of a file if there is one, and prints the route of a packet from H1 to H3.
const SIMULATED: &str = r#"
set -e
cd "$1"
export IBSIM_SERVER_PORT=$((20000 + $$ % 20000)) SIM_HOST=H1 OSM_TMP_DIR=$PWD
so=$(ls /usr/lib/*/umad2sim/libumad2sim.so)
rm -f console
mkfifo console
ibsim -s -N 100 net < console > ibsim.log 2>&1 &
server=$!
exec 3> console
trap 'kill $server' EXIT
for attempt in 1 2 3 4 5 6 7 8 9 10; do
  sleep 0.3
  LD_PRELOAD=$so ibnetdiscover > /dev/null 2>&1 && break
done
LD_PRELOAD=$so opensm -o -l 1 -D 0x43 -f osm.log $2 $3 $4 $5 > opensm.log 2>&1
LD_PRELOAD=$so dump_lfts > lfts
LD_PRELOAD=$so ibnetdiscover > discovered
from=$(sed -n 's/.*"H1[ "].* lid \([0-9]*\) .*/\1/p' discovered | head -1)
to=$(sed -n 's/.*"H3[ "].* lid \([0-9]*\) .*/\1/p' discovered | head -1)
LD_PRELOAD=$so ibtracert "$from" "$to"
"#;

const PROGRAMS: [&str; 5] = ["ibsim", "opensm", "ibnetdiscover", "dump_lfts", "ibtracert"];

fn traced(folder: &Path, options: &[&str]) -> String {
    let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap());
    let shell = Command::new("sh")
        .args(["-c", SIMULATED, "sh"])
        .arg(folder)
        .args(options)
        .env("PATH", path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&shell.stdout).into_owned();
    assert!(shell.status.success(), "{text}\n{}", String::from_utf8_lossy(&shell.stderr));
    text
}

#[test]
fn packets_follow_our_tables() {
    if !system_tests() || PROGRAMS.iter().any(|name| program(name).is_none()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("net"), NET).unwrap();
    let default = traced(folder, &[]);
    assert!(!default.contains("S1"), "the default route should be the shortest: {default}");
    let instance = Instance::parse(INSTANCE.as_bytes(), Path::new("instance")).unwrap();
    let lids = Some(InputPath::new(folder.join("lfts")));
    let params = ExportParams { format: ExportFormat::Lft, family: Family::Cps, lids };
    let file = export::write(&instance.system, &instance.tables.unwrap(), &params).unwrap();
    std::fs::write(folder.join("ours"), &file.text).unwrap();
    assert_ne!(file.text, std::fs::read_to_string(folder.join("lfts")).unwrap());
    let ours = traced(folder, &["-R", "file", "-U", "ours"]);
    assert!(
        ours.contains("S0") && ours.contains("S1") && ours.contains("S2"),
        "{ours}\nnot through S1:\n{default}"
    );
}
