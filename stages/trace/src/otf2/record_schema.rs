//! Layouts of the records of OTF2 files by type number, and constants of the format under their names in the
//! headers of libotf2.
//!
//! The lists follow the readers of libotf2 3.0.2 (`OTF2_EvtReader_inc.c`, `OTF2_GlobalDefReader_inc.c`,
//! `OTF2_DefReader_inc.c`) and cover every byte that those read.

use Field::{
    Arguments, Byte, IdMap, Int32, Int64, Later, Members, Metrics, Properties, SmallList, Text, Value, Word,
};

/// An attribute of a record, or several that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// One byte.
    Byte,
    /// Eight bytes.
    Word,
    /// A length byte and that many bytes, up to four.
    Int32,
    /// A length byte and that many bytes, up to eight.
    Int64,
    /// Text up to a zero byte.
    Text,
    /// A type byte and a value of that type.
    Value,
    /// A count in one byte, then a type byte and a number each.
    Metrics,
    /// A count, then a number of 64 bits each.
    Members,
    /// A count, then a number of 32 bits each.
    Arguments,
    /// A count in one byte, then a number of 32 bits each.
    SmallList,
    /// A count in one byte, then a byte and a [`Field::Value`] each.
    Properties,
    /// A count, a mode, then the global ids (dense) or pairs of local and global ids (sparse).
    IdMap,
    /// The rest was added by a later version, and the record may end here.
    Later,
}

/// Layout of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Without a length: one attribute.
    Single(Field),
    /// A length, then attributes, then additions of later versions.
    Record(&'static [Field]),
    /// A length, then uninterpreted bytes.
    Unknown,
    /// No record has this number.
    Impossible,
}

/// Layout of the records of an event file.
pub(super) const fn event(number: u8) -> Layout {
    Layout::Record(match number {
        // Enter, Leave, OmpFork.
        12 | 13 | 24 => return Layout::Single(Int32),
        // MpiIsendComplete, MpiIrecvRequest, MpiRequestTest, MpiRequestCancelled, OmpTaskCreate, Switch, Complete.
        16 | 17 | 20 | 21 | 28..=30 => return Layout::Single(Int64),
        // BufferFlush.
        10 => &[Word],
        // MeasurementOnOff, ThreadJoin.
        11 | 54 => &[Byte],
        // MpiSend, MpiRecv.
        14 | 18 => &[Int32, Int32, Int32, Int64],
        // MpiIsend, MpiIrecv.
        15 | 19 => &[Int32, Int32, Int32, Int64, Int64],
        // MpiCollectiveBegin, OmpJoin, RmaCollectiveBegin.
        22 | 25 | 37 => &[],
        // MpiCollectiveEnd.
        23 => &[Byte, Int32, Int32, Int64, Int64],
        // OmpAcquireLock, OmpReleaseLock, ParameterString, CallingContextEnter, IoChangeStatusFlags.
        26 | 27 | 32 | 66 | 73 => &[Int32, Int32],
        // Metric.
        31 => &[Int32, Metrics],
        // ParameterInt, ParameterUnsignedInt, RmaOp*, ThreadCreate to ThreadEnd, IoOperationTest, Issued, Cancelled.
        33 | 34 | 49..=52 | 62..=65 | 76 | 77 | 79 => &[Int32, Int64],
        // RmaWinCreate, RmaWinDestroy, RmaWaitChange, ThreadTeam*, CallingContextLeave, IoDestroyHandle, Comm*.
        35 | 36 | 45 | 55 | 56 | 67 | 70 | 87 | 88 => &[Int32],
        // RmaCollectiveEnd.
        38 => &[Byte, Int32, Int32, Int32, Int64, Int64],
        // RmaGroupSync, ThreadTask*, CallingContextSample, IoDuplicateHandle.
        39 | 59..=61 | 68 | 71 => &[Int32, Int32, Int32],
        // RmaRequestLock, RmaAcquireLock, RmaTryLock.
        40..=42 => &[Int32, Int32, Int64, Byte],
        // RmaReleaseLock.
        43 => &[Int32, Int32, Int64],
        // RmaSync.
        44 => &[Int32, Int32, Byte],
        // RmaPut, RmaGet.
        46 | 47 => &[Int32, Int32, Int64, Int64],
        // RmaAtomic.
        48 => &[Int32, Int32, Byte, Int64, Int64, Int64],
        // ThreadFork, IoDeleteFile.
        53 | 74 => &[Byte, Int32],
        // ThreadAcquireLock, ThreadReleaseLock.
        57 | 58 => &[Byte, Int32, Int32],
        // IoCreateHandle.
        69 => &[Int32, Byte, Int32, Int32],
        // IoSeek.
        72 => &[Int32, Int64, Byte, Int64],
        // IoOperationBegin.
        75 => &[Int32, Byte, Int32, Int64, Int64],
        // IoOperationComplete.
        78 => &[Int32, Int64, Int64],
        // IoAcquireLock, IoReleaseLock, IoTryLock.
        80..=82 => &[Int32, Byte],
        // ProgramBegin.
        83 => &[Int32, Arguments],
        // ProgramEnd, NonBlockingCollectiveRequest.
        84 | 85 => &[Int64],
        // NonBlockingCollectiveComplete.
        86 => &[Byte, Int32, Int32, Int64, Int64, Int64],
        0..=9 => return Layout::Impossible,
        89.. => return Layout::Unknown,
    })
}

