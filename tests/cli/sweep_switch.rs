//! Sweeps that a parameter of the pipeline makes smaller.

use crate::sandbox::Sandbox;

/// A parameter is a switch: its value lists what is excluded, possibly nothing.
#[test]
fn a_parameter_may_leave_an_exclusion_without_work() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "p.toml",
        "name = \"p\"\n[params]\neffort = \"full\"\nseeds = \"1..3\"\n[stages.a]\nuses = \"instance/random\"\nwith = { n = 16 }\n\
         matrix = { effort = [\"${params.effort}\"], seed = \"${params.seeds}\" }\n\
         exclude = [{ effort = \"sample\", seed = \"2..\" }, { seed = \"4..\" }]\n",
    );
    let cells = |parameters: &[&str]| {
        let plan = sandbox.stdout(&[&["plan", "p.toml", "--all"], parameters].concat());
        plan.lines().filter(|line| line.contains(" a[") || line.contains(" a ")).count()
    };
    assert_eq!(cells(&[]), 3);
    assert_eq!(cells(&["-p", "seeds=1..9"]), 3);
    assert_eq!(cells(&["-p", "effort=sample"]), 1);
}

/// Cells pair up by the switch too, so that one that the stage before does not know is refused.
#[test]
fn a_switch_has_the_values_that_the_stage_before_it_has() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "p.toml",
        "name = \"p\"\n[params]\neffort = \"full\"\n[stages.a]\nuses = \"instance/random\"\n\
         matrix = { n = [16, 32], effort = [\"full\", \"sample\"] }\nexclude = [{ effort = \"sample\", n = 32 }]\n\
         [stages.b]\nuses = \"map/random\"\nneeds = { task-graph = \"a.task-graph\", system = \"machine\" }\n\
         matrix = { n = [16, 32], effort = [\"${params.effort}\"] }\nexclude = [{ effort = \"sample\", n = 32 }]\n\
         [stages.machine]\nuses = \"topology/synthetic\"\nwith = { shape = \"tree:4x8\" }\n",
    );
    let cells = |effort: &str| {
        let plan = sandbox.stdout(&["plan", "p.toml", "--all", "-p", effort]);
        plan.lines().filter(|line| line.contains(" b[") || line.contains(" b ")).count()
    };
    assert_eq!((cells("effort=full"), cells("effort=sample")), (2, 1));
    let wrong = sandbox.output(&["plan", "p.toml", "-p", "effort=sampel"]);
    assert_eq!(wrong.status.code(), Some(2));
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert!(said.contains("effort=sampel") && said.contains("cells pair up by equal matrix keys"), "{said}");
}
