//! Pipelines that come with hopmap and end in a table of many runs.

use std::collections::BTreeSet;

use crate::sandbox::{Sandbox, project, query_program};

/// A pipeline of `pipelines/` on the sample traces, and what it prints.
fn seen(sandbox: &Sandbox, pipeline: &str, parameters: &[&str]) -> String {
    let file = project().join("pipelines").join(pipeline);
    let out = format!("out={}", sandbox.path().join("out").display());
    let run = ["run", file.to_str().unwrap(), "--store", "store", "--report", "report.html", "-p", &out];
    let parameters: Vec<&str> = parameters.iter().flat_map(|&parameter| ["-p", parameter]).collect();
    sandbox.stdout(&[&run, &parameters[..]].concat())
}

#[test]
fn a_batch_ends_in_one_table() {
    if query_program().is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    let shown = seen(&sandbox, "batch.toml", &[]);
    insta::assert_snapshot!(sandbox.read("out/batch.csv"), @"
    trace,ranks,messages,bytes,best,F,F_linear,gain_percent
    ../sample-traces/lammps-melt-16/eztrace_log.otf2,16,12353,28239231,linear,450206832.0,450206832.0,0.0
    ../sample-traces/lammps-melt-64/eztrace_log.otf2,64,39435,57391770,linear,2153455176.0,2153455176.0,0.0
    ../sample-traces/lulesh-64/eztrace_log.otf2,64,11379,103130040,hierarchical,3994090176.0,5059357536.0,21.1
    ../sample-traces/rows-columns-16/eztrace_log.otf2,16,1249,16013580,hierarchical,48028164.0,1462088832.0,96.7
    ");
    assert!(shown.contains("gain_percent"), "{shown}");
    let html = sandbox.read("report.html");
    assert!(html.contains("Communication matrices") && html.contains("lammps-melt-16"));
}

#[test]
fn the_demo_has_a_program_that_gains_and_one_that_does_not() {
    let sandbox = Sandbox::new();
    let shown = seen(&sandbox, "demo.toml", &[]);
    insta::assert_snapshot!(sandbox.read("out/demo.csv"), @"
    program,stage,runs,F best,F mean,F median,evaluations
    lulesh-64,linear,1,5059357536,5059357536,5059357536,0
    lammps-melt-64,linear,1,2153455176,2153455176,2153455176,0
    lulesh-64,round-robin,1,7320123336,7320123336,7320123336,0
    lammps-melt-64,round-robin,1,3068303862,3068303862,3068303862,0
    lulesh-64,hopmap,1,3994090176,3994090176,3994090176,4199040
    lammps-melt-64,hopmap,1,2153455176,2153455176,2153455176,4198896
    ");
    let table: Vec<&str> = shown.lines().skip_while(|line| !line.starts_with("  quality")).take(3).collect();
    insta::assert_snapshot!(table.join("\n"), @r"
      quality                             F  F / linear  F / round-robin    gain
      program=lulesh-64       3,994,090,176       0.789            0.546  21.1 %
      program=lammps-melt-64  2,153,455,176       1.000            0.702   0.0 %
    ");
    assert!(sandbox.read("out/lulesh-64.rankfile").contains("rank 63="));
}

#[test]
fn the_whole_way_ends_in_launch_files_and_a_schedule() {
    let sandbox = Sandbox::new();
    seen(&sandbox, "full.toml", &[]);
    assert_eq!(sandbox.read("out/rankfile").lines().filter(|line| line.starts_with("rank ")).count(), 16);
    let hosts: BTreeSet<String> = sandbox.read("out/machinefile").lines().filter_map(host).collect();
    assert_eq!(hosts, ["node03", "node05", "node18", "node20"].map(str::to_owned).into());
    let schedule = sandbox.read("out/schedule.sch");
    assert!(schedule.contains("num_processors 16") && schedule.trim_end().ends_with("SCHEDULE_END>"));
    assert!(sandbox.read("out/schedule.html").contains("<svg"));
}

#[test]
fn the_method_rgo_breeds_on_the_hosts_that_its_cut_chose() {
    let sandbox = Sandbox::new();
    let file = project().join("pipelines/rgo.toml");
    let trace = format!("trace={}", project().join("sample-traces/lulesh-64/eztrace_log.otf2").display());
    let run = |more: &[&str]| {
        let same = ["run", file.to_str().unwrap(), "--store", "store", "--no-report", "--json"];
        let same = [&same[..], &["-p", "seconds=0.5", "-p", &trace, "-p", "slots=64"]].concat();
        let out = format!("out={}", sandbox.path().join("out").display());
        let mut command = sandbox.command(&[&same[..], &["-p", &out], more].concat());
        let output = command.env("SLURM_JOB_NODELIST", "node[20-35]").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let cells = report["cells"].as_array().unwrap();
        let placement = cells.iter().find(|cell| cell["stage"] == "placement").unwrap();
        let metrics = &placement["outputs"]["mapping"]["metrics"];
        assert!(metrics["accepted_children"].as_f64().unwrap() >= 1.0, "{metrics}");
        sandbox
            .read("out/hosts")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    let hosts = run(&[]);
    assert_eq!(hosts.len(), 16, "{hosts:?}");
    assert!(["node17", "node24"].iter().all(|whole| hosts.contains(*whole)), "{hosts:?}");
    let hosts = run(&["-p", "from=slurm-nodelist", "-p", "free="]);
    assert_eq!(hosts, (20..36).map(|host| format!("node{host}")).collect());
    // From the file: 16 cores per host.
    let machine = ["-p", "machine=tree:16x16x8x8", "-p", "costs=[1, 10, 100, 400]"];
    assert_eq!(run(&[&machine[..], &["-p", "free=node[0003-0050,0200-0400]"]].concat()).len(), 4);
}

/// The host of a line of a machinefile.
fn host(line: &str) -> Option<String> {
    let host = line.split([':', ' ']).next()?;
    (!line.starts_with('#') && !host.is_empty()).then(|| host.to_owned())
}

#[test]
fn figure_3_is_made_of_any_folder_of_traces() {
    if query_program().is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    let data = format!("data={}", project().join("sample-traces").display());
    seen(&sandbox, "figure-3-traces.toml", &[&data, "traces=[\"rows-columns-16\"]"]);
    insta::assert_snapshot!(sandbox.read("out/figure-3-traces.csv"), @"
    weight,trace,F L1,F L2,F L12,F auto,T auto for F,T auto for T
    bytes,rows-columns-16,0.141,1.0,0.058,0.058,0.0692,0.0692
    messages,rows-columns-16,0.633,1.0,0.617,0.617,0.5719,0.5719
    ");
}

#[test]
fn figure_3_has_f_and_t_of_every_partition_of_programs_made_here() {
    if query_program().is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    let few = [
        "programs=[\"wavefront\", \"multigrid\"]",
        "ranks=[64]",
        "shapes=[\"tree:4x4x4\"]",
        "weights=[\"bytes\"]",
    ];
    seen(&sandbox, "figure-3.toml", &few);
    insta::assert_snapshot!(sandbox.read("out/figure-3.csv"), @"
    ranks,pattern,weight,partitioner,F L1,F L2,F L12,F HierarchicalMap,T L1,T L2,T L12,T HierarchicalMap,s linear,s HierarchicalMap
    64,multigrid,bytes,own,0.969,0.998,0.962,0.962,1.435,0.986,1.456,1.456,0.0237,0.0249
    64,wavefront,bytes,own,0.665,0.957,0.617,0.617,1.241,0.969,1.241,1.241,0.0268,0.0215
    ");
}

/// What the papers' algorithms are made of happens in every run.
#[test]
fn table_1_needs_no_files_and_has_f_a1_and_the_seconds_of_whole_runs() {
    if query_program().is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    let sample =
        ["-p", "effort=sample", "-p", "instances=[\"tai27e\", \"tai45e\"]", "-p", "reference=100_000"];
    sandbox.stdout(&[&["run", "table-1", "--no-report"], &sample[..]].concat());
    let table = sandbox.read("out/table-1.csv");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    let columns = "instance,mapper,runs,best_F,mean_F,F0,best_A1,mean_A1,seconds,exchanges,generations";
    assert_eq!(rows[0].join(","), columns);
    assert_eq!(rows.len(), 1 + 2 * 3);
    for row in &rows[1..] {
        let number = |column: usize| row[column].parse::<f64>().unwrap();
        assert_eq!(row[2], "1");
        assert!((number(6) - 100.0 * (number(3) / number(5) - 1.0)).abs() < 0.1, "{row:?}");
        assert!(number(8) > 0.0, "{row:?}");
        let count = if row[1] == "annealing" { 9 } else { 10 };
        assert!(number(count) >= 40.0, "{row:?}");
    }
}

#[test]
fn claims_end_in_one_table() {
    if query_program().is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    let small = ["groups=[2, 2, 2]", "few=[2, 2, 2]", "processes=[1, 64]", "instances=1..1", "seeds=1..2"];
    seen(&sandbox, "claims.toml", &small);
    insta::assert_snapshot!(sandbox.read("out/claims-verdicts.csv"), @r#"
    claim,compared_with,better,worse,p,verdict
    "50 candidates at a temperature are best (001, fig. 1)",10,1,0,1.0,cannot be decided here
    "50 candidates at a temperature are best (001, fig. 1)",100,0,0,1.0,cannot be decided here
    "50 candidates at a temperature are best (001, fig. 1)",25,1,0,1.0,cannot be decided here
    "50 candidates at a temperature are best (001, fig. 1)",250,0,0,1.0,cannot be decided here
    "Cauchy cooling is better than proportional (001, fig. 3)",proportional,0,0,1.0,cannot be decided here
    "an exchange after 1000 iterations is best (001, fig. 4)",100,0,0,1.0,cannot be decided here
    "an exchange after 1000 iterations is best (001, fig. 4)",500,0,0,1.0,cannot be decided here
    "an exchange after 1000 iterations is best (001, fig. 4)",5000,0,0,1.0,cannot be decided here
    "an exchange after 1000 iterations is best (001, fig. 4)",50000,0,0,1.0,cannot be decided here
    "as many solvers as ranks are best (001, fig. 5)",1,1,0,1.0,cannot be decided here
    "as many solvers as ranks are best (001, fig. 5)",125,0,0,1.0,cannot be decided here
    "as many solvers as ranks are best (001, fig. 5)",25,0,0,1.0,cannot be decided here
    "as many solvers as ranks are best (001, fig. 5)",5,0,0,1.0,cannot be decided here
    "basic crossover, ring and one migrant are best (000)","basic, master-slave, 1 migrants",0,2,0.489,cannot be decided here
    "basic crossover, ring and one migrant are best (000)","basic, ring, 4 migrants",0,1,1.0,cannot be decided here
    "basic crossover, ring and one migrant are best (000)","order, ring, 1 migrants",0,2,0.489,cannot be decided here
    "basic crossover, ring and one migrant are best (000)","sorting, ring, 1 migrants",1,1,1.0,cannot be decided here
    "more processes make annealing more accurate (001, fig. 6)",1,1,0,1.0,cannot be decided here
    "more processes make the genetic algorithm more accurate (001, fig. 6)",1,1,0,1.0,cannot be decided here
    "#);
    let rows = |file: &str| sandbox.read(file).lines().count();
    assert_eq!([rows("out/claims.csv"), rows("out/claims-times.csv")], [1 + 28, 1 + 11]);
}
