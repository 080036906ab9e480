//! Numbers and texts as bytes: LEB128 (DWARF 5, 7.6), signed ones folded, texts by their length.

/// Bytes that end too early, or say what cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Torn;

/// Writes numbers and texts.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// A number that may be negative.
    pub(crate) fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)).cast_unsigned());
    }

    pub(crate) fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text);
    }

    /// Bytes whose number the reader knows.
    pub(crate) fn plain(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads what a [`Writer`] wrote.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn number(&mut self) -> Result<u64, Torn> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.bytes.split_first().ok_or(Torn)?;
            self.bytes = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Torn);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Torn)
    }

    /// A number that has to be of a smaller type.
    pub(crate) fn small<N: TryFrom<u64>>(&mut self) -> Result<N, Torn> {
        N::try_from(self.number()?).map_err(|_| Torn)
    }

    pub(crate) fn signed(&mut self) -> Result<i64, Torn> {
        let folded = self.number()?;
        Ok((folded >> 1).cast_signed() ^ -(folded & 1).cast_signed())
    }

    pub(crate) fn text(&mut self) -> Result<&'a [u8], Torn> {
        let length = self.small()?;
        self.plain(length)
    }

    pub(crate) fn plain(&mut self, length: usize) -> Result<&'a [u8], Torn> {
        let (bytes, rest) = self.bytes.split_at_checked(length).ok_or(Torn)?;
        self.bytes = rest;
        Ok(bytes)
    }

    /// How many of something follow: no more than there are bytes left, so that a claim reserves no memory.
    pub(crate) fn count(&mut self) -> Result<usize, Torn> {
        let count = self.small()?;
        if count > self.bytes.len() { Err(Torn) } else { Ok(count) }
    }

    pub(crate) fn end(self) -> Result<(), Torn> {
        if self.bytes.is_empty() { Ok(()) } else { Err(Torn) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(numbers: Vec<u64>, signed: Vec<i64>, text: Vec<u8>) {
            let mut writer = Writer::default();
            numbers.iter().for_each(|&number| writer.number(number));
            signed.iter().for_each(|&number| writer.signed(number));
            writer.text(&text);
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes);
            for number in numbers {
                prop_assert_eq!(reader.number(), Ok(number));
            }
            for number in signed {
                prop_assert_eq!(reader.signed(), Ok(number));
            }
            prop_assert_eq!(reader.text(), Ok(&text[..]));
            prop_assert_eq!(reader.end(), Ok(()));
        }

        #[test]
        fn anything_ends(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            while reader.number().is_ok() {}
            let mut reader = Reader::new(&bytes);
            while reader.text().is_ok_and(|text| !text.is_empty()) {}
        }
    }
}
