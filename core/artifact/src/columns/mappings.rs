//! Columns of mappings, their metrics, schedules, and the files exported from them.

use super::form::{KindForm, TableForm, always, column, files, given};

const CONVERGENCE: TableForm = always(
    "convergence",
    &[
        column("island", "u32", "island of the search, from 0"),
        column("evaluations", "u64", "evaluations of this island so far"),
        column("cost", "f64", "best objective of the island so far"),
    ],
);

pub(super) const MAPPING: KindForm = KindForm {
    kind: "mapping",
    summary: "A process mapping: the slot of every rank.",
    tables: &[
        always(
            "ranks",
            &[
                column("rank", "u32", "MPI rank"),
                column("slot", "u32", "slot of the machine"),
                column("host", "text", "name of the host"),
                column("core", "u32?", "core of the host, where cores are known"),
            ],
        ),
        always(
            "hosts",
            &[
                column("host", "text", "name of a host"),
                column("first_slot", "u32", "its first slot"),
                column("slots", "u32", "number of its slots"),
            ],
        ),
        CONVERGENCE,
    ],
    metrics: &[
        ("bound", "`map/exact`: lower bound of F"),
        ("gap", "`map/exact`: (F − bound) / bound"),
        ("proven", "`map/exact`: 1 if the mapping is proven optimal, else 0"),
        ("nodes", "`map/exact`: nodes of the search tree"),
        ("latency_s", "weight time: latency of the machine that was used"),
        ("bandwidth_bytes_per_s", "weight time: bandwidth of the machine that was used"),
        ("makespan", "`objective = \"makespan\"`: time at which the last task finishes"),
        ("lower_bound", "`objective = \"makespan\"`: lower bound of the makespan of all mappings"),
        ("predicted_s", "`objective = \"predicted-time\"`: predicted run time"),
        ("replays", "`objective = \"predicted-time\"`: replays after those of the candidates"),
    ],
};

pub(super) const METRICS: KindForm = KindForm {
    kind: "metrics",
    summary: "A mapping compared with baselines; a bound; or metrics of several mappings compared with run times.",
    tables: &[always(
        "placements",
        &[
            column("placement", "text", "`mapping`, `linear`, `round-robin` or `random`"),
            column(
                "sample",
                "u32",
                "number of the random mapping, or of the mapping where several have run times",
            ),
            column(
                "*",
                "f64?",
                "one column per metric; for mappings with run times also `measured_s`, their median, `measured_low_s` and `measured_high_s`, its interval, and `predicted_s`",
            ),
        ],
    )],
    metrics: &[
        ("F", "communication cost of the mapping; every other metric of mappings likewise"),
        ("F_linear", "the same of the linear mapping"),
        ("F_round_robin", "the same of the round-robin mapping"),
        ("F_random", "mean of the random mappings"),
        ("most_gain", "of a bound: largest fraction of the run time that a placement can gain"),
        (
            "uncounted_s",
            "of a bound without `most_gain`: seconds of a rank for the ends of its messages, which the bound leaves out",
        ),
        ("bound_s", "of a bound: no run is shorter; also `bound_computation_s` and other parts"),
        ("reference_s", "of a bound: the run time that it is compared with"),
        ("contended", "of a bound: 1 if messages share links, 0 if the machine has no links"),
        ("F_over_linear", "F / F_linear; also `_over_round_robin` and `_over_random`"),
        (
            "spearman_F",
            "of run times: Spearman's ρ of F and seconds; likewise of every metric, and `predicted_s`",
        ),
        ("kendall_F", "of run times: Kendall's τ-b of F and seconds; likewise of all others"),
        ("kendall_beyond_noise_F", "the same of the pairs of mappings that differ by more than the noise"),
        (
            "regret_F",
            "of run times: seconds of the mapping with the smallest F / fewest seconds − 1; likewise of all others",
        ),
        ("prediction_error", "of run times: median of |predicted / measured − 1|"),
        ("mappings", "of run times: mappings with a run time; also `pairs` and `pairs_beyond_noise`"),
    ],
};

pub(super) const PREDICTION: KindForm = KindForm {
    kind: "prediction",
    summary: "The predicted run time of a program under a mapping.",
    tables: &[
        always(
            "ranks",
            &[
                column("rank", "u32", "MPI rank"),
                column("slot", "u32", "slot of the machine"),
                column("computing_s", "f64", "seconds of computation"),
                column("sending_s", "f64", "seconds of overheads and of sends that block"),
                column("waiting_s", "f64", "seconds of waiting for messages"),
                column("finish_s", "f64", "when the rank ends, in seconds"),
            ],
        ),
        always(
            "links",
            &[
                column("link", "u32", "link of the machine that messages cross"),
                column("source", "text", "node that sends"),
                column("destination", "text", "node that receives"),
                column("bytes", "f64", "bytes that cross the link"),
                column("saturated", "f64", "share of the run time at full capacity"),
            ],
        ),
        given(
            "intervals",
            "with `timeline`",
            &[
                column("rank", "u32", "MPI rank"),
                column("start_s", "f64", "begin, in seconds"),
                column("finish_s", "f64", "end, in seconds"),
                column("activity", "text", "computing, sending or waiting"),
                column("peer", "u32?", "the other rank"),
            ],
        ),
    ],
    metrics: &[
        ("seconds", "predicted run time"),
        ("replayed_s", "instead, if the replay was stopped: how far it came"),
        ("seconds_linear", "the same of the linear mapping; also `_round_robin`"),
        ("seconds_over_linear", "seconds / seconds_linear; also `_over_round_robin`"),
        ("recorded_s", "run time of the traced program as recorded, under the mapping that it had"),
        ("seconds_over_recorded", "seconds / recorded_s"),
        ("contended", "1 if messages share links, 0 if the machine has no links"),
        ("calibrated", "1 if costs of messages were measured or given, 0 if only the network costs time"),
        ("critical_computation_s", "computation on the critical path"),
        ("critical_overhead_s", "overheads of messages on the critical path"),
        ("critical_latency_s", "latency of links on the critical path"),
        ("critical_bandwidth_s", "transfer time on the critical path"),
        ("critical_waiting_s", "waiting for other ranks on the critical path"),
    ],
};

