//! Square matrices as text.

use std::fmt::Write;

use hopmap_trace::Format;
use proptest::prelude::*;

use super::Files;

proptest! {
    #[test]
    fn every_way_to_write_a_matrix_is_read(
        (ranks, mut numbers) in (2..6usize).prop_flat_map(|n| (Just(n), prop::collection::vec(0..9u64, n * n))),
        separator in prop::sample::select(vec![",", ", ", ";", "\t", "  "]),
        (columns, rows, corner) in any::<(bool, bool, bool)>(),
        numeric in any::<bool>(),
        end in prop::sample::select(vec!["\n", "\r\n", ",\n"]),
        wrong in (0..6usize, 0..6usize, prop::sample::select(vec!["1.5K", "0x10", "1_000"])),
    ) {
        let end = if separator.trim() == "," { end } else { "\n" };
        let name = |rank: usize| if numeric { rank.to_string() } else { format!("n{rank}") };
        let mut text = "# made by hand\n".to_owned();
        // Numbers alone above the columns look like a row, unless rows are named, too.
        let columns = columns && (rows || !numeric);
        let rows = rows && (columns || !numeric);
        // Three or four lines may be pairs.
        (0..ranks).filter(|_| !rows).for_each(|rank| numbers[rank * ranks + rank] = 0);
        if columns {
            let corner = if separator == "  " { "rank" } else if corner { "" } else { "rank" };
            let names = (0..ranks).map(name);
            let names: Vec<String> = rows.then(|| corner.to_owned()).into_iter().chain(names).collect();
            write!(text, "{}{end}", names.join(separator)).unwrap();
        }
        let (mut expected, mut damaged) = (Vec::new(), text.clone());
        for (source, line) in numbers.chunks(ranks).enumerate() {
            let fields = line.iter().map(u64::to_string);
            let mut fields: Vec<String> = rows.then(|| name(source)).into_iter().chain(fields).collect();
            write!(text, "{}{end}", fields.join(separator)).unwrap();
            if source == wrong.0 % ranks {
                fields[usize::from(rows) + wrong.1 % ranks] = wrong.2.to_owned();
            }
            write!(damaged, "{}{end}", fields.join(separator)).unwrap();
            let pairs = (0..).zip(line).filter(|(_, bytes)| **bytes > 0);
            expected.extend(pairs.map(|(destination, bytes)| (source as u32, destination, 1, *bytes)));
        }
        let read = Files::one(&text).auto();
        prop_assert_eq!(read.log.first().map(String::as_str), Some("format: dense-matrix"), "{}", text);
        prop_assert_eq!(read.pairs(), expected, "{}", text);
        prop_assert_eq!(read.graph().ranks(), ranks);
        if ranks > 2 {
            let line = 2 + usize::from(columns) + wrong.0 % ranks;
            let problem = format!("line {line} is wrong: `{}` is not a number", wrong.2);
            let found = Files::one(&damaged).auto().result.unwrap_err().0;
            prop_assert!(found.ends_with(&problem), "{damaged} {found}");
        }
    }
}

proptest! {
    #[test]
    fn names_of_rows_may_number_the_ranks(
        (ranks, numbers) in (2..6usize).prop_flat_map(|n| (Just(n), prop::collection::vec(0..9u64, n * n))),
        (before, behind) in prop::sample::select(vec![
            ("", ":"), ("rank ", ""), ("rank ", ":"), ("P", ""), ("P", ":"), ("[", "]"), ("n", ".local"),
        ]),
        (base, separator) in (0..2usize, prop::sample::select(vec![",", ";", "\t", "  "])),
        header in prop::sample::select(vec![None, Some(""), Some("rank"), Some("from/to")]),
        (one, other) in (0..6usize, 1..6usize),
    ) {
        let parted = |fields: &[String]| fields.join(separator) + "\n";
        let number = |rank: usize| (rank + base).to_string();
        let mut lines: Vec<String> = Vec::new();
        if let Some(corner) = header {
            // Blanks part no empty corner.
            let corner = (separator != "  " || !corner.is_empty()).then(|| corner.to_owned());
            lines.push(parted(&corner.into_iter().chain((0..ranks).map(number)).collect::<Vec<_>>()));
        }
        let mut expected = Vec::new();
        for (source, row) in numbers.chunks(ranks).enumerate() {
            let name = format!("{before}{}{behind}", number(source));
            lines.push(parted(&std::iter::once(name).chain(row.iter().map(u64::to_string)).collect::<Vec<_>>()));
            let pairs = (0..).zip(row).filter(|(_, bytes)| **bytes > 0);
            expected.extend(pairs.map(|(destination, bytes)| (source as u32, destination, 1, *bytes)));
        }
        let read = Files::one(lines.concat()).auto();
        prop_assert!(read.result.is_ok(), "{} {:?}", lines.concat(), read.result);
        prop_assert_eq!(read.pairs(), expected.clone(), "{}", lines.concat());
        // Rows in another order, and two of a name. Once some were read in the order of the file.
        let rows = usize::from(header.is_some());
        let (one, other) = (one % ranks, (one + 1 + other % (ranks - 1)) % ranks);
        let mut twice = lines.clone();
        twice[rows + one] = lines[rows + other].clone();
        lines.swap(rows + one, rows + other);
        let read = Files::one(lines.concat()).auto();
        prop_assert!(read.result.is_ok(), "{} {:?}", lines.concat(), read.result);
        prop_assert_eq!(read.pairs(), expected, "{}", lines.concat());
        let said = read.log.iter().filter(|line| line.starts_with("the names of the rows tell their ranks")).count();
        prop_assert_eq!(said, 1);
        prop_assert!(Files::one(twice.concat()).auto().result.is_err(), "{}", twice.concat());
    }
}