/// Layout of the records in the definitions of an archive.
pub(super) const fn global_definition(number: u8) -> Layout {
    Layout::Record(match number {
        // ClockProperties.
        5 => &[Int64, Int64, Int64, Later, Int64],
        // Paradigm.
        6 => &[Byte, Int32, Byte],
        // ParadigmProperty.
        7 => &[Byte, Byte, Value],
        // IoParadigm.
        8 => &[Byte, Int32, Int32, Byte, Int32, Properties],
        _ => return definition(number),
    })
}

/// Layout of the records in the definitions of a location.
pub(super) const fn local_definition(number: u8) -> Layout {
    Layout::Record(match number {
        // MappingTable.
        5 => &[Byte, IdMap],
        // ClockOffset.
        6 => &[Word, Int64, Word],
        _ => return definition(number),
    })
}

/// Definitions that occur in both kinds of files.
const fn definition(number: u8) -> Layout {
    Layout::Record(match number {
        // String.
        10 => &[Int32, Text],
        // Attribute.
        11 => &[Int32, Int32, Byte, Later, Int32],
        // SystemTreeNode, CallingContext.
        12 | 34 => &[Int32, Int32, Int32, Int32],
        // LocationGroup.
        13 => &[Int32, Int32, Byte, Int32, Later, Int32],
        // Location.
        14 => &[Int64, Int32, Byte, Int64, Int32],
        // Region.
        15 => &[Int32, Int32, Int32, Byte, Int32, Int32, Int32, Later, Int32, Byte, Byte, Int32],
        // Callsite.
        16 => &[Int32, Int32, Int32, Int32, Int32],
        // Callpath, IoRegularFile, IoDirectory, SourceCodeLocation.
        17 | 33 | 38 | 39 => &[Int32, Int32, Int32],
        // Group.
        18 => &[Int32, Int32, Byte, Members, Later, Byte, Byte, Int32],
        // MetricMember.
        19 => &[Int32, Int32, Int32, Byte, Byte, Byte, Byte, Int64, Int32],
        // MetricClass.
        20 => &[Int32, SmallList, Byte, Later, Byte],
        // MetricInstance.
        21 => &[Int32, Int32, Int64, Byte, Int64],
        // Comm.
        22 => &[Int32, Int32, Int32, Int32, Later, Int32],
        // Parameter.
        23 => &[Int32, Int32, Byte],
        // RmaWin.
        24 => &[Int32, Int32, Int32, Later, Int32],
        // MetricClassRecorder.
        25 => &[Int32, Int64],
        // SystemTreeNodeProperty, LocationGroupProperty.
        26 | 28 => &[Int32, Int32, Int32, Later, Value],
        // SystemTreeNodeDomain.
        27 => &[Int32, Byte],
        // LocationProperty.
        29 => &[Int64, Int32, Int32, Later, Value],
        // CartDimension.
        30 => &[Int32, Int32, Int32, Byte],
        // CartTopology.
        31 => &[Int32, Int32, Int32, SmallList],
        // CartCoordinate.
        32 => &[Int32, Int32, SmallList],
        // CallingContextProperty, IoFileProperty, CallpathParameter.
        35 | 37 | 42 => &[Int32, Int32, Value],
        // InterruptGenerator.
        36 => &[Int32, Int32, Byte, Byte, Int64, Int64],
        // IoHandle.
        40 => &[Int32, Int32, Int32, Byte, Int32, Int32, Int32],
        // IoPreCreatedHandleState.
        41 => &[Int32, Byte, Int32],
        // InterComm.
        43 => &[Int32, Int32, Int32, Int32, Int32, Int32],
        0..=4 => return Layout::Impossible,
        5..=9 | 44.. => return Layout::Unknown,
    })
}

