//! Classic netCDF files: versions 1 (`CDF\x01`) and 2 (64-bit offsets, `CDF\x02`) of the specification of
//! Unidata.

#[cfg(test)]
pub(crate) mod tests;

use hopmap_text::FileError;

/// A classic netCDF file.
#[derive(Debug, Clone)]
pub struct Netcdf<'a> {
    bytes: &'a [u8],
    /// Dimensions; variables name them by index.
    pub dimensions: Vec<Dimension>,
    /// Variables in the order of the file.
    pub variables: Vec<Variable>,
    /// Number of records of all variables whose first dimension is unlimited.
    pub records: u64,
    /// Bytes from one record to the next.
    stride: u64,
}

#[cold]
fn damaged(problem: impl Into<String>) -> FileError {
    FileError::new(problem, "the file is truncated or damaged: copy it again")
}

impl<'a> Netcdf<'a> {
    /// Reads the header. Sizes in the header do not cause allocations, and data are not read.
    pub fn new(bytes: &'a [u8]) -> Result<Self, FileError> {
        let header = read(bytes)?;
        let mut file =
            Self { bytes, dimensions: header.dimensions, variables: header.variables, records: 0, stride: 0 };
        let mut sizes = Vec::new();
        for variable in file.variables.iter().filter(|variable| file.is_record(variable)) {
            sizes.push((variable.begin, file.bytes_of(variable)?));
        }
        let padded = |size: u64| size.checked_next_multiple_of(4);
        // The only record variable of a file is not padded.
        let stride = match sizes[..] {
            [(_, size)] => Some(size),
            _ => sizes.iter().try_fold(0_u64, |sum, (_, size)| sum.checked_add(padded(*size)?)),
        };
        file.stride = stride.ok_or_else(|| damaged("a record is too large"))?;
        let first = sizes.iter().map(|(begin, _)| *begin).min().unwrap_or(0);
        file.records = match header.records {
            Some(records) => u64::from(records),
            // An unknown number of records is derived from the size of the file.
            None => (bytes.len() as u64).saturating_sub(first).checked_div(file.stride).unwrap_or(0),
        };
        Ok(file)
    }

    /// A variable by its name.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().find(|variable| variable.name == name)
    }

    /// The lengths of the dimensions of a variable; the length of the unlimited one is the number of
    /// records.
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

    /// The text of a character variable, up to the first zero.
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
            .ok_or_else(|| damaged(format!("`{}` is too large", variable.name)))
    }

    /// Passes the bytes of a variable to a function, record by record.
    fn each(&self, variable: &Variable, mut take: impl FnMut(&[u8])) -> Result<(), FileError> {
        let size = self.bytes_of(variable)?;
        let records = if self.is_record(variable) { self.records } else { 1 };
        if size == 0 {
            return Ok(());
        }
        for record in 0..records {
            let start = record.checked_mul(self.stride).and_then(|offset| offset.checked_add(variable.begin));
            let end = start.and_then(|start| start.checked_add(size));
            let place = |offset: u64| usize::try_from(offset).ok();
            let range = start.zip(end).and_then(|(start, end)| Some(place(start)?..place(end)?));
            let bytes = range.and_then(|range| self.bytes.get(range)).ok_or_else(|| {
                damaged(format!("the file ends inside `{}`, in record {record}", variable.name))
            })?;
            take(bytes);
        }
        Ok(())
    }
}

/// A dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimension {
    /// Name.
    pub name: String,
    /// Length; `None` for the unlimited dimension.
    pub length: Option<u64>,
}

/// An array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Name.
    pub name: String,
    /// Indices of its dimensions, outermost first.
    pub dimensions: Vec<usize>,
    /// Type of its elements.
    pub kind: Type,
    /// Offset of its first byte.
    begin: u64,
}

/// Element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Signed, 8 bits.
    Byte,
    /// A character.
    Char,
    /// Signed, 16 bits.
    Short,
    /// Signed, 32 bits.
    Int,
    /// 32 bits.
    Float,
    /// 64 bits.
    Double,
}

impl Type {
    fn new(tag: u32) -> Option<Self> {
        Some(match tag {
            1 => Self::Byte,
            2 => Self::Char,
            3 => Self::Short,
            4 => Self::Int,
            5 => Self::Float,
            6 => Self::Double,
            _ => return None,
        })
    }

    fn size(self) -> usize {
        match self {
            Self::Byte | Self::Char => 1,
            Self::Short => 2,
            Self::Int | Self::Float => 4,
            Self::Double => 8,
        }
    }

