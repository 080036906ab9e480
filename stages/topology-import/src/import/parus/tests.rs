use super::*;
use crate::import::Format;
use crate::import::samples::import_known;

/// Two processes on `a` and one on `b`; messages from process 1 to process 0 are slower.
fn text(test: &str, kind: &str, matrices: &str) -> String {
    format!(
        "processors 3\n\ntest type \"{test}\"\ndata type \"{kind}\"\nbegin message length 0\nend message length 300\n\
         step length 100\nnoise message length 0\nnumber of noise messages 0\nnumber of noise processes 0\n\
         number of repeates 7\n\nhosts:\na\nb\na\n\n{matrices}"
    )
}

fn matrix(length: u32, slow: f64, other: f64) -> String {
    let other = format!("{other:e}");
    format!("Message length {length}\n-5 {slow:e} {other}\n{other} nan {other}\n{other} {other} 1e300\n\n")
}

fn import(text: &str, params: &ImportParams) -> Result<Imported, String> {
    import_known(Format::Parus, text, params)
}

/// Nanoseconds from process 1, on `b`, to process 0, on `a`, and back.
fn there_and_back(test: &str, bytes: Option<u64>) -> [i64; 2] {
    let matrices = [matrix(0, 2e-6, 1e-6), matrix(100, 4e-6, 1e-6), matrix(200, 5e-6, 0.5e-6)].concat();
    let params = ImportParams { cost: bytes.map(|_| CostMetric::Time), bytes, ..ImportParams::default() };
    let system = import(&text(test, "median", &matrices), &params).unwrap().system;
    // Slots of `a` come first.
    assert_eq!(system.hosts().map(|host| host.2).collect::<Vec<_>>(), [2, 1]);
    [(2, 0), (0, 2)].map(|(from, to)| (system.costs().between(from, to) * 1000.0).round() as i64)
}

#[test]
fn times_are_one_way_by_test_and_length() {
    assert_eq!(there_and_back("one_to_one", None), [1000, 500]);
    assert_eq!(there_and_back("all_to_all", None), [2000, 1000]);
    assert_eq!(there_and_back("send_recv_and_recv_send", Some(100)), [2000, 500]);
    // The reply is always short: 4 µs there and 1 µs back give 3 µs.
    assert_eq!(there_and_back("one_to_one", Some(100)), [3000, 500]);
    assert_eq!(there_and_back("one_to_one", Some(150)), [3500, 375]);
    assert_eq!(there_and_back("one_to_one", Some(400)), [6000, 250]);
}

#[test]
fn invalid_times_are_rejected() {
    let default = ImportParams::default();
    let whole = matrix(0, 2e-6, 1e-6);
    assert!(
        import(&text("one_to_one", "deviation", &whole), &default).unwrap_err().contains("instead of times")
    );
    for (slow, name) in [(-1.0, "-1"), (f64::NAN, "NaN"), (2_261_634.5, "2261634.5"), (f64::INFINITY, "inf")]
    {
        let problem = import(&text("one_to_one", "average", &matrix(7, slow, 1e-6)), &default).unwrap_err();
        let expected =
            format!("the time of messages of 7 bytes from process 1 (b) to process 0 (a) is {name} seconds");
        assert!(problem.contains(&expected), "{problem}");
    }
    let notes = import(&text("one_to_one", "min", &whole), &default).unwrap().notes;
    assert!(
        notes[0].contains("minima") && notes.iter().any(|note| note.contains("2 message lengths")),
        "{notes:?}"
    );
    let hops = ImportParams { cost: Some(CostMetric::Hops), ..ImportParams::default() };
    assert!(import(&text("one_to_one", "min", &whole), &hops).unwrap_err().contains("cannot be `hops`"));
    let notes = import(&text("one_to_one", "median", &matrix(0, 0.0, 0.0)), &default).unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("all costs are zero")), "{notes:?}");
}
