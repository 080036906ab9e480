//! Classic netCDF files: versions 1 (`CDF\x01`) and 2 (64-bit offsets, `CDF\x02`), as Unidata's specification of the
//! classic format defines them.

mod header;

use hopmap_text::FileError;

pub use header::{Dimension, Type, Variable};

/// A classic netCDF file.
#[derive(Debug, Clone)]
pub struct Netcdf<'a> {
    bytes: &'a [u8],
    /// Dimensions; variables name them by index.
    pub dimensions: Vec<Dimension>,
    /// Variables in the order of the file.
    pub variables: Vec<Variable>,
    /// Records of all variables whose first dimension is unlimited.
    pub records: u64,
    /// Bytes from one record to the next.
    stride: u64,
}

#[cold]
fn damaged(problem: impl Into<String>) -> FileError {
    FileError::new(problem, "the file is cut off or damaged: copy it anew")
}

impl<'a> Netcdf<'a> {
    /// Reads the header. Nothing is allocated by what it claims, and nothing of the data is looked at.
    pub fn new(bytes: &'a [u8]) -> Result<Self, FileError> {
        let header = header::read(bytes)?;
        let mut file =
            Self { bytes, dimensions: header.dimensions, variables: header.variables, records: 0, stride: 0 };
        let mut sizes = Vec::new();
        for variable in file.variables.iter().filter(|variable| file.is_record(variable)) {
            sizes.push((variable.begin, file.bytes_of(variable)?));
        }
        let padded = |size: u64| size.checked_next_multiple_of(4);
        // A variable that is alone in its records is not padded.
        let stride = match sizes[..] {
            [(_, size)] => Some(size),
            _ => sizes.iter().try_fold(0_u64, |sum, (_, size)| sum.checked_add(padded(*size)?)),
        };
        file.stride = stride.ok_or_else(|| damaged("a record is larger than any file"))?;
        let first = sizes.iter().map(|(begin, _)| *begin).min().unwrap_or(0);
        file.records = match header.records {
            Some(records) => u64::from(records),
            // The program that wrote it did not say how many: as many as there are.
            None => (bytes.len() as u64).saturating_sub(first).checked_div(file.stride).unwrap_or(0),
        };
        Ok(file)
    }

    /// A variable by its name.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().find(|variable| variable.name == name)
    }

    /// The lengths of the dimensions of a variable; the unlimited one is as long as there are records.
    #[must_use]
    pub fn shape(&self, variable: &Variable) -> Vec<u64> {
        let length = |&index: &usize| self.dimensions[index].length.unwrap_or(self.records);
        variable.dimensions.iter().map(length).collect()
    }

    /// The numbers of a variable, row by row.
    pub fn numbers(&self, variable: &Variable) -> Result<Vec<f64>, FileError> {
        let mut numbers = Vec::new();
        self.each(variable, |bytes| {
            numbers.extend(bytes.chunks_exact(variable.kind.size()).map(|bytes| variable.kind.number(bytes)));
        })?;
        Ok(numbers)
    }

    /// The text of a variable of characters, up to the first zero.
    pub fn text(&self, variable: &Variable) -> Result<String, FileError> {
        let mut text = Vec::new();
        self.each(variable, |bytes| text.extend_from_slice(bytes))?;
        text.truncate(text.iter().position(|&byte| byte == 0).unwrap_or(text.len()));
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn is_record(&self, variable: &Variable) -> bool {
        variable.dimensions.first().is_some_and(|&first| self.dimensions[first].length.is_none())
    }

    /// Bytes of a variable, or of one of its records.
    fn bytes_of(&self, variable: &Variable) -> Result<u64, FileError> {
        let inner = &variable.dimensions[usize::from(self.is_record(variable))..];
        inner
            .iter()
            .try_fold(variable.kind.size() as u64, |size, &index| {
                size.checked_mul(self.dimensions[index].length?)
            })
            .ok_or_else(|| damaged(format!("`{}` is larger than any file", variable.name)))
    }

    /// Hands out the bytes of a variable, record by record.
    fn each(&self, variable: &Variable, mut take: impl FnMut(&[u8])) -> Result<(), FileError> {
        let size = self.bytes_of(variable)?;
        let records = if self.is_record(variable) { self.records } else { 1 };
        if size == 0 {
            return Ok(());
        }
        for record in 0..records {
            let start = record.checked_mul(self.stride).and_then(|offset| offset.checked_add(variable.begin));
            let end = start.and_then(|start| start.checked_add(size));
            let range = start.zip(end).map(|(start, end)| start as usize..end as usize);
            let bytes = range.and_then(|range| self.bytes.get(range)).ok_or_else(|| {
                damaged(format!("the file ends inside `{}`, in record {record}", variable.name))
            })?;
            take(bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
