//! Gates: what the results of a pipeline have to keep.

use insta::assert_snapshot;
use serde_json::Value;

use crate::sandbox::Sandbox;

const GATES: &str = r#"
[gates]
quality = "placement.F <= 1.02 * accepted"
gain = "quality.F <= 0.6 * quality.F_linear"
"#;

/// The pipeline of the ring with gates.
fn with_gates(gates: &str) -> Sandbox {
    let sandbox = Sandbox::with_ring();
    sandbox.write("ring.toml", sandbox.read("ring.toml") + gates);
    sandbox
}

/// A sweep over mappers and seeds beside a single cell.
fn sweep(gates: &str) -> Sandbox {
    let sandbox = Sandbox::with_ring();
    let stages = r#"
[stages.program]
uses = "trace/import"
with = { path = "ring.csv", format = "csv" }

[stages.machine]
uses = "topology/synthetic"
with = { shape = "tree:2x4", costs = [1, 10] }

[stages.linear]
uses = "map/linear"
needs = { task-graph = "program", system = "machine" }

[stages.placement]
uses   = "map/annealing"
with   = { evaluations = 20000 }
needs  = { task-graph = "program", system = "machine" }
matrix = { seed = "1..3" }

[stages.random]
uses   = "map/random"
needs  = { task-graph = "program", system = "machine" }
matrix = { seed = "1..2" }
"#;
    sandbox.write("sweep.toml", format!("{stages}\n{gates}"));
    sandbox
}

