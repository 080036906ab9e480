//! An archive written through libotf2.

use std::ffi::{CString, c_void};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{NonNull, null_mut};

use otf2_sys::*;

use super::messages;

/// Size of the chunks of event files, as Score-P has it.
const EVENT_CHUNK: u64 = 1 << 20;
/// Size of the chunks of definition files: a record, such as a group, must fit into one.
const DEFINITION_CHUNK: u64 = 4 << 20;

/// Always writes a full buffer, and leaves no record of that.
static FLUSH: OTF2_FlushCallbacks =
    OTF2_FlushCallbacks { otf2_pre_flush: Some(always_flush), otf2_post_flush: None };

unsafe extern "C" fn always_flush(
    _: *mut c_void,
    _: OTF2_FileType,
    _: OTF2_LocationRef,
    _: *mut c_void,
    _: bool,
) -> OTF2_FlushType {
    OTF2_FLUSH
}

/// An archive that is written through libotf2: first the events, then the definitions. Errors are what libotf2 says.
#[derive(Debug)]
pub(crate) struct ArchiveWriter {
    archive: NonNull<OTF2_Archive>,
}

fn check(error: OTF2_ErrorCode) -> Result<(), String> {
    if error == OTF2_SUCCESS { Ok(()) } else { Err(messages::take(error)) }
}

fn some<T>(pointer: *mut T) -> Result<NonNull<T>, String> {
    NonNull::new(pointer).ok_or_else(|| messages::take(OTF2_SUCCESS))
}

fn text(text: &[u8]) -> Result<CString, String> {
    CString::new(text).map_err(|_| "a text holds a zero byte".into())
}

impl ArchiveWriter {
    /// Makes the archive `NAME.otf2` in a folder.
    pub(crate) fn create(folder: &Path, name: &str) -> Result<Self, String> {
        messages::capture();
        messages::forget();
        let (folder, name) = (text(folder.as_os_str().as_bytes())?, text(name.as_bytes())?);
        // SAFETY: both texts end with a zero byte and are copied; the callbacks live for ever and need no user data.
        unsafe {
            let archive = OTF2_Archive_Open(
                folder.as_ptr(),
                name.as_ptr(),
                OTF2_FILEMODE_WRITE,
                EVENT_CHUNK,
                DEFINITION_CHUNK,
                OTF2_SUBSTRATE_POSIX,
                OTF2_COMPRESSION_NONE,
            );
            let writer = Self { archive: some(archive)? };
            check(OTF2_Archive_SetFlushCallbacks(writer.archive(), &raw const FLUSH, null_mut()))?;
            check(OTF2_Archive_SetSerialCollectiveCallbacks(writer.archive()))?;
            check(OTF2_Archive_OpenEvtFiles(writer.archive()))?;
            Ok(writer)
        }
    }

    fn archive(&self) -> *mut OTF2_Archive {
        self.archive.as_ptr()
    }

    /// Begins the events of a location.
    pub(crate) fn events(&mut self, location: u64) -> Result<EventWriter<'_>, String> {
        // SAFETY: the archive is open for events; a location that is undefined would be refused.
        let writer = some(unsafe { OTF2_Archive_GetEvtWriter(self.archive(), location) })?;
        Ok(EventWriter { writer, archive: self })
    }

    /// Ends the events, writes the definitions of the locations, which have none, and begins those of the archive.
    pub(crate) fn definitions(
        &mut self,
        locations: impl Iterator<Item = u64>,
    ) -> Result<DefinitionWriter<'_>, String> {
        // SAFETY: the archive is open, and all handles belong to it.
        unsafe {
            check(OTF2_Archive_CloseEvtFiles(self.archive()))?;
            check(OTF2_Archive_OpenDefFiles(self.archive()))?;
            for location in locations {
                let writer = some(OTF2_Archive_GetDefWriter(self.archive(), location))?;
                check(OTF2_Archive_CloseDefWriter(self.archive(), writer.as_ptr()))?;
            }
            check(OTF2_Archive_CloseDefFiles(self.archive()))?;
            let writer = some(OTF2_Archive_GetGlobalDefWriter(self.archive()))?;
            Ok(DefinitionWriter { writer, strings: 0, archive: PhantomData })
        }
    }

    /// Writes what is left, the anchor file at last.
    pub(crate) fn close(self) -> Result<(), String> {
        let archive = self.archive();
        std::mem::forget(self);
        // SAFETY: the archive is open and closed once, for `self` is not dropped.
        check(unsafe { OTF2_Archive_Close(archive) })
    }
}

impl Drop for ArchiveWriter {
    fn drop(&mut self) {
        // SAFETY: the archive is open and closed once; this closes everything opened through it.
        unsafe { OTF2_Archive_Close(self.archive()) };
        messages::forget();
    }
}

/// Writes the events of a location, in the order of time.
#[derive(Debug)]
pub(crate) struct EventWriter<'a> {
    writer: NonNull<OTF2_EvtWriter>,
    archive: &'a ArchiveWriter,
}

/// A message as one of its ends sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// The other end, by its rank in the communicator.
    pub(crate) peer: u32,
    /// The communicator.
    pub(crate) communicator: u32,
    /// Its length.
    pub(crate) bytes: u64,
}

