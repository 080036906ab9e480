//! Matrix Market.

use super::Files;

/// A matrix with these lines after the first.
fn matrix(field: &str, symmetry: &str, lines: &str) -> Files {
    Files::one(format!("%%MatrixMarket matrix coordinate {field} {symmetry}\n{lines}"))
}

#[test]
fn rows_send_to_columns() {
    let read =
        matrix("integer", "general", "% by hand\n\n4 4 5\n1 2 100\n3 1 7\n1 2 5\n2 2 8\n2 3 0\n").auto();
    assert_eq!(read.pairs(), [(0, 1, 2, 105), (1, 1, 1, 8), (2, 0, 1, 7)]);
    assert_eq!(read.graph().ranks(), 4);
    let warning = "warning: the matrix does not contain message counts: each pair counts as one message";
    assert_eq!(read.log, ["format: matrix-market", warning]);
    let fractions = "2 2 2\r\n1 2 1.5e3\r\n2 1 8.0\r\n";
    assert_eq!(matrix("real", "general", fractions).auto().pairs(), [(0, 1, 1, 1500), (1, 0, 1, 8)]);
}

/// Once a comment behind blanks was the size of the matrix.
#[test]
fn blanks_before_comments_and_numbers_do_not_matter() {
    let read =
        matrix("INTEGER", "General \r", "  % bytes\r\n\r\n 3 3 2 \r\n\r\n1\t2 100 \r\n 3 1 7\r\n").auto();
    assert_eq!(read.pairs(), [(0, 1, 1, 100), (2, 0, 1, 7)]);
}

/// Once hopmap told people to delete the first lines: the rest is square.
#[test]
fn a_lost_percent_sign_is_named() {
    let refused =
        Files::one("%MatrixMarket matrix coordinate pattern symmetric\n4 4 3\n2 1 5\n3 2 5\n4 3 5\n")
            .refused();
    assert_eq!(refused, "trace:1: the first line begins with one `%` instead of two");
    let square = Files::one("my matrix\n0 1 2\n3 0 4\n5 6 0\n").auto().result.unwrap_err();
    assert!(!square.1.contains("delete"), "{square:?}");
}

#[test]
fn symmetric_matrices_count_in_both_directions() {
    let read = matrix("integer", "symmetric", "3 3 2\n2 1 10\n3 3 4\n").auto();
    assert_eq!(read.pairs(), [(0, 1, 1, 10), (1, 0, 1, 10), (2, 2, 1, 4)]);
    let refused = matrix("integer", "symmetric", "3 3 1\n1 2 10\n").refused();
    assert_eq!(refused, "trace:3: a symmetric matrix has no entries above the diagonal");
}

#[test]
fn a_pattern_is_one_byte_per_pair_with_a_warning() {
    let read = matrix("pattern", "general", "2 2 1\n1 2\n").auto();
    assert_eq!(read.pairs(), [(0, 1, 1, 1)]);
    assert_eq!(read.log[1], "warning: the matrix is a pattern: each pair counts as one message of one byte");
}

#[test]
fn comments_may_have_message_counts() {
    let read = matrix(
        "integer",
        "general",
        "%hopmap messages 3 1\n%hopmap messages 7\n2 2 3\n1 2 9\n1 1 8\n2 1 0\n",
    );
    assert_eq!(read.auto().pairs(), [(0, 0, 1, 8), (0, 1, 3, 9), (1, 0, 7, 0)]);
    let refused = matrix("integer", "general", "%hopmap messages 3 1\n2 2 1\n1 2 9\n").refused();
    assert_eq!(refused, "trace:3: the number of message counts differs from the number of entries");
}

#[test]
fn invalid_lines_are_rejected_with_their_number() {
    for (field, symmetry, lines, what) in [
        (
            "complex",
            "general",
            "",
            "1: unsupported type of entries `complex`, expected `integer`, `real` or `pattern`",
        ),
        (
            "real",
            "skew-symmetric",
            "",
            "1: `skew-symmetric` is not supported: byte counts cannot be negative",
        ),
        ("real", "odd", "", "1: unknown symmetry `odd`"),
        (
            "integer",
            "general",
            "% only comments\n",
            " the file ends before the line with the size of the matrix",
        ),
        ("integer", "general", "3 4 0\n", "2: the matrix must be square, but has 3 rows and 4 columns"),
        ("integer", "general", "3 3\n", "2: the number of entries is missing"),
        ("integer", "general", "3 3 1 1\n", "2: the size must be three numbers: rows, columns and entries"),
        (
            "integer",
            "general",
            "99999999 99999999 0\n",
            "2: the number of rows `99999999` is not below 16777217",
        ),
        ("integer", "general", "3 3 2\n1 2 3\n\n", " the file ends after 1 of 2 entries"),
        (
            "integer",
            "general",
            "3 3 18446744073709551615\n1 2 3\n",
            " the file ends after 1 of 18446744073709551615 entries",
        ),
        ("integer", "general", "3 3 1\n1 2 3\n\n1 2 3\n", "5: there are more than 1 entries"),
        ("integer", "general", "3 3 1\n1 4 3\n", "3: the column `4` is not between 1 and 3"),
        ("integer", "general", "3 3 1\n0 1 3\n", "3: the row `0` is not between 1 and 3"),
        ("integer", "general", "3 3 1\n1 1 -3\n", "3: the number of bytes `-3` is negative"),
        ("real", "general", "3 3 1\n1 1 2.5\n", "3: the number of bytes `2.5` is not an integer"),
        ("real", "general", "3 3 1\n1 1\n", "3: the number of bytes is missing"),
        ("pattern", "general", "3 3 1\n1 1 1\n", "3: too many values in an entry"),
    ] {
        let refused = matrix(field, symmetry, lines).refused();
        assert!(refused.starts_with("trace:") && refused.ends_with(what), "{refused}");
    }
    let dense = Files::one("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n");
    assert_eq!(dense.refused(), "trace:1: unsupported format `array`, expected `coordinate`");
    let vector = Files::one("%%MatrixMarket vector coordinate real general\n");
    assert_eq!(vector.refused(), "trace:1: not the first line of a Matrix Market matrix");
    let most = u64::MAX;
    let refused = matrix("integer", "general", &format!("2 2 2\n1 2 {most}\n2 1 1\n")).refused();
    assert_eq!(refused, "trace:4: the messages or bytes of all pairs exceed 64 bits");
}

#[test]
fn silent_ranks_can_be_added_but_ranks_cannot_be_removed() {
    let files = matrix("integer", "general", "3 3 1\n1 2 5\n");
    assert_eq!(files.read(|params| params.ranks = Some(5)).graph().ranks(), 5);
    let refused = files.read(|params| params.ranks = Some(2)).result.unwrap_err();
    assert_eq!(refused.0, "`trace` has 3 ranks, but `ranks` = 2");
    let refused = files.read(|params| params.ranks = Some(0)).result.unwrap_err();
    assert_eq!(refused.0, "`ranks` = 0 is out of range");
}

/// Once such comments were lines of other programs.
#[test]
fn comments_may_look_like_messages() {
    for comment in ["%srun: error: a b", "% srun a", "%Warning: a b", "%% 12:00:00 a"] {
        let log = matrix("integer", "general", &format!("{comment}\n2 2 1\n1 2 5\n")).auto().log;
        assert!(!log.iter().any(|line| line.contains("other programs")), "{comment} {log:?}");
    }
}
