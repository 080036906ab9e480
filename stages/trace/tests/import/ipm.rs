//! Reports of IPM.

use super::Files;

/// A task with the given hash entries.
fn task(rank: u32, size: u32, hash: &str) -> String {
    let nkey = hash.matches("<hent").count();
    format!(
        "<task ipm_version=\"2.0.6\" cookie=\"nocookie\" mpi_rank=\"{rank}\" mpi_size=\"{size}\" \
         stamp_init=\"1000.5\" stamp_final=\"100{rank}.75\" username=\"a\" flags=\"0\" pid=\"7\" >\n\
         <job nhosts=\"1\" ntasks=\"{size}\" start=\"1\" final=\"2\" cookie=\"nocookie\" code=\"unknown\" >4711</job>\n\
         <host mach_name=\"unknown\" mach_info=\"x86_64_Linux\" >n0{rank}</host>\n\
         <perf wtime=\"2.50000e+00\" utime=\"1.0e+00\" stime=\"0.0e+00\" mtime=\"5.00000e-01\" gflop=\"0\" gbyte=\"0\" ></perf>\n\
         <cmdline realpath=\"/a\" md5sum=\"\" >./a -x <in \"q\" > out</cmdline>\n\
         <regions n=\"1\" >\n<region label=\"ipm_noregion\" nexits=\"1\" wtime=\"2.5\" utime=\"1\" stime=\"0\" mtime=\"9\" id=\"1\" >\n\
         <func name=\"MPI_Send\" count=\"3\" bytes=\"3.0e+03\" > 1.0e-03 </func>\n</region>\n</regions>\n\
         <hash nlog=\"9\" nkey=\"{nkey}\" >\n{hash}</hash>\n<internal rank=\"{rank}\" ></internal>\n</task>\n"
    )
}

fn entry(call: &str, bytes: &str, orank: &str, count: &str) -> String {
    format!(
        "<hent key=\"0x01\" call=\"{call}\" bytes=\"{bytes}\" orank=\"{orank}\" region=\"1\" callsite=\"0\" \
         count=\"{count}\" tid=\"0\" >1.0e-05 1.0e-06 2.0e-06</hent>\n"
    )
}

fn report(tasks: &[String]) -> String {
    let calltable = "<calltable nsections=\"1\" >\n<entry name=\"MPI_Send\" />\n</calltable>\n";
    let header = "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\n<ipm_job_profile>\n";
    format!("{header}{calltable}{}</ipm_job_profile>\n", tasks.concat())
}

/// Three ranks: 0 sends 4 × 100 and 2 × 8 bytes to 1, 1 sends to 0 and exchanges with 2, 2 only receives.
pub(crate) fn sample() -> String {
    report(&[
        task(
            0,
            3,
            &[
                entry("MPI_Send", "100", "1", "4"),
                entry("MPI_Isend", "8", "1", "2"),
                entry("MPI_Recv", "16", "1", "1"),
                entry("MPI_Allreduce", "8", "0", "5"),
            ]
            .concat(),
        ),
        task(1, 3, &[entry("MPI_Ssend", "16", "0", "1"), entry("MPI_Sendrecv", "32", "2", "3")].concat()),
        task(2, 3, &entry("MPI_Irecv", "0", "0", "3")),
    ])
}

#[test]
fn entries_of_the_hash_are_messages() {
    let read = Files::one(sample()).auto();
    assert_eq!(read.pairs(), [(0, 1, 6, 416), (1, 0, 1, 16), (1, 2, 3, 96)]);
    let graph = read.graph();
    let hosts: Vec<_> = graph.processes.iter().map(|process| process.host.as_deref().unwrap()).collect();
    assert_eq!(hosts, ["n00", "n01", "n02"]);
    assert!(graph.processes.iter().all(|process| process.compute_s == Some(2.0)));
    assert_eq!(graph.duration_s, Some(2.25));
    assert_eq!(
        read.log,
        [
            "format: ipm",
            "warning: collective operations (once per process), which are not counted: 5",
            "warning: calls of MPI_Sendrecv, counted as messages to the rank that IPM records: 3",
            "warning: messages to rank 0, which may be messages to MPI_PROC_NULL (IPM records 0 for both): 1",
        ]
    );
}