impl EventWriter<'_> {
    pub(crate) fn enter(&mut self, time: u64, region: u32) -> Result<(), String> {
        // SAFETY: the writer is open; no attributes are null.
        check(unsafe { OTF2_EvtWriter_Enter(self.writer.as_ptr(), null_mut(), time, region) })
    }

    pub(crate) fn leave(&mut self, time: u64, region: u32) -> Result<(), String> {
        // SAFETY: as above.
        check(unsafe { OTF2_EvtWriter_Leave(self.writer.as_ptr(), null_mut(), time, region) })
    }

    pub(crate) fn send(&mut self, time: u64, transfer: Transfer) -> Result<(), String> {
        let Transfer { peer, communicator, bytes } = transfer;
        // SAFETY: as above.
        check(unsafe {
            OTF2_EvtWriter_MpiSend(self.writer.as_ptr(), null_mut(), time, peer, communicator, 0, bytes)
        })
    }

    pub(crate) fn receive(&mut self, time: u64, transfer: Transfer) -> Result<(), String> {
        let Transfer { peer, communicator, bytes } = transfer;
        // SAFETY: as above.
        check(unsafe {
            OTF2_EvtWriter_MpiRecv(self.writer.as_ptr(), null_mut(), time, peer, communicator, 0, bytes)
        })
    }

    /// Writes what is left.
    pub(crate) fn close(self) -> Result<(), String> {
        // SAFETY: the writer belongs to the archive and is closed once.
        check(unsafe { OTF2_Archive_CloseEvtWriter(self.archive.archive(), self.writer.as_ptr()) })
    }
}

/// Writes the definitions of an archive. Nodes and regions must be defined before what refers to them.
#[derive(Debug)]
pub(crate) struct DefinitionWriter<'a> {
    writer: NonNull<OTF2_GlobalDefWriter>,
    strings: u32,
    archive: PhantomData<&'a ArchiveWriter>,
}

impl DefinitionWriter<'_> {
    fn writer(&self) -> *mut OTF2_GlobalDefWriter {
        self.writer.as_ptr()
    }

    /// The clock ticks in nanoseconds; the trace begins at `start` and is `length` ticks long.
    pub(crate) fn nanoseconds(&mut self, start: u64, length: u64) -> Result<(), String> {
        // SAFETY: the writer is open.
        check(unsafe {
            let undefined = OTF2_UNDEFINED_UINT64;
            OTF2_GlobalDefWriter_WriteClockProperties(self.writer(), 1_000_000_000, start, length, undefined)
        })
    }

    pub(crate) fn string(&mut self, string: &str) -> Result<u32, String> {
        let (string, id) = (text(string.as_bytes())?, self.strings);
        self.strings += 1;
        // SAFETY: the writer is open; the text ends with a zero byte and is copied.
        check(unsafe { OTF2_GlobalDefWriter_WriteString(self.writer(), id, string.as_ptr()) })?;
        Ok(id)
    }

    /// A node on its own.
    pub(crate) fn node(&mut self, id: u32, name: u32, class: u32) -> Result<(), String> {
        let no_parent = OTF2_UNDEFINED_UINT32;
        // SAFETY: the writer is open.
        check(unsafe { OTF2_GlobalDefWriter_WriteSystemTreeNode(self.writer(), id, name, class, no_parent) })
    }

    /// A process and its only thread, which has the same id.
    pub(crate) fn process(&mut self, id: u32, name: u32, node: u32, events: u64) -> Result<(), String> {
        let (process, thread) = (OTF2_LOCATION_GROUP_TYPE_PROCESS, OTF2_LOCATION_TYPE_CPU_THREAD);
        // SAFETY: the writer is open.
        unsafe {
            let no_creator = OTF2_UNDEFINED_UINT32;
            check(OTF2_GlobalDefWriter_WriteLocationGroup(
                self.writer(),
                id,
                name,
                process,
                node,
                no_creator,
            ))?;
            check(OTF2_GlobalDefWriter_WriteLocation(self.writer(), id.into(), name, thread, events, id))
        }
    }

    /// A function, of MPI or of the program.
    pub(crate) fn region(&mut self, id: u32, name: u32, mpi: bool) -> Result<(), String> {
        let (role, paradigm) = match mpi {
            true => (OTF2_REGION_ROLE_POINT2POINT, OTF2_PARADIGM_MPI),
            false => (OTF2_REGION_ROLE_FUNCTION, OTF2_PARADIGM_USER),
        };
        let none = OTF2_UNDEFINED_UINT32;
        // SAFETY: the writer is open.
        check(unsafe {
            OTF2_GlobalDefWriter_WriteRegion(
                self.writer(),
                id,
                name,
                name,
                none,
                role,
                paradigm,
                0,
                none,
                0,
                0,
            )
        })
    }

    /// The locations of the MPI ranks.
    pub(crate) fn ranks(&mut self, id: u32, name: u32, locations: &[u64]) -> Result<(), String> {
        self.group(id, name, OTF2_GROUP_TYPE_COMM_LOCATIONS, locations)
    }

    /// A communicator of some ranks, and their group of the given id.
    pub(crate) fn communicator(
        &mut self,
        id: u32,
        name: u32,
        group: u32,
        ranks: &[u64],
    ) -> Result<(), String> {
        self.group(group, name, OTF2_GROUP_TYPE_COMM_GROUP, ranks)?;
        let no_parent = OTF2_UNDEFINED_UINT32;
        // SAFETY: the writer is open.
        check(unsafe { OTF2_GlobalDefWriter_WriteComm(self.writer(), id, name, group, no_parent, 0) })
    }

    fn group(&mut self, id: u32, name: u32, kind: OTF2_GroupType, members: &[u64]) -> Result<(), String> {
        let count = u32::try_from(members.len()).map_err(|_| "a group has too many members")?;
        // SAFETY: the writer is open; there are as many members as said.
        check(unsafe {
            let (mpi, members) = (OTF2_PARADIGM_MPI, members.as_ptr());
            OTF2_GlobalDefWriter_WriteGroup(self.writer(), id, name, kind, mpi, 0, count, members)
        })
    }
}