    /// Decodes a big-endian number.
    #[expect(clippy::cast_possible_truncation, reason = "a number has as many bits as its type")]
    fn number(self, bytes: &[u8]) -> f64 {
        let bits = bytes.iter().fold(0_u64, |bits, &byte| bits << 8 | u64::from(byte));
        match self {
            Self::Byte => f64::from((bits as u8).cast_signed()),
            Self::Char => f64::from(bits as u8),
            Self::Short => f64::from((bits as u16).cast_signed()),
            Self::Int => f64::from((bits as u32).cast_signed()),
            Self::Float => f64::from(f32::from_bits(bits as u32)),
            Self::Double => f64::from_bits(bits),
        }
    }
}

struct Header {
    /// Number of records; `None` if the file does not define it.
    records: Option<u32>,
    dimensions: Vec<Dimension>,
    variables: Vec<Variable>,
}

const DIMENSIONS: u32 = 10;
const VARIABLES: u32 = 11;
const ATTRIBUTES: u32 = 12;

fn read(bytes: &[u8]) -> Result<Header, FileError> {
    let has_long_offsets = match bytes {
        [b'C', b'D', b'F', 1, ..] => false,
        [b'C', b'D', b'F', 2, ..] => true,
        [b'C', b'D', b'F', 5, ..] | [0x89, b'H', b'D', b'F', ..] => {
            return Err(FileError::new(
                "unsupported version of netCDF (CDF-5 or HDF5)",
                "convert it with `nccopy -k 64-bit-offset OLD.nc NEW.nc`",
            ));
        }
        _ => {
            return Err(FileError::new("not a netCDF file", "the file must start with `CDF` and a version"));
        }
    };
    let mut rest = Rest { bytes: &bytes[4..] };
    let records = rest.number()?;
    let dimensions = rest.list(DIMENSIONS, |rest| {
        let (name, length) = (rest.name()?, rest.number()?);
        Ok(Dimension { name, length: (length > 0).then_some(u64::from(length)) })
    })?;
    rest.list(ATTRIBUTES, Rest::attribute)?;
    let variables = rest.list(VARIABLES, |rest| rest.variable(dimensions.len(), has_long_offsets))?;
    let is_unlimited = |index: &usize| dimensions[*index].length.is_none();
    // Only the outermost dimension may be unlimited.
    if variables.iter().any(|variable| variable.dimensions.iter().skip(1).any(is_unlimited)) {
        return Err(damaged("an inner dimension of a variable is unlimited"));
    }
    Ok(Header { records: (records != u32::MAX).then_some(records), dimensions, variables })
}

/// The unread part of the header.
struct Rest<'a> {
    bytes: &'a [u8],
}

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], FileError> {
        let Some((taken, rest)) = self.bytes.split_at_checked(count) else {
            return Err(damaged("the file ends inside its header"));
        };
        self.bytes = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, FileError> {
        Ok(self.take(4)?.iter().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }

    /// `count` bytes, padded to a multiple of four.
    fn padded(&mut self, count: u64) -> Result<&'a [u8], FileError> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok(&self.take(count.checked_next_multiple_of(4).unwrap_or(usize::MAX))?[..count])
    }

    fn name(&mut self) -> Result<String, FileError> {
        let count = self.number()?;
        Ok(String::from_utf8_lossy(self.padded(u64::from(count))?).into_owned())
    }

    /// A list, which grows with its elements.
    fn list<T>(
        &mut self,
        tag: u32,
        mut read: impl FnMut(&mut Self) -> Result<T, FileError>,
    ) -> Result<Vec<T>, FileError> {
        let (found, count) = (self.number()?, self.number()?);
        if found != tag && (found, count) != (0, 0) {
            return Err(damaged(format!("a list in the header has tag {found}, expected {tag}")));
        }
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(read(self)?);
        }
        Ok(list)
    }

    fn kind(&mut self) -> Result<Type, FileError> {
        let tag = self.number()?;
        Type::new(tag).ok_or_else(|| damaged(format!("unknown type {tag}")))
    }

    fn attribute(&mut self) -> Result<(), FileError> {
        self.name()?;
        let (kind, count) = (self.kind()?, self.number()?);
        self.padded(kind.size() as u64 * u64::from(count))?;
        Ok(())
    }

    fn variable(&mut self, dimensions: usize, has_long_offsets: bool) -> Result<Variable, FileError> {
        let name = self.name()?;
        let mut own = Vec::new();
        for _ in 0..self.number()? {
            let index = self.number()? as usize;
            if index >= dimensions {
                return Err(damaged(format!("`{name}` refers to an undefined dimension")));
            }
            own.push(index);
        }
        self.list(ATTRIBUTES, Self::attribute)?;
        let kind = self.kind()?;
        // The size follows from the dimensions; the stored size is wrong for large variables.
        self.number()?;
        let begin = match has_long_offsets {
            true => u64::from(self.number()?) << 32 | u64::from(self.number()?),
            false => u64::from(self.number()?),
        };
        Ok(Variable { name, dimensions: own, kind, begin })
    }
}
