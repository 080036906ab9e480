//! Tables with semicolons between their columns, which nothing quotes.
//!
//! `opaextractsellinks` writes `GUID;port;type;name;GUID;port;type;name` without a heading; `opaextractlink`, `opaextractstat` and
//! `opaextractstat2` name their columns, of which `Rate`, `Port.NodeDesc` and `Port.PortNum` are read.

use std::path::Path;

use super::super::reader::malformed;
use super::super::{ImportError, guid};
use super::{Link, Port, kind};

/// Whether the first line is one of such a table.
pub(super) fn is_table(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    Columns::of(first).is_some() || plain(first).is_some()
}

pub(super) fn read<'a>(
    path: &Path,
    text: &'a str,
    add: &mut impl FnMut(Link<'a>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut columns: Option<Columns> = None;
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        // The heading stands there once more where tables were put one behind the other.
        if let Some(heading) = Columns::of(line) {
            columns = Some(heading);
            continue;
        }
        // The scripts print an empty line before the first link.
        if line.is_empty() {
            continue;
        }
        let (rate, ports) = match &columns {
            Some(columns) => columns.ports(line).map_err(|problem| {
                malformed(
                    path,
                    number,
                    problem,
                    "no field may hold a semicolon; `opareport -o links` has no such limit",
                )
            })?,
            None => (
                "",
                plain(line).ok_or_else(|| {
                    let help =
                        "such as `0x0011750101670001;1;FI;node1 hfi1_0;0x0011750102000001;7;SW;leaf 1`";
                    malformed(path, number, "this is no link", help)
                })?,
            ),
        };
        add(Link { line: number, rate, ports })?;
    }
    Ok(())
}

/// Where a table with a heading has what is read.
#[derive(Debug, PartialEq)]
struct Columns {
    count: usize,
    rate: Option<usize>,
    names: [usize; 2],
    numbers: [usize; 2],
}

impl Columns {
    fn of(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(';').map(str::trim).collect();
        let places = |name: &str| -> Vec<usize> {
            let is_it = |field: &str| field.rsplit('.').next() == Some(name);
            (0..fields.len()).filter(|&place| is_it(fields[place])).collect()
        };
        Some(Self {
            count: fields.len(),
            rate: places("Rate").first().copied(),
            names: places("NodeDesc").try_into().ok()?,
            numbers: places("PortNum").try_into().ok()?,
        })
    }

    fn ports<'a>(&self, line: &'a str) -> Result<(&'a str, [Port; 2]), String> {
        let fields: Vec<&str> = line.split(';').collect();
        if fields.len() != self.count {
            return Err(format!("there are {} fields, but {} columns", fields.len(), self.count));
        }
        let port = |end: usize| {
            let number = fields[self.numbers[end]].trim();
            let number = number.parse().map_err(|_| format!("`{number}` is no number of a port"))?;
            Ok::<_, String>(Port {
                number,
                description: fields[self.names[end]].to_owned(),
                ..Port::default()
            })
        };
        Ok((self.rate.map_or("", |rate| fields[rate]), [port(0)?, port(1)?]))
    }
}

/// Both ports of a line without a heading. Names may hold semicolons: the second port is where its GUID is.
fn plain(line: &str) -> Option<[Port; 2]> {
    let fields: Vec<&str> = line.split(';').collect();
    let second = (4..fields.len()).find(|&place| port(&fields, place, place + 3..fields.len()).is_some())?;
    Some([port(&fields, 0, 3..second)?, port(&fields, second, second + 3..fields.len())?])
}

fn port(fields: &[&str], place: usize, name: std::ops::Range<usize>) -> Option<Port> {
    let id = fields.get(place)?.trim();
    Some(Port {
        guid: Some(guid::prefixed(id).filter(|_| id.len() == 18)?),
        number: fields.get(place + 1)?.trim().parse().ok()?,
        kind: Some(kind(fields.get(place + 2)?)?),
        description: fields.get(name).filter(|words| !words.is_empty())?.join(";"),
    })
}
