use super::*;
use crate::netcdf::tests::{Data, Writer};

fn text(matrices: &str) -> String {
    format!(
        "processors 2 // of a job\n\ntest type \"one_to_one\"\ndata type \"minimum\"\nbegin message length 0\nend message length 25\n\
         step length 10\nnoise message length 0\nnumber of noise messages 0\nnumber of noise processes 0\n\
         number of repeates 7\n\nhosts:\na\nb/* the second */\n\n{matrices}"
    )
}

fn read(text: &str) -> Result<NetworkFile, FileError> {
    NetworkFile::read(text.as_bytes())
}

const FIRST: &str = "Message length 0\n0.0 1e-6\n-1 nan\n";

#[test]
fn text_files_are_read() {
    let file = read(&text(&format!("{FIRST}\nMessage length 10\n1 2\n3 4\n"))).unwrap();
    assert_eq!(
        (file.processes, file.hosts, file.test.as_str()),
        (2, vec!["a".into(), "b".into()], "one_to_one")
    );
    assert_eq!((file.kind, file.lengths, file.expected_lengths), (Kind::Minimum, vec![0, 10], 3));
    assert_eq!(file.seconds[1], [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(file.seconds[0][1..3], [1e-6, -1.0]);
}

#[test]
fn an_aborted_test_keeps_complete_lengths() {
    assert_eq!(read(&text(&format!("{FIRST}Message length 10\n1 2\n3"))).unwrap().lengths, [0]);
    assert!(read(&text("")).unwrap_err().problem.contains("does not contain measurements"));
    assert!(
        read(&text("Message length 10\n1 2\n3"))
            .unwrap_err()
            .problem
            .contains("does not contain measurements")
    );
}

#[test]
fn errors_have_lines() {
    let broken = |from: &str, to: &str| {
        let text = text(FIRST);
        assert!(text.contains(from));
        let error = read(&text.replace(from, to)).unwrap_err();
        (error.line.unwrap(), error.problem)
    };
    assert_eq!(
        broken("step length", "step size"),
        (7, "expected `length` of `step length`, found `size`".into())
    );
    assert_eq!(broken("processors 2", "processors -2").0, 1);
    assert_eq!(broken("processors 2", "processors 99999999").1, "there are more than 16384 processes");
    assert_eq!(broken("\"one_to_one\"", "\"one_to_one").1, "`test type` must be a text in quotation marks");
    assert_eq!(broken("1e-6", "1e-6x"), (18, "a time is `1e-6x`, which is not a valid number here".into()));
    assert_eq!(broken("processors 2", "processors 3").0, 17);
    assert!(read("\u{0}").is_err() && read("").is_err() && NetworkFile::read(b"processors \xff").is_err());
    let again = read(&text(&FIRST.repeat(2))).unwrap_err();
    assert!(again.problem.contains("are not ascending"));
}

fn netcdf(is_new: bool) -> Writer {
    let (test, kind) = match is_new {
        true => (Data::Text("one_to_one\0"), Data::Int(2)),
        false => (Data::Int(1), Data::Text("median\0____")),
    };
    let dimensions = |data: &Data| if matches!(data, Data::Text(_)) { vec![3] } else { vec![] };
    let mut variables = vec![
        ("proc_num", vec![], Data::Int(2)),
        ("test_type", dimensions(&test), test),
        ("data_type", dimensions(&kind), kind),
        ("begin_mes_length", vec![], Data::Int(100)),
        ("end_mes_length", vec![], Data::Int(300)),
        ("step_length", vec![], Data::Int(100)),
        ("num_repeates", vec![], Data::Int(5)),
    ];
    let more =
        if is_new { ["random_option_1", "random_option_2"] } else { ["noise_mes_length", "num_noise_mes"] };
    variables.extend(more.map(|name| (name, vec![], Data::Int(0))));
    variables.push(("data", vec![2, 0, 1], Data::Doubles((0..8).map(f64::from).collect())));
    let dimensions = vec![("x", 2), ("y", 2), ("n", 0), ("strings", 11)];
    Writer { dimensions, variables, records: 2, version: 2 }
}

#[test]
fn both_schemas_of_netcdf_give_the_same_result() {
    let [old, new] = [false, true].map(|is_new| NetworkFile::read(&netcdf(is_new).bytes()).unwrap());
    assert_eq!(old, new);
    assert_eq!((old.processes, old.lengths.as_slice(), old.kind.clone()), (2, &[100, 200][..], Kind::Median));
    assert_eq!((old.test.as_str(), old.seconds[1].as_slice()), ("one_to_one", &[4.0, 5.0, 6.0, 7.0][..]));
    let mut old = old;
    old.set_hosts("a\nb\n").unwrap();
    assert_eq!(old.hosts, ["a", "b"]);
    assert!(old.set_hosts("a\n").unwrap_err().problem.contains("1 hosts for 2 processes"));
}

#[test]
fn other_netcdf_is_rejected() {
    let mut all = netcdf(true);
    if let Some((_, dimensions, _)) = all.variables.last_mut() {
        dimensions.push(1);
    }
    let problem = |writer: &Writer| NetworkFile::read(&writer.bytes()).unwrap_err().problem;
    assert!(problem(&all).contains("individual measurements"));
    let mut other = netcdf(true);
    other.variables[0].2 = Data::Int(3);
    assert!(problem(&other).contains("[2, 2, 2] for 3 processes"));
    other.variables[0].2 = Data::Int(-3);
    assert!(problem(&other).contains("missing number `proc_num`"));
    other.variables.pop();
    assert!(problem(&other).contains("missing variable `data`"));
    let mut empty = netcdf(false);
    empty.records = 0;
    assert!(problem(&empty).contains("does not contain measurements"));
}

#[test]
fn the_file_of_hosts_has_the_prefix_of_the_run() {
    assert_eq!(hosts_of_netcdf("a_b_median.nc").as_deref(), Some("a_b_hosts.txt"));
    assert_eq!(hosts_of_netcdf("x_measurements_amount.nc").as_deref(), Some("x_hosts.txt"));
    assert_eq!(hosts_of_netcdf("x.nc"), None);
}

#[test]
fn kinds_have_several_names() {
    assert_eq!(Kind::named("minimum"), Kind::named("min"));
    assert_eq!(Kind::named("Average"), Kind::Average);
    assert_eq!(Kind::named("sum"), Kind::Other("sum".into()));
}
