//! The expansion of Open MPI's collective operations against the messages that it sends: `pml/monitoring`
//! counts them per pair of ranks. Its profiles have the sums as lines `I`, except that the direct messages of
//! alltoalls, which Open MPI sends with persistent requests, are lines `E`, as if the program had sent them.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hopmap_collectives::{Algorithm, Algorithms, Collective, Convention, Operation, Rules, expand};
use hopmap_test_support::{program, skipped, system_tests};

/// Messages and bytes by source and destination.
type Pairs = BTreeMap<(u32, u32), (u64, u64)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Case {
    operation: Operation,
    bytes: u64,
    root: u32,
}

/// Lets root run programs.
const AS_ROOT: [(&str, &str); 2] = [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];

/// Sizes between the limits of the table for 2 to 31 processes. Those that are not odd are sent as doubles.
const SIZES: [u64; 7] = [8, 120, 960, 5_001, 20_481, 65_537, 280_001];

/// Algorithms of `coll/tuned` by number; a gap is one that hopmap does not have for the operation.
const NUMBERED: [(Operation, &[&str]); 14] = [
    (Operation::Barrier, &["linear", "", "recursive-doubling", "dissemination", "", "tree"]),
    (
        Operation::Broadcast,
        &[
            "linear",
            "chain",
            "chain",
            "split-binary",
            "binary",
            "binomial-doubling",
            "knomial",
            "scatter-doubling",
            "scatter-ring",
        ],
    ),
    (Operation::Gather, &["linear", "binomial", "linear-sync"]),
    (Operation::Scatter, &["linear", "binomial", "linear"]),
    (Operation::AllGather, &["", "bruck", "recursive-doubling", "ring", "neighbour-exchange"]),
    (Operation::AllGatherV, &["", "bruck", "ring", "neighbour-exchange"]),
    (Operation::AllToAll, &["linear", "pairwise", "bruck", "linear"]),
    (Operation::AllToAllV, &["linear", "pairwise"]),
    (Operation::AllReduce, &["linear", "", "recursive-doubling", "ring", "ring", "rabenseifner"]),
    (
        Operation::Reduce,
        &["linear", "chain", "chain", "binary", "binomial", "in-order-binary", "rabenseifner"],
    ),
    (Operation::ReduceScatter, &["", "recursive-halving", "ring", "butterfly"]),
    (Operation::ReduceScatterBlock, &["", "recursive-doubling", "recursive-halving", "butterfly"]),
    (Operation::Scan, &["chain"]),
    (Operation::ExclusiveScan, &["chain"]),
];

/// Open MPI 4.1 with the compiled program, or a skip.
struct OpenMpi {
    folder: tempfile::TempDir,
    mpirun: PathBuf,
}