#[test]
fn a_gate_is_open_then_holds_then_breaks_with_its_margin() {
    let sandbox = with_gates(GATES);
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--quiet"]), @"");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--no-report"]), @r"
    ring: nothing to do, 5 of 5 up to date
      result       F 0.550 × linear, 0.550 × round-robin (`--map-by node`)
      quality      F 0.550 × linear, F 0.620 × random, T 0.550 × linear, max_link_load_bytes 0.500 × linear
      rankfile     out/rankfile
      run with     mpirun -n 8 --rankfile out/rankfile PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
      no baseline  quality: placement.F is 44,000, no baseline accepted yet
      pass         gain: quality.F is 44,000, allowed 48,000 (0.6 × 80,000 quality.F_linear)
      to accept    hopmap accept ring.toml
    ");
    assert_snapshot!(sandbox.seen(&["accept", "ring.toml", "--note", "first"]), @"accepted: 1 value in ring.accepted.json");
    let text = sandbox.read("ring.accepted.json");
    assert_snapshot!(sandbox.seen(&["accept", "ring.toml"]), @"accepted already: 1 value in ring.accepted.json");
    assert_eq!(sandbox.read("ring.accepted.json"), text);
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--no-report"]), @r"
    ring: nothing to do, 5 of 5 up to date
      result       F 0.550 × linear, 0.550 × round-robin (`--map-by node`)
      quality      F 0.550 × linear, F 0.620 × random, T 0.550 × linear, max_link_load_bytes 0.500 × linear
      rankfile     out/rankfile
      run with     mpirun -n 8 --rankfile out/rankfile PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
      pass         quality: placement.F is 44,000, allowed 44,880 (1.02 × 44,000 accepted)
      pass         gain: quality.F is 44,000, allowed 48,000 (0.6 × 80,000 quality.F_linear)
    ");
    sandbox.edit(
        "ring.toml",
        "uses  = \"map/annealing\"\nwith  = { evaluations = 20000 }",
        "uses = \"map/linear\"",
    );
    assert_snapshot!(sandbox.seen(&["plan", "ring.toml"]), @r"
      cached     program
      cached     machine
      would run  placement                uses: map/annealing → map/linear
      waits      quality                  for placement
      waits      rankfile                 for placement
    ring: 1 of 5 would run, 2 depend on their results
      unknown      quality: placement has no result
      unknown      gain: quality has no result
    ");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--quiet"]), @r"
    ------- stderr -------
    error[gates::failed]: gate quality: placement.F is 80,000, allowed 44,880 (1.02 × 44,000 accepted): 78 % above
    error[gates::failed]: gate gain: quality.F is 80,000, allowed 48,000 (0.6 × 80,000 quality.F_linear): 67 % above
    [exit code 3]
    ");
    // Also where nothing has to run.
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--no-report"]), @r"
    ring: nothing to do, 5 of 5 up to date
      result       F as good as linear, as good as round-robin (`--map-by node`): keep the default placement
      quality      F 1.000 × linear, F 1.127 × random, T 1.000 × linear, max_link_load_bytes 1.000 × linear
      held back    out/rankfile: a gate fails; `hopmap accept` makes its values the baseline, `save_on_failure = true` saves anyway
    ------- stderr -------
    error[gates::failed]: gate quality: placement.F is 80,000, allowed 44,880 (1.02 × 44,000 accepted): 78 % above
    error[gates::failed]: gate gain: quality.F is 80,000, allowed 48,000 (0.6 × 80,000 quality.F_linear): 67 % above
    [exit code 3]
    ");
    assert_snapshot!(sandbox.seen(&["plan", "ring.toml"]), @r"
      cached     program
      cached     machine
      cached     placement
      cached     quality
      cached     rankfile
    ring: nothing to do
      held back    out/rankfile: a gate fails; `hopmap accept` makes its values the baseline, `save_on_failure = true` saves anyway
    ------- stderr -------
    error[gates::failed]: gate quality: placement.F is 80,000, allowed 44,880 (1.02 × 44,000 accepted): 78 % above
    error[gates::failed]: gate gain: quality.F is 80,000, allowed 48,000 (0.6 × 80,000 quality.F_linear): 67 % above
    [exit code 3]
    ");
    assert_snapshot!(sandbox.seen(&["accept", "--check", "ring.toml"]), @r"
    ring: not what ring.accepted.json accepts
      placement.F 80,000, accepted 44,000
    [exit code 3]
    ");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--no-gates", "--no-report"]), @r"
    ring: nothing to do, 5 of 5 up to date
      result       F as good as linear, as good as round-robin (`--map-by node`): keep the default placement
      quality      F 1.000 × linear, F 1.127 × random, T 1.000 × linear, max_link_load_bytes 1.000 × linear
      rankfile     out/rankfile  (restored)
      run with     mpirun -n 8 --rankfile out/rankfile PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
    ");
    assert_snapshot!(sandbox.seen(&["accept", "ring.toml"]), @r"
    accepted: 1 value in ring.accepted.json
      placement.F 80,000, accepted 44,000 before
    ");
    assert_snapshot!(sandbox.seen(&["accept", "--check", "ring.toml"]), @"ring: these are the accepted values");
}

