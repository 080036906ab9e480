//! Parses the bytes of records without reading beyond their end.

use super::record_schema::{Field, Fixed, value};

/// A problem and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flaw {
    /// Offset of the byte.
    pub(super) at: usize,
    /// The problem.
    pub(super) what: &'static str,
}

/// The data end before the record does.
pub(super) const CUT_OFF: &str = "a record exceeds its data";

/// Maximum number of attributes of an event; libotf2 compares each with all others.
const MOST_ATTRIBUTES: u64 = 1024;

/// A position in some bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    /// Offset of the next byte.
    pub(super) at: usize,
    /// Whether numbers of fixed size are big-endian.
    pub(super) big_endian: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, big_endian: false }
    }

    /// A flaw at the position.
    #[cold]
    pub(super) fn flaw(&self, what: &'static str) -> Flaw {
        Flaw { at: self.at, what }
    }

    pub(super) fn byte(&mut self) -> Result<u8, Flaw> {
        let byte = *self.bytes.get(self.at).ok_or_else(|| self.flaw(CUT_OFF))?;
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Flaw> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| self.flaw(CUT_OFF))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// The remaining bytes.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// A number of 64 bits in eight bytes.
    pub(super) fn word(&mut self) -> Result<u64, Flaw> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// A number of 32 bits in four bytes.
    pub(super) fn half_word(&mut self) -> Result<u32, Flaw> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// A length byte and up to `most` bytes; 255 means all bits set.
    pub(super) fn compressed(&mut self, most: u8) -> Result<u64, Flaw> {
        let length = self.byte()?;
        if length == u8::MAX {
            return Ok(u64::MAX);
        }
        if length > most {
            self.at -= 1;
            return Err(self.flaw("a number declares too many bytes"));
        }
        let bytes = self.take(usize::from(length))?;
        let digit = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Ok(if self.big_endian { bytes.iter().fold(0, digit) } else { bytes.iter().rev().fold(0, digit) })
    }

    /// A number of 32 bits, likewise.
    #[expect(clippy::cast_possible_truncation, reason = "four bytes, or all bits set")]
    pub(super) fn compressed_32(&mut self) -> Result<u32, Flaw> {
        self.compressed(4).map(|number| number as u32)
    }

    /// Skips a number as read by [`Cursor::compressed`].
    pub(super) fn skip_compressed(&mut self, most: u8) -> Result<(), Flaw> {
        let length = self.byte()?;
        let end = self.at + usize::from(length);
        if length <= most && end <= self.bytes.len() {
            self.at = end;
            return Ok(());
        }
        self.at -= 1;
        self.compressed(most).map(drop)
    }

    /// Zero-terminated text; skips the zero byte.
    pub(super) fn text(&mut self) -> Result<&'a [u8], Flaw> {
        let length = self.rest().iter().position(|byte| *byte == 0);
        let length = length.ok_or_else(|| self.flaw("unterminated text"))?;
        let text = self.take(length)?;
        self.at += 1;
        Ok(text)
    }

    /// A cursor over a record that starts with its length: one byte, or 255 and eight bytes.
    pub(super) fn record(&mut self) -> Result<Self, Flaw> {
        let length = match self.byte()? {
            u8::MAX => self.word()?,
            length => u64::from(length),
        };
        let start = self.at;
        self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
        Ok(Self { bytes: &self.bytes[..self.at], at: start, big_endian: self.big_endian })
    }

    /// Skips the attributes of a record. Later versions append more.
    pub(super) fn fields(&mut self, fields: &[Field]) -> Result<(), Flaw> {
        for field in fields {
            match field {
                Field::Later if self.at == self.bytes.len() => return Ok(()),
                Field::Later => {}
                _ => self.field(*field)?,
            }
        }
        Ok(())
    }

    /// Skips one attribute.
    pub(super) fn field(&mut self, field: Field) -> Result<(), Flaw> {
        match field {
            Field::Byte => self.byte().map(drop),
            Field::Word => self.word().map(drop),
            Field::Int32 => self.skip_compressed(4),
            Field::Int64 => self.skip_compressed(8),
            Field::Text => self.text().map(drop),
            Field::Value => self.value(),
            Field::Later => Ok(()),
            Field::Metrics => {
                self.byte().and_then(|count| self.repeat(count.into(), &[Field::Byte, Field::Int64]))
            }
            Field::SmallList => self.byte().and_then(|count| self.repeat(count.into(), &[Field::Int32])),
            Field::Properties => {
                self.byte().and_then(|count| self.repeat(count.into(), &[Field::Byte, Field::Value]))
            }
            Field::Members => self.compressed(4).and_then(|count| self.repeat(count, &[Field::Int64])),
            Field::Arguments => self.compressed(4).and_then(|count| self.repeat(count, &[Field::Int32])),
            Field::IdMap => self.id_map(),
        }
    }

    /// Skips the same attributes `count` times. Each takes at least one byte, so a wrong count fails early.
    fn repeat(&mut self, count: u64, fields: &[Field]) -> Result<(), Flaw> {
        (0..count).try_for_each(|_| fields.iter().try_for_each(|field| self.field(*field)))
    }

    fn value(&mut self) -> Result<(), Flaw> {
        match value(self.byte()?) {
            Fixed::Bytes(count) => self.take(count).map(drop),
            Fixed::Compressed(most) => self.skip_compressed(most),
        }
    }

    /// Requires sorted pairs in sparse maps, because libotf2 sorts them inefficiently while reading, and
    /// rejects empty maps as libotf2 does.
    fn id_map(&mut self) -> Result<(), Flaw> {
        let start = self.at;
        let count = self.compressed(8)?;
        if count == 0 {
            return Err(Flaw { at: start, what: "empty id map" });
        }
        match self.byte()? {
            0 => self.repeat(count, &[Field::Int64]),
            1 => {
                let mut highest = None;
                for _ in 0..count {
                    let start = self.at;
                    let local = self.compressed(8)?;
                    self.skip_compressed(8)?;
                    if highest.replace(local).is_some_and(|highest| highest >= local) {
                        return Err(Flaw { at: start, what: "the ids of an id map are not sorted" });
                    }
                }
                Ok(())
            }
            _ => Err(Flaw { at: self.at - 1, what: "an id map is neither dense nor sparse" }),
        }
    }

    /// Passes the attributes attached to an event: a count, then an id and a value each.
    pub(super) fn attribute_list(&mut self) -> Result<(), Flaw> {
        let count = self.compressed(4)?;
        if count > MOST_ATTRIBUTES {
            return Err(self.flaw("an event has too many attributes"));
        }
        self.repeat(count, &[Field::Int32, Field::Value])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_a_length_and_their_bytes() {
        let read = |bytes: &[u8], most| Cursor::new(bytes).compressed(most);
        assert_eq!(read(&[0], 4), Ok(0));
        assert_eq!(read(&[2, 0, 0x20], 4), Ok(8192));
        assert_eq!(read(&[255], 4), Ok(u64::MAX));
        assert_eq!(read(&[5, 1, 2, 3, 4, 5], 4).unwrap_err().at, 0);
        assert_eq!(read(&[3, 1, 2], 4), Err(Flaw { at: 1, what: CUT_OFF }));
        let mut high_first = Cursor::new(&[2, 0x20, 0]);
        high_first.big_endian = true;
        assert_eq!(high_first.compressed(8), Ok(8192));
    }

    #[test]
    fn records_end_at_their_length() {
        let mut cursor = Cursor::new(&[2, 1, 7, 9]);
        let mut record = cursor.record().unwrap();
        assert_eq!(cursor.at, 3);
        assert_eq!(record.fields(&[Field::Int32]), Ok(()));
        assert_eq!(record.fields(&[Field::Later, Field::Int32]), Ok(()));
        assert_eq!(record.fields(&[Field::Byte]), Err(Flaw { at: 3, what: CUT_OFF }));
        let long = [&[255, 4, 0, 0, 0, 0, 0, 0, 0][..], b"abc\0"].concat();
        assert_eq!(Cursor::new(&long).record().unwrap().text(), Ok(&b"abc"[..]));
        assert!(Cursor::new(&[255; 9]).record().is_err());
        assert!(Cursor::new(&[4, 0]).record().is_err());
    }

    #[test]
    fn sparse_id_maps_are_sorted() {
        let map = |bytes: &[u8]| Cursor::new(bytes).field(Field::IdMap).map_err(|flaw| flaw.what);
        assert_eq!(map(&[1, 2, 1, 0, 1, 9, 1, 3, 1, 8]), Ok(()));
        assert_eq!(map(&[1, 2, 1, 1, 3, 1, 9, 1, 3, 1, 8]), Err("the ids of an id map are not sorted"));
        assert_eq!(map(&[1, 2, 0, 1, 5, 0]), Ok(()));
        assert_eq!(map(&[1, 2, 7, 1, 5, 0]), Err("an id map is neither dense nor sparse"));
        assert_eq!(map(&[255, 0, 0, 0]), Err(CUT_OFF));
        assert_eq!(map(&[0, 0]), Err("empty id map"));
    }

    proptest! {
        #[test]
        fn skipping_is_reading(bytes in prop::collection::vec(any::<u8>(), 0..12), most in prop::sample::select(vec![4u8, 8])) {
            let (mut read, mut skip) = (Cursor::new(&bytes), Cursor::new(&bytes));
            prop_assert_eq!(read.compressed(most).map(drop), skip.skip_compressed(most));
            prop_assert_eq!(read.at, skip.at);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            use Field::{Arguments, Byte, IdMap, Int32, Int64, Later, Members, Metrics, Properties, SmallList, Text, Value, Word};
            for field in [Byte, Word, Int32, Int64, Text, Value, Metrics, Members, Arguments, SmallList, Properties, IdMap, Later] {
                let mut cursor = Cursor::new(&bytes);
                let _ = cursor.field(field);
                prop_assert!(cursor.at <= bytes.len());
            }
            let _ = Cursor::new(&bytes).attribute_list();
            let _ = Cursor::new(&bytes).record();
        }
    }
}