pub(super) const SCHEDULE: KindForm = KindForm {
    kind: "schedule",
    summary: "The processor and the start time of every task.",
    tables: &[
        always(
            "tasks",
            &[
                column("task", "u32", "task of the task DAG"),
                column("processor", "u32", "processor that runs it"),
                column("turn", "u32", "position of the task on the processor, from 0"),
                column("start", "f64", "start time, in the unit of the work"),
                column("finish", "f64", "finish time, in the unit of the work"),
                column("waits_for", "u32?", "task that keeps this one from starting earlier"),
                column("name", "text", "name of the task; written only if tasks have names"),
                column("process", "u32?", "MPI rank of the task; written only for traced programs"),
                column("segment", "u32?", "position of the task within its MPI rank"),
            ],
        ),
        always(
            "processors",
            &[
                column("processor", "u32", "processor, from 0"),
                column("name", "text", "its name"),
                column("available", "f64", "time at which it becomes available"),
                column("slot", "u32?", "slot of the machine, where one is connected"),
            ],
        ),
        CONVERGENCE,
    ],
    metrics: &[
        ("makespan", "finish time of the last task"),
        ("critical_work", "computation on the critical path; the rest of the makespan is messages"),
        ("recorded_s", "run time of the traced program as recorded, to compare the makespan with"),
        ("predicted_s", "run time in the model of `predict/time`, if a program is connected"),
        ("predicted_computation_s", "computation on its critical path"),
        ("predicted_messages_s", "latency and transfer of messages on it, each alone on its links"),
        ("predicted_overhead_s", "overheads of messages at both ends on it"),
        ("predicted_waiting_s", "waiting for other ranks and for shared links on it"),
        ("lower_bound", "no schedule has a smaller makespan"),
        ("gap", "(makespan − lower bound) / lower bound"),
        ("proven", "1 if the schedule is proven optimal, else 0"),
        ("idle", "fraction of time that processors idle"),
        ("evaluations", "schedules that the search evaluated"),
    ],
};

pub(super) const LAUNCH_FILE: KindForm =
    files("launch-file", "A file for an MPI launcher or a batch system, with the command that uses it.");

pub(super) const TEXT_FILE: KindForm = files("text-file", "A text file in a format of another program.");

pub(super) const TRIALS: KindForm = KindForm {
    kind: "trials",
    summary: "Measured run times of a program under several mappings. `files/N/` has the output of run N, counted from 0 in the order \
              of the table, and what the program wrote into the folder `HOPMAP_TRIAL`.",
    tables: &[
        always(
            "mappings",
            &[
                column("name", "text", "name of the mapping; the first one is the baseline"),
                column("digest", "text", "digest of the mapping"),
            ],
        ),
        always(
            "runs",
            &[
                column("mapping", "text", "name of the mapping"),
                column("block", "u32?", "block, in which each mapping runs once; empty for the warm-up"),
                column(
                    "choice",
                    "text",
                    "`yes` if the block served to choose the best mapping: it does not count for `gain`",
                ),
                column("seconds", "f64?", "run time in seconds"),
                column("mpi_s", "f64?", "seconds inside MPI, the mean of all ranks, with `record`"),
                column("lateness_s", "f64?", "how late an emulated network was, with `lateness`"),
                column("idle", "f64?", "idle fraction of the processors of the host that ran the launcher"),
                column(
                    "exit",
                    "u32?",
                    "exit status, 128 + the signal for one that was killed, 124 after `timeout_s`; empty if it was stopped with the trial",
                ),
                column("complete", "text", "`yes`, or `no` if it failed or its run time is not known"),
            ],
        ),
        given(
            "looks",
            "the trial was stopped early",
            &[column("runs", "u32", "number of runs after which it was stopped and its results were shown")],
        ),
    ],
    metrics: &[
        ("runs", "measured runs, without the warm-up"),
        ("incomplete", "runs that failed, or whose time is not known"),
        ("idle", "smallest idle fraction of a measured run"),
        ("lateness_s", "largest lateness of a measured run"),
        ("failed", "part of the measured runs of a compared mapping that failed, the larger of both"),
        (
            "gain",
            "1 − time / time of the first mapping, median of the pairs without failures; with two mappings, or a choice, and at \
             most 5 % failed runs of each",
        ),
        (
            "gain_low",
            "lower end of its 95 % interval, from 6 pairs on, in which failed runs lose; also `gain_high`",
        ),
        ("pairs", "blocks in which both mappings ran and at most one failed, without those of the choice"),
        ("time_step_s", "last digit of the times that the program printed, in seconds, if it printed them"),
        ("precision", "half width of the interval that ends the trial, if asked for"),
        ("most_pairs", "most pairs of the trial, however wide the interval is"),
    ],
};
