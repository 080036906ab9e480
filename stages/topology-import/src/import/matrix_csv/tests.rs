use super::*;
use crate::import::Format;
use crate::import::samples::import_known;

fn with(text: &str, params: &ImportParams) -> Result<Imported, String> {
    import_known(Format::Matrix, text, params)
}

fn import(text: &str) -> Result<Imported, String> {
    with(text, &ImportParams::default())
}

fn hosts(text: &str) -> Vec<(String, u32, u32)> {
    let system = import(text).unwrap().system;
    assert_eq!(system.costs().block(&[0, 1]), [0.0, 2.5, 3.0, 1.0], "{text:?}");
    let slot =
        |slot: &hopmap_model::Slot| (system.nodes[slot.host as usize].name.clone(), slot.host, slot.core);
    system.slots.iter().map(slot).collect()
}

#[test]
fn all_notations_are_equivalent() {
    let plain = [("host-0".to_owned(), 0, 0), ("host-1".to_owned(), 1, 0)];
    for text in [
        "0,2.5\n3,1\n",
        "# costs\n0; 2.5\r\n\r\n3; 1",
        "0\t2.5\t\n3\t1\t\n",
        "  0   2.5  \n 3 1e0\n",
        "00,2.50\n+3,1.\n",
    ] {
        assert_eq!(hosts(text), plain, "{text:?}");
    }
    let named = [("n1".to_owned(), 0, 0), ("n2".to_owned(), 1, 0)];
    for text in [
        "n1,n2\n0,2.5\n3,1\n",
        ",n1,n2\nn1,0,2.5\nn2,3,1\n",
        "name,\"n1\",\"n2\"\nn1,0,2.5\nn2,3,1\n",
        "n1 n2\nn1 0 2.5\nn2 3 1\n",
        "n1,0,2.5\nn2,3,1\n",
    ] {
        assert_eq!(hosts(text), named, "{text:?}");
    }
    assert_eq!(hosts(",0,1\n0,0,2.5\n1,3,1\n"), [("0".to_owned(), 0, 0), ("1".to_owned(), 1, 0)]);
    assert_eq!(hosts("n:3,n:5\n0,2.5\n3,1\n"), [("n".to_owned(), 0, 3), ("n".to_owned(), 0, 5)]);
    assert_eq!(hosts("n,n\n0,2.5\n3,1\n"), [("n".to_owned(), 0, 0), ("n".to_owned(), 0, 1)]);
    assert_eq!(hosts("n:3,n\n0,2.5\n3,1\n"), [("n:3".to_owned(), 0, 0), ("n".to_owned(), 1, 0)]);
}

#[test]
fn rows_without_names_are_slots_on_request() {
    let params = |slots| ImportParams { slots: u32::into(slots), ..ImportParams::default() };
    let system = with("0,1\n1,0\n", &params(2)).unwrap().system;
    assert_eq!((system.nodes.len(), system.slots[1].core), (1, 1));
    assert!(with("0,1\n1,0\n", &params(3)).unwrap_err().contains("does not divide the 2 rows"));
    assert!(with("a,b\n0,1\n1,0\n", &params(2)).unwrap_err().contains("has no effect"));
}

#[test]
fn invalid_matrices_are_reported_with_a_line() {
    let cases = [
        ("", "no matrix"),
        ("0,1\n1,-2\n", ":2: `-2` is not a valid cost"),
        ("0,1\n1,NaN\n", ":2: `NaN` is not a valid cost"),
        ("0,1\n1,inf\n", ":2: `inf` is not a valid cost"),
        ("0,1\n1,\n", ":2: `` is not a valid cost"),
        ("0,1,2\n1,2\n3,4\n", "3 rows of 2 columns"),
        ("0,1\n1,2,3\n", ":1: there are 2 rows of 3"),
        ("0,1,2\n1,2,3\n1,2\n", ":3: the row has 2 costs, the previous rows have 3"),
        ("0,1\n1,0\n1,0\n1,0\n", ":4: there are more rows than the 2 columns"),
        ("a,b\n0,1\n", ":1: `a` is not a valid cost"),
        (",a,b\na,0,1\nc,1,0\n", ":3: the row is named `c`, but the corresponding column `b`"),
        ("a,b,a\n0,1,1\n1,0,1\n1,1,0\n", ":1: the slots of host `a` are not consecutive"),
        ("a:1,a:1\n0,1\n1,0\n", ":1: duplicate `a:1`"),
        ("a b,c\n0,1\n1,0\n", ":1: `a b` is not a valid host name"),
        ("a,b,c\n0,1\n1,0\n", ":1: there are 3 names for 2 columns"),
    ];
    for (text, problem) in cases {
        let found = import(text).unwrap_err();
        assert!(found.contains(problem), "{text:?}: {found}");
    }
}

#[test]
fn other_tables_are_not_detected_as_matrices() {
    for text in [
        "source,destination\n0,1\n1,0\n",
        "rank,bytes\n0,5\n1,5\n",
        "4:16:64\n1:10:100\n",
        "tleaf 2 4 10 2 1\n",
        ",,\n1,,\n2,3,\n",
        "1\n",
        "processors 2\n",
        "{}",
        "5 4\n2 3\n1 3\n",
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        assert!(!recognises(&Sample::new(file.path()).unwrap()), "{text:?}");
    }
    // The names of the hosts are names of columns of cables.
    for text in [
        ",node-a,node-b\nnode-a,0,4\nnode-b,4,0\n",
        ",a,b\na,0,4\nb,4,0\n",
        ";host_a;host_b\nhost_a;0;4\nhost_b;4;0\n",
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let sample = Sample::new(file.path()).unwrap();
        assert!(recognises(&sample) && !crate::import::graph_csv::recognises(&sample), "{text:?}");
    }
    // Longer than the sample.
    let row = |length: usize| vec!["12345.678"; length].join(",");
    for (text, is_matrix) in [
        (row(9000), true),
        (vec![row(200); 200].join("\n"), true),
        (row(50) + "\n" + &"#".repeat(99999), false),
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        assert_eq!(recognises(&Sample::new(file.path()).unwrap()), is_matrix);
    }
}

/// `0:` became the name of a host, and `rank 0` an unknown format.
#[test]
fn numbers_of_rows_are_no_names() {
    let plain = import("0 1 2\n1 0 2\n2 2 0\n").unwrap();
    for text in [
        "0: 0 1 2\n1: 1 0 2\n2: 2 2 0\n",
        "rank 0 0 1 2\nrank 1 1 0 2\nrank 2 2 2 0\n",
        "rank 1: 0 1 2\nrank 2: 1 0 2\nrank 3: 2 2 0\n",
        "  0 1 2\n0: 0 1 2\n1: 1 0 2\n2: 2 2 0\n",
    ] {
        assert_eq!(import(text).unwrap().system, plain.system, "{text}");
    }
    let error = import("0: 0 1 2\n2: 1 0 2\n1: 2 2 0\n").unwrap_err();
    assert_eq!(error, "F:2: the row has the number 2, where 1 is expected");
    assert_eq!(hosts("n1: 0 2.5\nn2: 3 1\n"), [("n1".to_owned(), 0, 0), ("n2".to_owned(), 1, 0)]);
}
