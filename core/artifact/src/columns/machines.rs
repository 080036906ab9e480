//! Columns of machine topologies and measurements.

use super::form::{KindForm, always, column, given};

pub(super) const SYSTEM_GRAPH: KindForm = KindForm {
    kind: "system-graph",
    summary: "A machine topology: hosts, switches, links, slots, and the cost between slots.",
    tables: &[
        always(
            "nodes",
            &[
                column("id", "u32", "node, from 0"),
                column("name", "text", "name of the host or switch"),
                column("kind", "text", "`host` or `switch`"),
                column("state", "text", "`up` or `down`; written only if a node is down"),
                column("address", "text?", "address in the fabric, where one is known"),
            ],
        ),
        always(
            "links",
            &[
                column("source", "u32", "node at which the link begins"),
                column("destination", "u32", "node at which it ends"),
                column("latency_s", "f64?", "latency in seconds"),
                column("bandwidth_bytes_per_s", "f64?", "bandwidth in bytes per second"),
                column("source_port", "u32?", "port at the source, where ports are known"),
                column("destination_port", "u32?", "port at the destination, where ports are known"),
                column("state", "text", "`up` or `down`; written only if a link is down"),
            ],
        ),
        always(
            "slots",
            &[
                column("slot", "u32", "slot, from 0"),
                column("host", "u32", "node of its host"),
                column("core", "u32", "core of the host"),
            ],
        ),
        given(
            "levels",
            "for costs by level, and inside hosts where costs follow routes",
            &[
                column("level", "u32", "level, from the innermost"),
                column("cost", "f64", "cost between slots that first share this level"),
            ],
        ),
        given(
            "groups",
            "with `levels`",
            &[
                column("level", "u32", "level"),
                column("slot", "u32", "slot"),
                column("group", "u32", "group of the slot on this level"),
            ],
        ),
        given(
            "costs",
            "for a matrix of costs",
            &[
                column("source", "u32", "slot that sends"),
                column("destination", "u32", "slot that receives"),
                column("cost", "f64", "cost from one to the other"),
            ],
        ),
        given(
            "forwarding",
            "for a fabric with static forwarding tables",
            &[
                column("node", "u32", "node that forwards"),
                column("last_link", "u32", "link into the destination host: the address"),
                column("link", "u32", "link that the node sends on"),
            ],
        ),
        given(
            "calibration",
            "for a measured machine (`topology/probe`, `topology/levels`)",
            &[
                column(
                    "cost",
                    "text",
                    "`send`, `isend`, `recv`: seconds at the ends; `latency-factor`, `bandwidth-factor`; `eager-limit` in \
                     bytes; `memory-latency` and `memory-bandwidth` within a host",
                ),
                column("above_bytes", "u64", "the row applies to longer messages, up to the next row"),
                column("value", "f64", "value for an empty message"),
                column("per_byte", "f64", "what every byte adds"),
            ],
        ),
        given(
            "traits",
            "where nodes have traits (`route/*`)",
            &[
                column("node", "u32", "node"),
                column("performance", "f64?", "performance of a host"),
                column("switch_type", "u32?", "1: one table for the switch; 2: one for each port"),
            ],
        ),
        given(
            "capabilities",
            "where nodes have traits",
            &[column("node", "u32", "host"), column("capability", "text", "a capability of it")],
        ),
        given(
            "devices",
            "where nodes have traits",
            &[
                column("node", "u32", "host"),
                column("device", "text", "kind of device"),
                column("count", "u32", "number of devices"),
            ],
        ),
    ],
    metrics: &[
        ("hosts", "number of hosts"),
        ("links", "number of directed links"),
        ("slots", "number of slots"),
    ],
};

pub(super) const MEASUREMENTS: KindForm = KindForm {
    kind: "measurements",
    summary: "Measured message times between hosts, and between the cores of a host.",
    tables: &[
        always(
            "endpoints",
            &[
                column("endpoint", "u32", "endpoint, from 0"),
                column("host", "text", "name of its host"),
                column("core", "u32", "core of the host"),
                column("state", "text", "`up`, or `down` if it did not answer"),
            ],
        ),
        always(
            "samples",
            &[
                column("source", "u32", "endpoint that sends first"),
                column("destination", "u32", "endpoint that replies"),
                column("phase", "text", "`latency`, `isolated`, `loaded` or `alone`"),
                column("bytes", "u64", "length of the messages"),
                column("messages", "u64", "number of messages"),
                column("minimum_s", "f64", "shortest time, in seconds"),
                column("first_decile_s", "f64", "first decile"),
                column("median_s", "f64", "median"),
                column("ninth_decile_s", "f64", "ninth decile"),
                column("maximum_s", "f64", "longest time"),
            ],
        ),
        always(
            "fits",
            &[
                column("source", "u32", "endpoint that sends"),
                column("destination", "u32", "endpoint that receives"),
                column("from_bytes", "u64", "length from which this fit holds"),
                column("latency_s", "f64", "L of t = L + D / S"),
                column("bandwidth_bytes_per_s", "f64?", "S of t = L + D / S"),
            ],
        ),
        given(
            "overheads",
            "where MPI calls were measured",
            &[
                column("source", "u32", "endpoint that calls"),
                column("destination", "u32", "the other endpoint"),
                column("call", "text", "`send`, `isend`, or `recv` of a message that has arrived"),
                column("bytes", "u64", "length of the messages"),
                column("messages", "u64", "number of messages"),
                column("minimum_s", "f64", "shortest time of the call, in seconds"),
                column("median_s", "f64", "median"),
                column("maximum_s", "f64", "longest time"),
            ],
        ),
        given(
            "streams",
            "where all hosts of a group sent at once",
            &[
                column("step", "u32", "streams with the same number ran at once"),
                column("source", "u32", "endpoint that sends"),
                column("destination", "u32", "endpoint that receives"),
                column("bytes", "u64", "of all its messages"),
                column(
                    "seconds",
                    "f64",
                    "until the last message arrived; the streams of a step begin together",
                ),
            ],
        ),
    ],
    metrics: &[
        ("hosts", "number of hosts"),
        ("pairs", "pairs with a latency"),
        ("coverage", "fraction of the hosts that were measured"),
        ("eager_limit_bytes", "length from which a send between hosts waits for its receiver, if found"),
    ],
};
