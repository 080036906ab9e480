//! Reports of sweeps: statistics, what failed, pictures, and the timeline.

use serde_json::Value as Json;

use crate::sandbox::Sandbox;

/// Two mappers and eight seeds.
const SWEEP: &str = r#"
name = "sweep"

[stages.program]
uses = "trace/import"
with = { path = "ring.csv", format = "csv" }

[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x4", costs = [1, 10] }

[stages.placement]
uses   = "map/${matrix.mapper}"
needs  = { task-graph = "program", system = "machine" }
matrix = { mapper = ["random", "linear"], seed = "1..8" }
"#;

fn sweep() -> Sandbox {
    let sandbox = Sandbox::with_ring();
    sandbox.write("sweep.toml", SWEEP);
    sandbox
}

/// The fields of the first row of a table of `metric` that begins with a text.
fn row(html: &str, metric: &str, first: &str) -> Vec<String> {
    let table = html.split(&format!("<summary>{metric}</summary>")).nth(1).unwrap();
    let row = table.split("<tr>").find(|row| row.starts_with(&format!("<td>{first}</td>"))).unwrap();
    let field = |field: &str| field.split_once('>').unwrap().1.to_owned();
    row.split("</td>").filter(|field| field.contains("<td")).map(field).collect()
}

/// The number of a field: six digits, thousands apart.
fn number(field: &str) -> f64 {
    field.replace(',', "").parse().unwrap()
}

#[test]
fn a_sweep_is_summarised_by_medians_quartiles_and_intervals() {
    let sandbox = sweep();
    let run = sandbox.stdout(&["run", "sweep.toml", "--report", "report.html", "--json"]);
    let run: Json = serde_json::from_str(&run).unwrap();
    let cells = run["cells"].as_array().unwrap();
    let random = cells.iter().filter(|cell| cell["cell"].as_str().unwrap().contains("mapper=random"));
    let mut costs: Vec<f64> =
        random.map(|cell| cell["outputs"]["mapping"]["metrics"]["F"].as_f64().unwrap()).collect();
    costs.sort_by(f64::total_cmp);
    let html = sandbox.read("report.html");
    let fields = row(&html, "F", "random");
    let median = f64::midpoint(costs[3], costs[4]);
    assert_eq!(fields[1], "8");
    // Of eight numbers the interval is the whole sample.
    for (field, expected) in [(2, median), (6, costs[0]), (7, costs[7]), (8, costs[0]), (9, costs[7])] {
        assert!((number(&fields[field]) - expected).abs() <= 1e-5 * expected, "{fields:?} {costs:?}");
    }
    for part in ["Sweeps", "95 % interval of median", "on the front", "Timeline", "table class=\"sortable\""]
    {
        assert!(html.contains(part), "the report does not show {part}");
    }
    assert!(!html.contains("script src"));
    // Once F was explained below its tables.
    assert!(html.find("<dt>F</dt>").unwrap() < html.find("<summary>F</summary>").unwrap());
}

/// Once F in bytes was ranked against F in messages.
#[test]
fn cells_with_different_weights_are_not_ranked_against_each_other() {
    let sandbox = sweep();
    // The linear mapping is the best one for neighbours.
    sandbox.write(
        "ring.csv",
        "source,destination,messages,bytes\n0,1,1,100\n1,2,1,100\n2,3,1,100\n4,5,1,100\n5,6,1,100\n6,7,1,100\n",
    );
    sandbox.edit("sweep.toml", "seed = \"1..8\"", "weight = [\"bytes\", \"messages\"]");
    sandbox.stdout(&["run", "sweep.toml", "--report", "report.html"]);
    let html = sandbox.read("report.html");
    for weight in ["bytes", "messages"] {
        let best = format!("<td>linear</td><td>{weight}</td><td class=\"number best\"");
        assert!(html.contains(&best), "{weight}");
    }
    assert!(html.contains("machine, weight = messages</h3>"));
}

#[test]
fn cells_without_a_result_are_counted_and_named() {
    let sandbox = sweep();
    sandbox.edit(
        "sweep.toml",
        "with = { shape = \"tree:2x4\"",
        "matrix = { size = [2, 4] }\nwith = { shape = \"tree:2x${matrix.size}\"",
    );
    sandbox.edit(
        "sweep.toml",
        "[\"random\", \"linear\"], seed = \"1..8\"",
        "[\"random\"], size = [2, 4], seed = \"1..30\"",
    );
    assert_eq!(sandbox.output(&["run", "sweep.toml", "--report", "report.html"]).status.code(), Some(1));
    let html = sandbox.read("report.html");
    let named = |seed: u32| {
        let full = format!("placement[mapper=random,size=2,seed={seed}]");
        format!("<code><span title=\"{full}\">placement[size=2,seed={seed}]</span></code>")
    };
    assert!(html.contains(&format!("30 of 60 cells have no result: {}", named(1))), "{html}");
    assert!(html.contains(&format!("{} … and 10 more</p>", named(20))));
    assert_eq!(html.matches("8 ranks do not fit on 4 slots").count(), 20);
    assert!(html.contains("<p class=\"failed\">… and 10 more.</p>"));
}

#[test]
fn a_report_of_a_thousand_cells_stays_readable() {
    let sandbox = sweep();
    sandbox.edit(
        "sweep.toml",
        "uses   = \"map/${matrix.mapper}\"",
        "uses = \"map/random\"\nwith = { seed = \"${matrix.draw}\" }",
    );
    sandbox.edit("sweep.toml", "mapper = [\"random\", \"linear\"], seed = \"1..8\"", "draw = \"1..1000\"");
    sandbox.stdout(&["run", "sweep.toml", "--report", "report.html"]);
    let html = sandbox.read("report.html");
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    assert!(html.contains("… and 700 more."));
    assert!(html.matches("<h3>").count() < 40 && html.matches("<svg").count() < 40);
}

#[test]
fn a_timeline_has_a_slice_for_each_cell_that_ran() {
    let sandbox = sweep();
    sandbox.edit("sweep.toml", "seed = \"1..8\"", "seed = \"1..1\"");
    insta::assert_snapshot!(sandbox.seen(&["report", "sweep.toml", "--timeline", "t.json"]), @r"
    ------- stderr -------
    error[command::mistake]: no run of `sweep` is in .hopmap
      help: run it first: hopmap run PIPELINE
    [exit code 2]
    ");
    sandbox.stdout(&["run", "sweep.toml", "-j1", "--no-report"]);
    sandbox.stdout(&["run", "sweep.toml", "-j1", "--no-report"]);
    assert_eq!(sandbox.stdout(&["report", "sweep.toml", "--timeline", "t.json"]), "t.json\n");
    assert!(!sandbox.path().join(".hopmap/reports").exists());
    let mut trace: Json = serde_json::from_str(&sandbox.read("t.json")).unwrap();
    for event in trace["traceEvents"].as_array_mut().unwrap() {
        for (key, value) in [("ts", "TIME"), ("dur", "TIME")] {
            if event.get(key).is_some_and(Json::is_number) {
                event[key] = value.into();
            }
        }
        if event["args"]["key"].is_string() {
            event["args"]["key"] = "KEY".into();
        }
    }
    trace["otherData"] = Json::Null;
    let slices: Vec<&Json> =
        trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").collect();
    let names: Vec<&str> = slices.iter().map(|slice| slice["name"].as_str().unwrap()).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(
        sorted,
        ["machine", "placement[mapper=linear,seed=1]", "placement[mapper=random,seed=1]", "program"]
    );
    assert!(slices.iter().all(|slice| slice["args"]["reasons"][0].is_string() && slice["ts"] == "TIME"));
    let both = sandbox.stdout(&["report", "sweep.toml", "--timeline", "t.json", "--out", "r.html"]);
    assert_eq!(both, "t.json\nr.html\n");
}

/// F of an empty program is 0 whatever the mapping: a report drew its equal mappings and none of the other program.
#[test]
fn a_report_of_several_programs_compares_the_mappings_of_each() {
    let sandbox = sweep();
    let to_themselves: Vec<String> = (0..8).map(|rank| format!("{rank},{rank},1,8\n")).collect();
    sandbox.write("empty.csv", format!("source,destination,messages,bytes\n{}", to_themselves.concat()));
    sandbox.edit(
        "sweep.toml",
        "with = { path = \"ring.csv\"",
        "matrix = { input = [\"empty\", \"ring\"] }\nwith = { path = \"${matrix.input}.csv\"",
    );
    sandbox.edit("sweep.toml", "matrix = { mapper", "foreach = \"program\"\nmatrix = { mapper");
    sandbox.stdout(&["run", "sweep.toml", "--report", "report.html"]);
    let html = sandbox.read("report.html");
    let drawn = html.split("<h2>Mapping</h2>").nth(1).unwrap();
    assert!(drawn.contains("with the smallest F for each program and machine"), "{drawn}");
    assert!(drawn.contains("<h3>placement[input=ring,"), "{drawn}");
    // The smallest median of each program is bold, unless all are equal.
    assert_eq!(row(&html, "F", "ring").len(), row(&html, "F", "empty").len());
    let table = html.split("<summary>F</summary>").nth(1).unwrap().split("</table>").next().unwrap();
    assert_eq!(table.matches("number best").count(), 1, "{table}");
    assert_eq!(html.matches("<dt>F</dt>").count(), 1);
}