#[test]
fn the_accepted_file_has_a_line_for_each_value_that_gates_compare_with() {
    let sandbox = with_gates(GATES);
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.stdout(&["accept", "ring.toml", "--out", "elsewhere/values.json", "--note", "why"]);
    let text = sandbox.read("elsewhere/values.json");
    let time = serde_json::from_str::<Value>(&text).unwrap()["time"].as_str().unwrap().to_owned();
    let text = text.replace(&time, "TIME").replace(env!("CARGO_PKG_VERSION"), "VERSION");
    assert_snapshot!(text, @r#"
    {
      "format": 1,
      "pipeline": "ring",
      "metrics": {
        "placement.F": 44000.0
      },
      "note": "why",
      "hopmap": "VERSION",
      "time": "TIME"
    }
    "#);
    assert!(!sandbox.path().join("ring.accepted.json").exists());
    assert_snapshot!(sandbox.seen(&["plan", "ring.toml", "--accepted", "elsewhere/values.json"]), @r"
      cached     program
      cached     machine
      cached     placement
      cached     quality
      cached     rankfile
    ring: nothing to do
      pass         quality: placement.F is 44,000, allowed 44,880 (1.02 × 44,000 accepted)
      pass         gain: quality.F is 44,000, allowed 48,000 (0.6 × 80,000 quality.F_linear)
    ");
}

#[test]
fn a_gate_of_a_sweep_holds_for_each_cell() {
    let sandbox = sweep(
        r#"[gates]
each = "placement.F <= accepted"
beside = "placement.F <= 0.9 * linear.F"
best = "placement[min F].F <= min(random[*].F)"
one = "placement[seed=2].F + linear.F < 100000"
several = "median(placement[*].F) >= max(random[*].F)"
"#,
    );
    assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "--quiet"]), @r"
    ------- stderr -------
    error[gates::failed]: gate one: placement[seed=2].F + linear.F is 124,000, must be less than 100,000: 24 % above
    error[gates::failed]: gate several: median(placement[*].F) is 44,000, must be at least 80,000 (max(random[*].F)): 45 % below
    [exit code 3]
    ");
    assert_snapshot!(sandbox.seen(&["accept", "sweep.toml"]), @"accepted: 3 values in sweep.accepted.json");
    assert_snapshot!(sandbox.seen(&["plan", "sweep.toml"]), @r"
      cached     program
      cached     machine
      cached     linear
      cached     placement[seed=1]
      cached     placement[seed=2]
      cached     placement[seed=3]
      cached     random[seed=1]
      cached     random[seed=2]
    sweep: nothing to do
      pass         each: placement[seed=1].F is 44,000, allowed 44,000 (accepted)
      pass         each: placement[seed=2].F is 44,000, allowed 44,000 (accepted)
      pass         each: placement[seed=3].F is 44,000, allowed 44,000 (accepted)
      pass         beside: placement[seed=1].F is 44,000, allowed 72,000 (0.9 × 80,000 linear.F)
      pass         beside: placement[seed=2].F is 44,000, allowed 72,000 (0.9 × 80,000 linear.F)
      pass         beside: placement[seed=3].F is 44,000, allowed 72,000 (0.9 × 80,000 linear.F)
      pass         best: placement[min F].F is 44,000, allowed 71,000 (min(random[*].F))
    ------- stderr -------
    error[gates::failed]: gate one: placement[seed=2].F + linear.F is 124,000, must be less than 100,000: 24 % above
    error[gates::failed]: gate several: median(placement[*].F) is 44,000, must be at least 80,000 (max(random[*].F)): 45 % below
    [exit code 3]
    ");
    let value: Value =
        serde_json::from_slice(&sandbox.output(&["run", "sweep.toml", "--json"]).stdout).unwrap();
    assert_eq!(value["exit"], 3);
    let standing = |gate: &str| {
        let all = value["gates"].as_array().unwrap().iter().filter(|verdict| verdict["gate"] == gate);
        all.map(|verdict| verdict["standing"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(standing("each"), "holds holds holds");
    assert_eq!(standing("several"), "broken");
    let html = sandbox.read(".hopmap/reports/sweep.html");
    assert!(html.contains("<h2>Gates</h2>") && html.contains("<span class=\"badge bad\">fail</span>"));
}

#[test]
fn a_new_cell_is_open_until_it_is_accepted() {
    let sandbox = sweep("[gates]\neach = \"placement.F <= accepted\"\n");
    sandbox.stdout(&["run", "sweep.toml"]);
    sandbox.stdout(&["accept", "sweep.toml"]);
    sandbox.edit("sweep.toml", "seed = \"1..3\"", "seed = \"2..6\"");
    assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "--no-report", "-j1"]), @r"
    sweep: 3 ran, 7 cached in N.NN s
      pass         each: placement[seed=2].F is 44,000, allowed 44,000 (accepted)
      pass         each: placement[seed=3].F is 44,000, allowed 44,000 (accepted)
      no baseline  each: placement[seed=4].F is 44,000, no baseline accepted yet
      no baseline  each: placement[seed=5].F is 44,000, no baseline accepted yet
      no baseline  each: placement[seed=6].F is 44,000, no baseline accepted yet
      to accept    hopmap accept sweep.toml
    ------- stderr -------
      placement[seed=4]: 8 solvers on every island, 50000 iterations, an exchange after every 1000
      placement[seed=4]: warning: the search ended before its first exchange (`exchange_interval`)
      ran        placement[seed=4]  N.NN s
      placement[seed=5]: 8 solvers on every island, 50000 iterations, an exchange after every 1000
      placement[seed=5]: warning: the search ended before its first exchange (`exchange_interval`)
      ran        placement[seed=5]  N.NN s
      placement[seed=6]: 8 solvers on every island, 50000 iterations, an exchange after every 1000
      placement[seed=6]: warning: the search ended before its first exchange (`exchange_interval`)
      ran        placement[seed=6]  N.NN s
    ");
    // Once the report said `open` and `holds`, and did not count.
    sandbox.stdout(&["report", "sweep.toml", "--out", "r.html"]);
    let html = sandbox.read("r.html");
    let badge = |class: &str, word: &str| format!("<span class=\"badge {class}\">{word}</span>");
    let counted = format!("<p>{} 3\u{2003}{} 2</p>", badge("calm", "no baseline"), badge("good", "pass"));
    assert!(html.contains(&counted), "{html}");
    assert_eq!(html.matches(&badge("calm", "no baseline")).count(), 4);
    assert_snapshot!(sandbox.seen(&["accept", "sweep.toml"]), @r"
    accepted: 5 values in sweep.accepted.json
      placement[seed=1].F nothing, accepted 44,000 before
      placement[seed=4].F 44,000, accepted nothing before
      placement[seed=5].F 44,000, accepted nothing before
      placement[seed=6].F 44,000, accepted nothing before
    ");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one command after the other, each with its output")]
fn what_is_wrong_with_gates_is_found_before_anything_runs() {
    let sandbox = sweep(
        r#"[gates]
stage = "placment.F < 3"
cell = "placement[sed=1].F < 3"
value = "placement[seed=7].F < 3"
port = "placement.map.F < 3"
form = "placement.F =< 3"
end = "placement.F <"
left = "accepted < placement.F"
nothing = "1 < 2"
pair = "placement.F < random.F"
single = "linear.F < placement.F"
several = "placement[*].F < 3"
function = "maximum(placement[*].F) < 3"
plain = "max(placement.F) < 3"
parameter = "placement.F < ${params.most}"
number = 3
"a gate" = "placement.F < 3"
"#,
    );
    assert_snapshot!(sandbox.seen(&["check", "sweep.toml"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: there is no stage `placment`
        ,-[sweep.toml:26:10]
     25 | [gates]
     26 | stage = "placment.F < 3"
        :          ^^^^^|^^^^
        :               `-- did you mean `placement`?
     27 | cell = "placement[sed=1].F < 3"
        `----
      help: stages: program, machine, linear, placement, random
    error[pipeline::invalid]: `placement` has no matrix key `sed`
        ,-[sweep.toml:27:9]
     26 | stage = "placment.F < 3"
     27 | cell = "placement[sed=1].F < 3"
        :         ^^^^^^^^^|^^^^^^^^
        :                  `-- did you mean `seed`?
     28 | value = "placement[seed=7].F < 3"
        `----
      help: its matrix keys: seed
    error[pipeline::invalid]: no cell of `placement` has seed=7
        ,-[sweep.toml:28:10]
     27 | cell = "placement[sed=1].F < 3"
     28 | value = "placement[seed=7].F < 3"
        :          ^^^^^^^^^|^^^^^^^^^
        :                   `-- here
     29 | port = "placement.map.F < 3"
        `----
      help: values of seed: 1, 2, 3
    error[pipeline::invalid]: map/annealing has no output `map`
        ,-[sweep.toml:29:9]
     28 | value = "placement[seed=7].F < 3"
     29 | port = "placement.map.F < 3"
        :         ^^^^^^^|^^^^^^^
        :                `-- did you mean `mapping`?
     30 | form = "placement.F =< 3"
        `----
      help: outputs: mapping
    error[pipeline::invalid]: expected a comparison, found `=`
        ,-[sweep.toml:30:21]
     29 | port = "placement.map.F < 3"
     30 | form = "placement.F =< 3"
        :                     |
        :                     `-- one of <= < >= > == !=
     31 | end = "placement.F <"
        `----
      help: a gate compares two sums of numbers and metrics, such as "placement.F <= N.NN * accepted"
    error[pipeline::invalid]: expected a number or a metric, found the end of the gate
        ,-[sweep.toml:31:21]
     30 | form = "placement.F =< 3"
     31 | end = "placement.F <"
        :                     ^
        :                     `-- here
     32 | left = "accepted < placement.F"
        `----
      help: a gate compares two sums of numbers and metrics, such as "placement.F <= N.NN * accepted"
    error[pipeline::invalid]: `accepted` is the accepted value of the left side, and belongs on the right
        ,-[sweep.toml:32:8]
     31 | end = "placement.F <"
     32 | left = "accepted < placement.F"
        :        ^^^^^^^^^^^^|^^^^^^^^^^^
        :                    `-- here
     33 | nothing = "1 < 2"
        `----
      help: a gate compares two sums of numbers and metrics, such as "placement.F <= N.NN * accepted"
    error[pipeline::invalid]: this gate is about no metric
        ,-[sweep.toml:33:11]
     32 | left = "accepted < placement.F"
     33 | nothing = "1 < 2"
        :           ^^^|^^^
        :              `-- here
     34 | pair = "placement.F < random.F"
        `----
      help: a gate compares two sums of numbers and metrics, such as "placement.F <= N.NN * accepted"
    error[pipeline::invalid]: no cell of `random` pairs with `placement[seed=3]`
        ,-[sweep.toml:34:23]
     33 | nothing = "1 < 2"
     34 | pair = "placement.F < random.F"
        :                       ^^^^|^^^
        :                           `-- here
     35 | single = "linear.F < placement.F"
        `----
      help: cells pair up by equal matrix keys
    error[pipeline::invalid]: `placement[*]` matches 3 cells
        ,-[sweep.toml:36:12]
     35 | single = "linear.F < placement.F"
     36 | several = "placement[*].F < 3"
        :            ^^^^^^^|^^^^^^
        :                   `-- which value?
     37 | function = "maximum(placement[*].F) < 3"
        `----
      help: aggregate the cells: max(placement[*].F), min(placement[*].F), mean(placement[*].F) or median(placement[*].F)
    error[pipeline::invalid]: there is no function `maximum`
        ,-[sweep.toml:37:13]
     36 | several = "placement[*].F < 3"
     37 | function = "maximum(placement[*].F) < 3"
        :             ^^^|^^^
        :                `-- did you mean `max`?
     38 | plain = "max(placement.F) < 3"
        `----
      help: functions: min, max, mean, median
    error[pipeline::invalid]: `max` takes several cells
        ,-[sweep.toml:38:14]
     37 | function = "maximum(placement[*].F) < 3"
     38 | plain = "max(placement.F) < 3"
        :              ^^^^^|^^^^^
        :                   `-- here
     39 | parameter = "placement.F < ${params.most}"
        `----
      help: write max(placement[*].F) for all of them
    error[pipeline::invalid]: there is no parameter `most`
        ,-[sweep.toml:39:13]
     38 | plain = "max(placement.F) < 3"
     39 | parameter = "placement.F < ${params.most}"
        :             ^^^^^^^^^^^^^^^|^^^^^^^^^^^^^^
        :                            `-- here
     40 | number = 3
        `----
    error[pipeline::invalid]: a gate should be text
        ,-[sweep.toml:40:10]
     39 | parameter = "placement.F < ${params.most}"
     40 | number = 3
        :          |
        :          `-- this is a number
     41 | "a gate" = "placement.F < 3"
        `----
      help: a gate compares two sums of numbers and metrics, such as "placement.F <= N.NN * accepted"
    error[pipeline::invalid]: `a gate` is not a name for a gate
        ,-[sweep.toml:41:1]
     40 | number = 3
     41 | "a gate" = "placement.F < 3"
        : ^^^^|^^^
        :     `-- here
        `----
      help: names have letters, digits, `-` and `_`
    15 errors
    [exit code 2]
    "#);
}

#[test]
fn gates_can_use_parameters() {
    let sandbox = sweep("[gates]\nfixed = \"linear.F <= ${params.most}\"\n\n[params]\nmost = 1e6\n");
    assert_snapshot!(sandbox.seen(&["check", "sweep.toml"]), @"sweep.toml is valid: 5 stages, 8 cells, 1 gate");
    sandbox.stdout(&["run", "sweep.toml"]);
    assert_snapshot!(sandbox.seen(&["run", "sweep.toml", "-p", "most=5", "--quiet"]), @r"
    ------- stderr -------
    error[gates::failed]: gate fixed: linear.F is 80,000, allowed 5: 1,599,900 % above
    [exit code 3]
    ");
}

#[test]
fn a_metric_that_there_is_not_is_found_after_the_run_then_before_it() {
    let sandbox = with_gates("[gates]\nquality = \"quality.FF <= 3\"\n");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--quiet"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `quality` has no metric `FF`
        ,-[ring.toml:28:12]
     27 | [gates]
     28 | quality = "quality.FF <= 3"
        :            ^^^^^|^^^^
        :                 `-- did you mean `F`?
        `----
    [exit code 2]
    "#);
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 30000");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--quiet"]), @r#"
    ------- stderr -------
    error[pipeline::invalid]: `quality` has no metric `FF`
        ,-[ring.toml:28:12]
     27 | [gates]
     28 | quality = "quality.FF <= 3"
        :            ^^^^^|^^^^
        :                 `-- did you mean `F`?
        `----
    [exit code 2]
    "#);
    assert_eq!(sandbox.stdout(&["runs"]).lines().count(), 1);
    assert_snapshot!(sandbox.seen(&["plan", "ring.toml", "--no-gates"]), @r"
      cached     program
      cached     machine
      would run  placement                evaluations: 20000 → 30000
      waits      quality                  for placement
      waits      rankfile                 for placement
    ring: 1 of 5 would run, 2 depend on their results
    ");
}

#[test]
fn what_has_not_run_or_failed_is_not_accepted() {
    let sandbox = with_gates(GATES);
    assert_snapshot!(sandbox.seen(&["accept", "ring.toml"]), @r"
    ------- stderr -------
    error[command::mistake]: cannot accept: program has to run: no result in this store yet
      help: only a run in which every stage has a result can be accepted: `hopmap run ring.toml`
    [exit code 2]
    ");
    assert_snapshot!(sandbox.seen(&["accept", "--check", "ring.toml"]), @r"
    ------- stderr -------
    error[command::mistake]: cannot accept: program has to run: no result in this store yet
      help: only a run in which every stage has a result can be accepted: `hopmap run ring.toml`
    [exit code 2]
    ");
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.edit("ring.toml", "evaluations = 20000", "evaluations = 30000");
    assert_snapshot!(sandbox.seen(&["accept", "ring.toml"]), @r"
    ------- stderr -------
    error[command::mistake]: cannot accept: placement has to run: evaluations: 20000 → 30000
      help: only a run in which every stage has a result can be accepted: `hopmap run ring.toml`
    [exit code 2]
    ");
    sandbox.write("ring.csv", "source,destination,messages,bytes\n0,1,x,1\n");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--quiet"]), @r"
    ------- stderr -------
    error[text::file]: stage `program` (ring.toml:8)
      `-> DIR/ring.csv:2: column 3 (messages): `x` is not an integer
      help: ranks, messages and bytes are non-negative integers; delete the line if it is a sum, or a message of another program
    [exit code 1]
    ");
    assert_snapshot!(sandbox.seen(&["accept", "ring.toml"]), @r"
    ------- stderr -------
    error[command::mistake]: cannot accept: program has to run: did not finish last time
      help: only a run in which every stage has a result can be accepted: `hopmap run ring.toml`
    [exit code 2]
    ");
    assert!(!sandbox.path().join("ring.accepted.json").exists());
}

#[test]
fn a_pipeline_whose_gates_need_no_baseline_has_nothing_to_accept() {
    let sandbox = with_gates("\n[gates]\ng = \"placement.F <= 1e9\"\n");
    let refused = sandbox.seen(&["accept", "ring.toml"]);
    assert!(
        refused.contains("ring.toml has no gate that names `accepted`, so there is nothing to accept"),
        "{refused}"
    );
}

#[test]
fn accepted_values_that_cannot_be_read_are_refused() {
    let sandbox = with_gates(GATES);
    sandbox.write("ring.accepted.json", "{ \"format\": 1, \"digest\": \"\" }");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--quiet"]), @r"
    ------- stderr -------
    error[accepted::malformed]: DIR/ring.accepted.json is not an accepted state: it accepts an artifact, not the values of gates
      help: restore it from a backup or version control, or move it away, and accept the artifact again
    [exit code 2]
    ");
    sandbox.write("ring.accepted.json", "{");
    assert_snapshot!(sandbox.seen(&["plan", "ring.toml"]), @r"
    ------- stderr -------
    error[accepted::malformed]: DIR/ring.accepted.json is not an accepted state: EOF while parsing an object at line 1 column 1
      help: restore it from a backup or version control, or move it away, and accept the artifact again
    [exit code 2]
    ");
}

#[test]
fn gates_change_no_key() {
    let sandbox = Sandbox::with_ring();
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.write("ring.toml", sandbox.read("ring.toml") + "\n[gates]\ng = \"placement.F <= 1e9\"\n");
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--no-report"]), @r"
    ring: nothing to do, 5 of 5 up to date
      result       F 0.550 × linear, 0.550 × round-robin (`--map-by node`)
      quality      F 0.550 × linear, F 0.620 × random, T 0.550 × linear, max_link_load_bytes 0.500 × linear
      rankfile     out/rankfile
      run with     mpirun -n 8 --rankfile out/rankfile PROGRAM
      hosts        placeholders (host0, host1, …): name yours with `hosts` of stage `machine`
      pass         g: placement.F is 44,000, allowed 1,000,000,000
    ");
}

#[test]
fn other_values_are_said_even_when_quiet() {
    let sandbox = with_gates(GATES);
    sandbox.stdout(&["run", "ring.toml"]);
    sandbox.stdout(&["accept", "ring.toml"]);
    let check = || sandbox.seen(&["accept", "--check", "ring.toml", "--quiet"]);
    assert_eq!(check(), "");
    sandbox.edit("ring.accepted.json", "44000.0", "43000.0");
    assert_snapshot!(check(), @"
    ------- stderr -------
    ring: not what ring.accepted.json accepts
      placement.F 44,000, accepted 43,000
    [exit code 3]
    ");
}

#[test]
fn accepted_values_that_are_named_have_to_be_there() {
    let sandbox = with_gates(GATES);
    assert_snapshot!(sandbox.seen(&["run", "ring.toml", "--accepted", "missing.json", "--quiet"]), @r"
    ------- stderr -------
    error[command::mistake]: the baseline missing.json does not exist
      help: after a run without --accepted, `hopmap accept ring.toml --out missing.json` writes it
    [exit code 2]
    ");
    assert!(!sandbox.path().join("out").exists(), "something ran");
    for command in ["plan", "report"] {
        let output = sandbox.output(&[command, "ring.toml", "--accepted", "missing.json"]);
        assert_eq!(output.status.code(), Some(2), "{command}");
    }
    // The file beside the pipeline need not be there.
    sandbox.stdout(&["run", "ring.toml"]);
}
