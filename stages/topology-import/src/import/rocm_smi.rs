//! The GPUs of a host: output of `rocm-smi --showtopo` and of `amd-smi topology`, by their table of weights.
//!
//! A weight is 15 for every XGMI link on the way, and more over `PCIe` and between sockets; hops are 1 for all ways over XGMI, so they tell
//! nothing (ROCm/rocm-systems, issue 5763 and pull request 7372).

use super::format::Sample;
use super::nvidia_smi::{Connection, Table, is_gpu, only_one};
use super::{ImportParams, Imported, Result};

const HELP: &str =
    "give the output of `rocm-smi --showtopo` or `amd-smi topology`, with the table of weights";
const KNOWN: &str = "weights are numbers, 0 for a GPU and itself";

fn is_title(line: &str) -> bool {
    line.contains("Weight between two GPUs") || line.trim() == "WEIGHT TABLE:"
}

/// The title of a table of weights.
pub(super) fn recognises(sample: &Sample) -> bool {
    sample.text().is_some_and(|text| text.lines().any(is_title))
}

pub(super) fn read(text: &str, params: &ImportParams) -> Result<Imported> {
    only_one(text, is_title, HELP)?;
    let lines = (1..).zip(text.lines()).skip_while(|(_, line)| !is_title(line)).skip(1);
    let lines = lines.skip_while(|(_, line)| line.trim().is_empty());
    // The next table has the same GPUs.
    let lines =
        lines.take_while(|(_, line)| !line.starts_with("==") && !line.trim_end().ends_with(" TABLE:"));
    Table { help: HELP, known: KNOWN, own: "0", is_gpu: is_gpu_or_address, connection }.host(lines, params)
}

/// `GPU0`, or the address of its PCI function in `amd-smi`: `0000:c1:00.0`.
fn is_gpu_or_address(word: &str) -> bool {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_gpu(word) || word.matches(':').count() == 2 && word.split([':', '.']).all(is_digits)
}

fn connection(word: &str) -> Option<Connection> {
    let weight = word.parse().ok()?;
    Some(if weight == 0 { Connection::Same } else { Connection::Weight(weight) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{read as import, recognise};
    use hopmap_model::CostModel;

    fn read_text(text: &str) -> Result<Imported> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        assert_eq!(recognise(file.path()).unwrap().name(), "rocm-smi");
        import(file.path(), &ImportParams::default())
    }

    /// Two packages of two GPUs each, at two sockets.
    const TABLE: &str = "       GPU0         GPU1         GPU2         GPU3         \n\
                         GPU0   0            15           30           72           \n\
                         GPU1   15           0            72           30           \n\
                         GPU2   30           72           0            15           \n\
                         GPU3   72           30           15           0            \n\n";

    #[test]
    fn weights_are_levels() {
        let (rule, end) = ("=".repeat(27), "End of ROCm SMI Log");
        let rocm = format!(
            "\n{rule} ROCm System Management Interface {rule}\n{rule} Weight between two GPUs {rule}\n{TABLE}\
             {rule} Hops between two GPUs {rule}\n{}{rule} Numa Nodes {rule}\nGPU[0]\t: (Topology) Numa Node: 0\n{rule} {end} {rule}\n",
            TABLE.replace("15", "1").replace("30", "1").replace("72", "3")
        );
        let table = (0..4).fold(TABLE.to_owned(), |table, gpu| {
            table.replace(&format!("GPU{gpu}"), &format!("0000:c{gpu}:00.0"))
        });
        let amd = format!(
            "ACCESS TABLE:\n{}WEIGHT TABLE:\n{table}HOPS TABLE:\n{table}",
            table.replace("15", "ENABLED")
        );
        for text in [&rocm, &amd, &rocm.replace('\n', "\r\n")] {
            let Imported { system, notes } = read_text(text).unwrap();
            let CostModel::Levels(levels) = &system.cost else { panic!("no levels") };
            assert_eq!(levels.groups, [[0, 0, 1, 1], [0, 0, 0, 0]], "{text}");
            let kinds = "connections that join GPUs, one level each, innermost first: weight 15, weight 30";
            assert!(notes.iter().any(|note| note == kinds), "{notes:?}");
        }
        let wrong = read_text(&rocm.replacen("GPU1   15 ", "GPU1   16 ", 1)).unwrap_err().to_string();
        assert!(
            wrong.contains("`GPU1` and `GPU0` are connected by weight 16 here, but by weight 15"),
            "{wrong}"
        );
        // The second one was left out without a word.
        let two = read_text(&format!("{amd}{amd}")).unwrap_err().to_string();
        assert!(two.contains("a further table of GPUs begins here"), "{two}");
        let cut = read_text(&rocm[..rocm.find("GPU3   72").unwrap()]).unwrap_err().to_string();
        assert!(cut.contains("the row of `GPU3` is missing"), "{cut}");
    }
}