impl OpenMpi {
    fn find() -> Option<Self> {
        if !system_tests() {
            return None;
        }
        let (mpicc, mpirun) = (program("mpicc.openmpi")?, program("mpirun.openmpi")?);
        let version = Command::new(&mpirun).arg("--version").envs(AS_ROOT).output().unwrap();
        if !String::from_utf8_lossy(&version.stdout).contains(") 4.1.") {
            skipped("Open MPI is not 4.1");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/collectives.c");
        let mut compiler = Command::new(mpicc);
        compiler.args(["-O1", "-rdynamic", "-o"]).arg(folder.path().join("program")).arg(source).arg("-ldl");
        assert!(compiler.status().unwrap().success());
        Some(Self { folder, mpirun })
    }

    /// The messages of every case, with these parameters.
    fn count(&self, ranks: u32, cases: &[Case], parameters: &[(String, String)]) -> Vec<Pairs> {
        let files = tempfile::tempdir_in(self.folder.path()).unwrap();
        let at = |name: &str| files.path().join(name);
        let mut mpirun = Command::new(&self.mpirun);
        mpirun.envs(AS_ROOT);
        mpirun.envs(parameters.iter().map(|(name, value)| (format!("OMPI_MCA_{name}"), value)));
        mpirun.env("OMPI_MCA_pml_monitoring_enable", "2").env("OMPI_MCA_pml_monitoring_enable_output", "3");
        mpirun.env("OMPI_MCA_pml_monitoring_filename", at("profile"));
        mpirun.args(["--oversubscribe", "-n", &ranks.to_string()]).arg(self.folder.path().join("program"));
        mpirun.arg(at("counts"));
        mpirun.args(cases.iter().map(|case| format!("{}:{}:{}", case.operation, case.bytes, case.root)));
        let output = mpirun.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

        let mut counted = vec![Pairs::new(); cases.len() + 1];
        let mut profile = Pairs::new();
        for rank in 0..ranks {
            for line in fs::read_to_string(at(&format!("counts.{rank}"))).unwrap().lines() {
                let [case, other, messages, bytes] = numbers(line);
                add(&mut counted[case as usize], (rank, other as u32), (messages, bytes));
            }
            let text = fs::read_to_string(at(&format!("profile.{rank}.prof"))).unwrap();
            let sent = |line: &&str| line.starts_with("I\t") || line.starts_with("E\t");
            for line in text.lines().filter(sent) {
                let [source, other, bytes, messages] = numbers(&line[2..]);
                add(&mut profile, (source as u32, other as u32), (messages, bytes));
            }
        }
        let mut sum = Pairs::new();
        for (pair, count) in counted.iter().flatten() {
            add(&mut sum, *pair, *count);
        }
        assert_eq!(sum, profile, "the counts are those of the profiles");
        counted.split_off(1)
    }
}

/// The first four numbers of a line.
fn numbers(line: &str) -> [u64; 4] {
    let numbers = line.split([' ', '\t']).filter_map(|field| field.parse().ok());
    numbers.take(4).collect::<Vec<u64>>().try_into().unwrap()
}

fn add(pairs: &mut Pairs, pair: (u32, u32), (messages, bytes): (u64, u64)) {
    let sum = pairs.entry(pair).or_default();
    *sum = (sum.0 + messages, sum.1 + bytes);
}

/// The messages of a case by the expansion.
fn expanded(case: Case, ranks: u32, algorithms: &Algorithms) -> Pairs {
    let Case { operation, bytes, root } = case;
    let all = |bytes: u64| vec![bytes; ranks as usize];
    let uneven: Vec<u64> = (0..u64::from(ranks)).map(|rank| bytes + rank).collect();
    let total = bytes * u64::from(ranks);
    let (sent, received) = match operation {
        Operation::GatherV | Operation::AllGatherV => (uneven.clone(), all(uneven.iter().sum())),
        Operation::ScatterV => (all(uneven.iter().sum()), uneven),
        Operation::AllToAllV | Operation::AllToAllW => (all(total), all(total)),
        Operation::ReduceScatter => (all(total), all(bytes)),
        _ => (all(bytes), all(bytes)),
    };
    let convention = Convention::Arguments;
    let collective = Collective { operation, root: Some(root), convention, sent: &sent, received: &received };
    let mut pairs = Pairs::new();
    let sum = |edge: hopmap_model::Edge| {
        add(&mut pairs, (edge.source, edge.destination), (edge.messages, edge.bytes));
    };
    expand(&collective, algorithms, sum).unwrap();
    pairs
}

/// The differences, a line each.
fn differences(ranks: u32, case: Case, algorithm: &str, counted: &Pairs, expected: &Pairs) -> String {
    let mut text = String::new();
    if counted != expected {
        writeln!(text, "{ranks} ranks, {case:?} {algorithm}\n  sent {counted:?}\n  not  {expected:?}")
            .unwrap();
    }
    text
}

#[test]
fn the_rules_give_the_messages_that_open_mpi_sends() {
    let Some(open_mpi) = OpenMpi::find() else { return };
    let rules = Algorithms { rules: Rules::OpenMpi, ..Algorithms::default() };
    let mut problems = String::new();
    for ranks in [2, 3, 5, 8, 12, 16] {
        let of = |operation| SIZES.map(|bytes| Case { operation, bytes, root: 3 % ranks });
        let cases: Vec<Case> = Operation::ALL.into_iter().flat_map(of).collect();
        for (case, counted) in cases.iter().zip(open_mpi.count(ranks, &cases, &[])) {
            problems += &differences(ranks, *case, "", &counted, &expanded(*case, ranks, &rules));
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn every_algorithm_sends_the_messages_of_open_mpis() {
    let Some(open_mpi) = OpenMpi::find() else { return };
    let mut problems = String::new();
    // The butterfly, number 3, differs with 2ᵏ ranks.
    for (ranks, number) in (0..9).map(|number| (12, number)).chain([(8, 3)]) {
        let mut parameters = vec![("coll_tuned_use_dynamic_rules".to_owned(), "1".to_owned())];
        let mut cases = Vec::new();
        for (operation, algorithm) in numbered(number, ranks) {
            let zero = [("segmentsize", 0), ("tree_fanout", 0), ("chain_fanout", 0)];
            let name = format!("coll_tuned_{operation}_algorithm");
            parameters.extend(zero.map(|(of, value)| (format!("{name}_{of}"), value.to_string())));
            parameters.push((name, (number + 1).to_string()));
            cases.extend([768, 4_099].map(|bytes| (Case { operation, bytes, root: 3 }, algorithm)));
        }
        let plain: Vec<Case> = cases.iter().map(|(case, _)| *case).collect();
        for ((case, algorithm), counted) in cases.into_iter().zip(open_mpi.count(ranks, &plain, &parameters))
        {
            let expected = expanded(case, ranks, &chosen(case.operation, algorithm));
            problems += &differences(ranks, case, algorithm, &counted, &expected);
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

/// The algorithms with a number, of the operations that have it for this many ranks.
fn numbered(number: usize, ranks: u32) -> impl Iterator<Item = (Operation, &'static str)> {
    let of = move |(operation, names): (Operation, &[&'static str])| {
        let name = *names.get(number)?;
        let algorithm = Algorithm::of(operation).iter().find(|algorithm| algorithm.name() == name)?;
        algorithm.fits(operation, ranks).then_some((operation, name))
    };
    NUMBERED.into_iter().filter_map(of)
}

fn chosen(operation: Operation, algorithm: &str) -> Algorithms {
    let name = match operation {
        Operation::AllGatherV => "allgather",
        Operation::AllToAllV => "alltoall",
        Operation::ReduceScatterBlock => "reduce_scatter",
        Operation::ExclusiveScan => "scan",
        operation => operation.name(),
    };
    serde_json::from_value(serde_json::json!({ name: algorithm })).unwrap()
}
