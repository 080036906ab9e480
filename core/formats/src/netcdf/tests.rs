use super::*;

/// Writes classic netCDF: dimensions, and variables with text or numbers, records last.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) dimensions: Vec<(&'static str, u32)>,
    pub(crate) variables: Vec<(&'static str, Vec<u32>, Data)>,
    pub(crate) records: u32,
    pub(crate) version: u8,
}

pub(crate) enum Data {
    Int(i32),
    Text(&'static str),
    Doubles(Vec<f64>),
}

impl Data {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Int(number) => number.to_be_bytes().to_vec(),
            Self::Text(text) => text.bytes().collect(),
            Self::Doubles(numbers) => numbers.iter().flat_map(|number| number.to_be_bytes()).collect(),
        }
    }
}

fn put(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend(number.to_be_bytes());
}

fn put_padded(bytes: &mut Vec<u8>, data: &[u8]) {
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

impl Writer {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        // Offsets depend on the length of the header, but not vice versa.
        let header = self.header(&vec![0; self.variables.len()]);
        let mut begin = header.len() as u64;
        let mut body = Vec::new();
        let mut begins = Vec::new();
        for (_, _, data) in &self.variables {
            begins.push(begin);
            let before = body.len();
            put_padded(&mut body, &data.bytes());
            begin += (body.len() - before) as u64;
        }
        [self.header(&begins), body].concat()
    }

    fn header(&self, begins: &[u64]) -> Vec<u8> {
        let mut bytes = vec![b'C', b'D', b'F', self.version];
        put(&mut bytes, self.records);
        put(&mut bytes, 10);
        put(&mut bytes, self.dimensions.len() as u32);
        for (name, length) in &self.dimensions {
            put(&mut bytes, name.len() as u32);
            put_padded(&mut bytes, name.as_bytes());
            put(&mut bytes, *length);
        }
        // A file attribute: two shorts.
        [12, 1, 5].into_iter().for_each(|number| put(&mut bytes, number));
        put_padded(&mut bytes, b"title");
        [3, 2, 0x0001_0002].into_iter().for_each(|number| put(&mut bytes, number));
        put(&mut bytes, 11);
        put(&mut bytes, self.variables.len() as u32);
        for ((name, dimensions, data), begin) in self.variables.iter().zip(begins) {
            put(&mut bytes, name.len() as u32);
            put_padded(&mut bytes, name.as_bytes());
            put(&mut bytes, dimensions.len() as u32);
            dimensions.iter().for_each(|dimension| put(&mut bytes, *dimension));
            [0, 0].into_iter().for_each(|number| put(&mut bytes, number));
            put(
                &mut bytes,
                match data {
                    Data::Int(_) => 4,
                    Data::Text(_) => 2,
                    Data::Doubles(_) => 6,
                },
            );
            put(&mut bytes, 0);
            if self.version == 2 {
                put(&mut bytes, (begin >> 32) as u32);
            }
            put(&mut bytes, *begin as u32);
        }
        bytes
    }
}

fn sample(version: u8) -> Vec<u8> {
    Writer {
        dimensions: vec![("x", 2), ("n", 0), ("strings", 5)],
        variables: vec![
            ("count", vec![], Data::Int(-7)),
            ("name", vec![2], Data::Text("abc\0d")),
            ("data", vec![1, 0], Data::Doubles(vec![1.0, 2.5, -3.0, f64::NAN])),
        ],
        records: 2,
        version,
    }
    .bytes()
}

#[test]
fn both_versions_are_read() {
    for version in [1, 2] {
        let bytes = sample(version);
        let file = Netcdf::new(&bytes).unwrap();
        let variable = |name| file.variable(name).unwrap();
        assert_eq!(file.numbers(variable("count")).unwrap(), [-7.0]);
        assert_eq!(file.text(variable("name")).unwrap(), "abc");
        assert_eq!(file.shape(variable("data")), [2, 2]);
        let numbers = file.numbers(variable("data")).unwrap();
        assert_eq!(numbers[..3], [1.0, 2.5, -3.0]);
        assert!(numbers[3].is_nan());
        assert!(file.variable("other").is_none());
    }
}

#[test]
fn an_unknown_number_of_records_is_derived_from_the_size() {
    let mut bytes = sample(2);
    bytes[4..8].fill(0xff);
    let file = Netcdf::new(&bytes).unwrap();
    assert_eq!(file.records, 2);
    bytes[4..8].copy_from_slice(&9_u32.to_be_bytes());
    let file = Netcdf::new(&bytes).unwrap();
    let error = file.numbers(file.variable("data").unwrap()).unwrap_err();
    assert!(error.problem.contains("ends inside `data`, in record 2"), "{error}");
}

#[test]
fn truncated_files_are_errors_or_keep_complete_records() {
    let bytes = sample(2);
    for end in 0..bytes.len() {
        if let Ok(file) = Netcdf::new(&bytes[..end]) {
            assert!(file.numbers(file.variable("data").unwrap()).is_err());
        }
    }
    for (head, problem) in [
        (&b"CDF\x05"[..], "unsupported version"),
        (b"\x89HDF", "unsupported version"),
        (b"CD", "not a netCDF"),
        (b"CDF\x03", "not a netCDF"),
    ] {
        assert!(Netcdf::new(head).unwrap_err().problem.contains(problem));
    }
}