/// Once they were dropped without a word.
#[test]
fn what_is_not_counted_and_what_is_missing_is_said() {
    let calls = [
        "MPI_Iallreduce",
        "MPI_Neighbor_alltoall",
        "MPI_Rput",
        "MPI_Wait",
        "fwrite",
        "MPI_Send_c",
        "shmem_put64",
        "MPI_Mrecv",
    ];
    let hash = calls.map(|call| entry(call, "8", "1", "2")).concat();
    let text = report(&[task(0, 2, &hash).replace("nkey=\"8\"", "nkey=\"10\""), task(1, 2, "")]);
    let expected = [
        "format: ipm",
        "warning: collective operations (once per process), which are not counted: 4",
        "warning: remote memory accesses, which are not counted: 2",
        "warning: calls of MPI_Send_c with 16 bytes, which are not counted: 2",
        "warning: calls of shmem_put64 with 16 bytes, which are not counted: 2",
        "warning: entries of the hash that the report announces (`nkey`), but does not have: 2",
        "warning: no messages between ranks were recorded",
    ];
    assert_eq!(Files::one(text).auto().log, expected);
}

#[test]
fn incomplete_reports_are_rejected() {
    let complete = sample();
    let terse = complete.replace("<hash", "<hush").replace("<hent", "<hunt");
    for (text, what) in [
        (terse, "the report has totals per call, but no receivers"),
        (report(&[task(0, 2, "")]), "rank 1 of 2 is missing"),
        (complete[..complete.len() - 200].to_owned(), "the file ends inside rank 2"),
        (report(&[]), "the file does not contain a task"),
    ] {
        assert_eq!(Files::one(text).refused(), format!("trace: {what}"));
    }
    let more = Files::one(complete.replace("ntasks=\"3\"", "ntasks=\"4\"")).refused();
    assert_eq!(more, "trace:7: the job has 4 tasks (`ntasks`), but 3 ranks (`mpi_size`)");
    let help = Files::one(report(&[task(0, 2, "")])).auto().result.unwrap_err().1;
    assert!(help.ends_with("IPM writes them with IPM_REPORT=full and IPM_LOG=full"), "{help}");
}

#[test]
fn invalid_lines_are_rejected_with_their_number() {
    for (hash, what) in [
        (entry("MPI_Send", "8", "2", "1"), "17: the orank `2` is not below 2"),
        (entry("MPI_Send", "8", "-1", "1"), "17: the orank `-1` is negative"),
        (entry("MPI_Send", "-8", "1", "1"), "17: the number of bytes `-8` is negative"),
        (entry("MPI_Send", "8", "1", "x"), "17: the count `x` is not an integer"),
        ("<hent call=\"MPI_Send\" bytes=\"1\" orank=\"1\" >".into(), "17: the count is missing"),
        ("<hent bytes=\"1\" >".into(), "17: the call is missing"),
        ("<task mpi_rank=\"1\" mpi_size=\"2\" >".into(), "17: a task begins inside another"),
        (
            "<taskcopy mpi_rank=\"1\" cluster_rank=\"0\"></taskcopy>".into(),
            "17: a clustered report omits the messages of similar ranks",
        ),
    ] {
        let text = report(&[task(0, 2, &hash), task(1, 2, "")]);
        assert_eq!(Files::one(text).refused(), format!("trace:{what}"));
    }
    let twice = report(&[task(0, 2, ""), task(0, 2, "")]);
    assert!(Files::one(twice).refused().ends_with("rank 0 is duplicated"));
    let others = report(&[task(0, 2, ""), task(1, 3, "")]);
    assert!(Files::one(others).refused().ends_with("tasks have different values of `mpi_size`"));
    let outside = report(&[task(0, 1, ""), entry("MPI_Send", "1", "0", "1")]);
    assert!(Files::one(outside).refused().ends_with("`hent` outside of a task"));
    let most = "9223372036854775807";
    let much = report(&[task(0, 1, &entry("MPI_Send", most, "0", "3"))]);
    assert_eq!(Files::one(much).refused(), "trace:17: the messages or bytes of all pairs exceed 64 bits");
}