#[test]
fn comments_are_no_rows_and_lines_of_shells_are_said() {
    let text = "; by hand\n// bytes\n0 1 2 # a 5\n% x\n3 0 4 // b\n+ ./next --step 2\n-----\n5 6 0 ; c\n";
    for text in [text.to_owned(), text.replace(' ', "\t")] {
        let read = Files::one(&text).auto();
        assert_eq!(
            read.result.as_ref().map(hopmap_model::TaskGraph::bytes),
            Ok(21),
            "{text} {:?}",
            read.result
        );
        assert!(
            read.log[1].starts_with("warning: lines of other programs, skipped: 2, the first in line 6: "),
            "{:?}",
            read.log
        );
    }
}

/// Lines of a matrix, the line that is named, and why.
const NEARLY: &str = "0 1 2/1 0/2 1 0 | 2 | the line has 2 numbers, but others have 3
0,1/1,0/1,1 | 3 | the matrix has 2 columns, but more lines
0,1,2/3,0,2 | 2 | the file ends after 2 of 3 rows
0,1,2/1,0,2 | 1 | the first numbers may be those of the rows, or of a matrix whose last row is missing; delete them if they are: `sed -E 's/^[[:blank:]]*[0-9]+[[:blank:],;]+//'`
0,1,100/0,2,50/1,2,30 | 1 | the lines may also be pairs of ranks with their bytes
s,d,b/0,1,100/0,2,50/1,2,30 | 1 | the lines may also be pairs of ranks with their bytes
,a,b,Total/a,0,1,1/b,1,0,1 | 1 | `Total` is not a rank: delete its column and its row
,a,b,sum/a,0,1,1/b,1,0,1/sum,1,1,2 | 1 | `sum` is not a rank: delete its column and its row
a,0,1/b,1,0/sum,1,1 | 3 | `sum` is not a rank: delete its column and its row
0 1.5K 2/1 0 2/2 1 0 | 1 | `1.5K` is not a number
0 1 2/0x10 0 2/2 1 0 | 2 | `0x10` is not a number
,a,b,c/b,0,1,2/d,1,0,2/c,2,1,0 | 2 | the row is `b`, but column 1 is `a`
,0,1,2/0,0,1,2/2,1,0,2/2,2,1,0 | 3 | the row is `2`, but column 2 is `1`
P2 0 1 2/P1 1 0 2/P4 2 1 0 | 2 | the row is `P1`, but rows are numbered from 0 or 1, each once
P0 0 1 2 3/P1 1 0 2 3/P1 2 1 0 3/P3 2 1 0 3 | 3 | the row is `P1`, but rows are numbered from 0 or 1, each once
1/2 3/4 5 6 | 2 | the rows become longer or shorter, as those of half a matrix: write the bytes in both directions
P0 1 2 3/P1 4 5/P2 6 | 2 | the rows become longer or shorter, as those of half a matrix: write the bytes in both directions
a b c/0 1/1 0 | 1 | the line has 3 names, but others 2 numbers
step 1: done/0 1 2/1 0 2/2 1 0 | 1 | `1:` is not a name of a rank: delete the line if it is a message
0: 0 1 2/1: 1 0 2/3: 2 1 0 | 3 | the row is `3:`, but rows are numbered from 0 or 1, each once
0: 0 1 2/step: 1 0 2/2: 2 1 0 | 2 | `step:` is not a name of a rank: delete the line if it is a message
- 1 2/3 - 4/5 6 - | 1 | `-` in column 1 is not a number: write 0 where there is no message
0 1 2/3 x 4/5 6 0 | 2 | `x` in column 2 is not a number: write 0 where there is no message
0 1/1 0/done | 3 | `done` is not a number";

/// Once these were of an unknown format, had a rank too many, were read as a matrix, or another line was named.
#[test]
fn what_is_nearly_a_matrix_is_named() {
    for nearly in NEARLY.lines() {
        let [text, line, problem] = nearly.split(" | ").collect::<Vec<_>>()[..] else { panic!("{nearly}") };
        let text = text.replace('/', "\n");
        let (found, help) = Files::one(text + "\n").auto().result.unwrap_err();
        let named = format!("as a `dense-matrix`, line {line} is wrong: {problem}");
        assert_eq!(found, format!("`trace` has an unknown format; {named}"));
        assert!(help.contains("`source,destination,messages,bytes`"), "{help}");
    }
    let pairs = Files::one("0,1,100\n0,2,50\n1,2,30\n").read(|params| params.format = Format::DenseMatrix);
    assert_eq!(pairs.graph().bytes(), 1 + 100 + 2 + 50 + 1 + 2 + 30);
}

#[test]
fn what_is_not_square_is_refused() {
    let refused = |text: &str| {
        let files = Files::one(text);
        files.read(|params| params.format = Format::DenseMatrix).result.unwrap_err().0
    };
    assert_eq!(refused("0 1 2\n1 0 2\n1 2\n"), "trace:3: the line has 2 numbers, but others have 3");
    assert_eq!(refused("0 1\n-1 0\n"), "trace:2:1: the number of bytes `-1` is negative");
    assert_eq!(refused(",a,b\na,0,1\nc,1,0\n"), "trace:3: the row is `c`, but column 2 is `b`");
    let sorted = ",r1,r10,r2\nr1,0,1,2\nr10,3,0,4\nr2,5,6,0\n";
    assert_eq!(refused(sorted), "trace:1: `r10` is before `r2`, but ranks are in the order of columns");
    assert_eq!(refused("a,sum\n0,1\n1,0\n"), "trace:1: `sum` is not a rank: delete its column and its row");
}