/// The attribute type of a value type.
pub(super) const fn value(kind: u8) -> Fixed {
    match kind {
        1 | 5 => Fixed::Bytes(1),
        2 | 6 => Fixed::Bytes(2),
        9 => Fixed::Bytes(4),
        10 => Fixed::Bytes(8),
        3 | 7 | 11 | 12 | 14..=25 => Fixed::Compressed(4),
        // 64-bit integers, locations, and references of later versions.
        _ => Fixed::Compressed(8),
    }
}

/// Encoding of a single value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fixed {
    /// Fixed number of bytes.
    Bytes(usize),
    /// A length byte and up to this many bytes.
    Compressed(u8),
}

/// Maximum number of attributes of an event that consists of compressed numbers only.
const MOST_NUMBERS: usize = 5;

/// An event that consists of compressed numbers only, like most events of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    /// Whether it has a length.
    pub(super) length: bool,
    most: [u8; MOST_NUMBERS],
    count: u8,
}

impl Numbers {
    /// Maximum bytes of each number.
    #[inline]
    pub(super) fn most(&self) -> &[u8] {
        &self.most[..usize::from(self.count)]
    }

    const fn of(layout: Layout) -> Option<Self> {
        let (length, fields): (bool, &[Field]) = match layout {
            Layout::Single(Int32) => (false, &[Int32]),
            Layout::Single(Int64) => (false, &[Int64]),
            Layout::Record(fields) => (true, fields),
            _ => return None,
        };
        let mut numbers = Self { length, most: [0; MOST_NUMBERS], count: 0 };
        while (numbers.count as usize) < fields.len() {
            let place = numbers.count as usize;
            let most = match fields[place] {
                Int32 => 4,
                Int64 => 8,
                _ => return None,
            };
            if place == MOST_NUMBERS {
                return None;
            }
            numbers.most[place] = most;
            numbers.count += 1;
        }
        Some(numbers)
    }
}

/// [`Numbers`] of such events, by type number.
pub(super) static NUMBERS: [Option<Numbers>; 256] = {
    let mut all = [None; 256];
    let mut number = 0;
    while number < all.len() {
        #[expect(clippy::cast_possible_truncation, reason = "there are 256")]
        let kind = number as u8;
        all[number] = Numbers::of(event(kind));
        number += 1;
    }
    all
};

macro_rules! constants {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        $(pub(super) const $name: $type = $value;)*

        #[cfg(all(test, feature = "libotf2"))]
        #[test]
        fn constants_match_libotf2() {
            $(assert_eq!($name, otf2_sys::$name, stringify!($name));)*
        }
    };
}

constants! {
    OTF2_UNDEFINED_UINT32: u32 = u32::MAX;
    OTF2_UNDEFINED_UINT64: u64 = u64::MAX;
    OTF2_UNDEFINED_LOCATION: u64 = u64::MAX;
    OTF2_CHUNK_SIZE_MIN: u64 = 256 << 10;
    OTF2_CHUNK_SIZE_MAX: u64 = 16 << 20;
    OTF2_LOCATION_GROUP_TYPE_PROCESS: u8 = 1;
    OTF2_LOCATION_TYPE_CPU_THREAD: u8 = 1;
    OTF2_PARADIGM_USER: u8 = 1;
    OTF2_PARADIGM_MPI: u8 = 4;
    OTF2_PARADIGM_GASPI: u8 = 11;
    OTF2_PARADIGM_UPC: u8 = 12;
    OTF2_PARADIGM_SHMEM: u8 = 13;
    OTF2_GROUP_TYPE_COMM_LOCATIONS: u8 = 4;
    OTF2_GROUP_TYPE_COMM_GROUP: u8 = 5;
    OTF2_GROUP_TYPE_COMM_SELF: u8 = 6;
    OTF2_GROUP_FLAG_GLOBAL_MEMBERS: u32 = 1;
    OTF2_REGION_ROLE_FUNCTION: u8 = 1;
    OTF2_REGION_ROLE_COLL_ONE2ALL: u8 = 23;
    OTF2_REGION_ROLE_COLL_ALL2ONE: u8 = 24;
    OTF2_REGION_ROLE_COLL_ALL2ALL: u8 = 25;
    OTF2_REGION_ROLE_COLL_OTHER: u8 = 26;
    OTF2_REGION_ROLE_POINT2POINT: u8 = 28;
    OTF2_REGION_ROLE_RMA: u8 = 29;
}
