//! Network files of `network-tests2`: classic netCDF with `data(n, x, y)`, lengths × receivers × senders.
//!
//! There are two schemas: one with variables `noise_*`, and one with `random_option_*`. Types of tests and data are numbers or texts in both.

use hopmap_text::FileError;

use super::network::{Kind, NetworkFile};
use crate::netcdf::{Netcdf, Type};

const TESTS: [&str; 10] = [
    "unknown",
    "one_to_one",
    "all_to_all",
    "async_one_to_one",
    "send_recv_and_recv_send",
    "noise",
    "noise_blocking",
    "bcast",
    "put_one_to_one",
    "get_one_to_one",
];
const KINDS: [&str; 5] = ["unknown", "average", "median", "deviation", "min"];

const HELP: &str = "network-tests2 writes `data(n, x, y)`, lengths by receivers by senders";

pub(super) fn read(bytes: &[u8]) -> Result<NetworkFile, FileError> {
    let file = Netcdf::new(bytes)?;
    let data = file.variable("data").ok_or_else(|| FileError::new("there is no variable `data`", HELP))?;
    let shape = file.shape(data);
    let processes = whole(&file, "proc_num")?;
    match (data.kind, &shape[..]) {
        (Type::Double, [_, receivers, senders]) if [*receivers, *senders] == [processes; 2] => {}
        (_, [_, _, _, _]) => {
            return Err(FileError::new(
                "the file holds every single measurement",
                "give the one of medians or averages beside it: PREFIX_median.nc",
            ));
        }
        _ => {
            let problem = format!("`data` is {shape:?} for {processes} processes");
            return Err(FileError::new(problem, HELP));
        }
    }
    let [begin, end, step] = ["begin_mes_length", "end_mes_length", "step_length"];
    let [begin, end, step] = [whole(&file, begin)?, whole(&file, end)?, whole(&file, step)?];
    let numbers = file.numbers(data)?;
    // All are below 2^31, so that nothing overflows. Without a step there is one length.
    let expected_lengths = end.saturating_sub(begin).div_ceil(step.max(1));
    let most = if step > 0 { usize::MAX } else { 1 };
    let area = (processes * processes).max(1) as usize;
    let seconds: Vec<Vec<f64>> = numbers.chunks_exact(area).take(most).map(<[f64]>::to_vec).collect();
    let lengths = (0..seconds.len() as u64).map(|index| begin + step * index).collect();
    NetworkFile {
        processes: processes as usize,
        hosts: Vec::new(),
        test: named(&file, "test_type", &TESTS)?,
        kind: Kind::named(&named(&file, "data_type", &KINDS)?),
        lengths,
        seconds,
        expected_lengths,
    }
    .checked(None)
}

/// A whole number of zero or more.
fn whole(file: &Netcdf<'_>, name: &str) -> Result<u64, FileError> {
    let missing =
        || FileError::new(format!("there is no number `{name}`"), "network-tests2 writes it into every file");
    let variable =
        file.variable(name).filter(|variable| variable.kind == Type::Int && variable.dimensions.is_empty());
    let numbers = file.numbers(variable.ok_or_else(missing)?)?;
    let number = numbers.first().copied().filter(|number| *number >= 0.0).ok_or_else(missing)?;
    Ok(number as u64)
}

/// A word, or the word of a number.
fn named(file: &Netcdf<'_>, name: &str, names: &[&str]) -> Result<String, FileError> {
    let variable =
        file.variable(name).ok_or_else(|| FileError::new(format!("there is no variable `{name}`"), HELP))?;
    if variable.kind == Type::Char {
        return file.text(variable);
    }
    let number = whole(file, name)?;
    Ok(names.get(number as usize).map_or_else(|| number.to_string(), |name| (*name).to_owned()))
}
