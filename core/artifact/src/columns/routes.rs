//! Columns of routes, forwarding tables, diagnoses and failures.

use super::form::{KindForm, always, column};

pub(super) const ROUTES: KindForm = KindForm {
    kind: "routes",
    summary: "The path of every stream through a network of switches.",
    tables: &[
        always(
            "routes",
            &[
                column("route", "u32", "route, from 0"),
                column("source", "u32", "host that sends"),
                column("destination", "u32", "host that receives"),
                column("bandwidth_bytes_per_s", "f64", "bandwidth that it occupies on every link"),
                column("hops", "u32", "number of links"),
            ],
        ),
        always(
            "streams",
            &[column("route", "u32", "route"), column("stream", "u32", "stream that takes it")],
        ),
        always(
            "hops",
            &[
                column("route", "u32", "route"),
                column("hop", "u32", "position on the route, from 0"),
                column("link", "u32", "link of the machine"),
            ],
        ),
        always("cycle", &[column("link", "u32", "links that can deadlock, each waiting for the next")]),
    ],
    metrics: &[
        ("objective", "value of the objective function"),
        ("bound", "no solution has a smaller objective"),
        ("proven", "1 if the solution is proven optimal, else 0"),
        ("longest", "links of the longest route"),
        ("hops", "links of all routes together"),
        ("entries", "entries of all tables"),
        ("deadlock_free", "1 if no links can wait for each other in a cycle, else 0"),
        ("largest_link_utilisation", "largest fraction of a link's bandwidth that is used"),
        ("least_bandwidth_slack", "smallest bandwidth that a link has left"),
        ("least_bandwidth_slack_share", "smallest fraction of a link's bandwidth that is left"),
        ("least_performance_slack_share", "smallest fraction of a host's performance that is left"),
        ("largest_switch_load", "bandwidth that arrives at the busiest switch"),
        ("largest_link_load", "bandwidth that the busiest link carries"),
        ("largest_link_load_bound", "no routes leave the busiest link with less"),
    ],
};

pub(super) const TABLES: KindForm = KindForm {
    kind: "tables",
    summary: "The forwarding tables of all switches.",
    tables: &[always(
        "entries",
        &[
            column("switch", "u32", "switch"),
            column("input_port", "u32?", "input port of the table; missing for a table of all ports"),
            column("destination", "u32", "host that a packet is for"),
            column("output_port", "u32", "port through which it leaves"),
        ],
    )],
    metrics: &[
        ("entries", "number of entries; with the metrics of `routes`"),
        (
            "busiest_all_to_all",
            "`route/fabric`: pairs of hosts over the busiest link between switches, of all pairs",
        ),
        ("busiest_shift", "the same of the worst shift: every host sends to the one some places further"),
        ("mean_busiest_shift", "the same in the mean of all shifts"),
        (
            "busiest_bit_reversal",
            "the same if every host sends to the one whose number has its bits in reverse",
        ),
        ("busiest_bound", "no tables have a smaller `busiest_all_to_all`"),
        (
            "busiest_program_bytes",
            "`route/fabric` with a program: its bytes over the busiest link between switches",
        ),
    ],
};

pub(super) const DIAGNOSIS: KindForm = KindForm {
    kind: "diagnosis",
    summary: "Why a problem is infeasible, and which changes would make it feasible.",
    tables: &[always(
        "causes",
        &[
            column("remedy", "u32", "remedy that the cause belongs to; any one remedy is enough"),
            column("part", "text", "`link`, `switch`, `host`, `process` or `stream`"),
            column("name", "text", "name of the part"),
            column("there", "f64?", "amount that is available"),
            column("needed", "f64?", "amount that is required"),
            column("words", "text", "the cause in a sentence"),
        ],
    )],
    metrics: &[("infeasible", "1 where `allow_infeasible` made this a result")],
};

pub(super) const FAILURES: KindForm = KindForm {
    kind: "failures",
    summary: "The effect of every single failure of a link, switch or host.",
    tables: &[always(
        "failures",
        &[
            column("part", "text", "kind of the part that fails"),
            column("name", "text", "its name"),
            column("survived", "text", "`yes`, `no` or `unknown`"),
            column("objective", "f64?", "objective after the failure"),
            column("longest", "u32?", "links of the longest route after it"),
            column("moved", "u32", "processes that move to another host"),
            column("rerouted", "u32", "streams that take another route"),
            column("changed_entries", "u32", "table entries that change"),
            column("shortage", "text", "what is missing, if the program does not survive"),
        ],
    )],
    metrics: &[
        ("failures", "number of failures examined"),
        ("survived", "of these, those that the program survives"),
        ("lost", "of these, those that it does not survive"),
        ("unknown", "of these, those for which the limits left no answer"),
        ("worst_objective", "largest objective after a failure that it survives"),
        ("most_moved", "largest number of processes that a failure moves"),
        ("proven", "1 if every answer is proven, else 0"),
    ],
};
