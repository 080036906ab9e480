//! What it takes to write an archive.

use std::ffi::{c_char, c_void};

use crate::{
    OTF2_AttributeList, OTF2_CommFlag, OTF2_CommRef, OTF2_ErrorCode, OTF2_GroupFlag, OTF2_GroupRef,
    OTF2_GroupType, OTF2_LocationGroupRef, OTF2_LocationGroupType, OTF2_LocationRef, OTF2_LocationType,
    OTF2_Paradigm, OTF2_RegionFlag, OTF2_RegionRef, OTF2_RegionRole, OTF2_StringRef, OTF2_SystemTreeNodeRef,
    OTF2_TimeStamp,
};

/// Whether an archive is read or written.
pub type OTF2_FileMode = u8;
/// How files are kept.
pub type OTF2_FileSubstrate = u8;
/// How files are compressed.
pub type OTF2_Compression = u8;
/// What a file holds.
pub type OTF2_FileType = u8;
/// Whether to write a full buffer to its file.
pub type OTF2_FlushType = u8;

/// The archive is written.
pub const OTF2_FILEMODE_WRITE: OTF2_FileMode = 0;
/// Plain files.
pub const OTF2_SUBSTRATE_POSIX: OTF2_FileSubstrate = 1;
/// Not compressed.
pub const OTF2_COMPRESSION_NONE: OTF2_Compression = 1;
/// Write the buffer to its file.
pub const OTF2_FLUSH: OTF2_FlushType = 1;

opaque! {
    /// An archive opened for writing.
    OTF2_Archive
    /// Writer of the definitions of the whole archive.
    OTF2_GlobalDefWriter
    /// Writer of the definitions of one location.
    OTF2_DefWriter
    /// Writer of the events of one location.
    OTF2_EvtWriter
}

/// Asked before a buffer is written to its file.
pub type OTF2_PreFlushCallback = unsafe extern "C" fn(
    user_data: *mut c_void,
    file_type: OTF2_FileType,
    location: OTF2_LocationRef,
    caller_data: *mut c_void,
    last: bool,
) -> OTF2_FlushType;
/// Asked for the time afterwards, which a record of the flush needs.
pub type OTF2_PostFlushCallback = unsafe extern "C" fn(
    user_data: *mut c_void,
    file_type: OTF2_FileType,
    location: OTF2_LocationRef,
) -> OTF2_TimeStamp;

/// What happens when a buffer is full. Without the second callback flushes leave no record.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct OTF2_FlushCallbacks {
    /// Asked before.
    pub otf2_pre_flush: Option<OTF2_PreFlushCallback>,
    /// Asked afterwards.
    pub otf2_post_flush: Option<OTF2_PostFlushCallback>,
}

unsafe extern "C" {
    /// Opens an archive; null on failure.
    pub fn OTF2_Archive_Open(
        archive_path: *const c_char,
        archive_name: *const c_char,
        file_mode: OTF2_FileMode,
        chunk_size_events: u64,
        chunk_size_definitions: u64,
        file_substrate: OTF2_FileSubstrate,
        compression: OTF2_Compression,
    ) -> *mut OTF2_Archive;
    /// Writes the anchor file and closes the archive and everything opened through it.
    pub fn OTF2_Archive_Close(archive: *mut OTF2_Archive) -> OTF2_ErrorCode;
    /// Sets what happens when a buffer is full. The callbacks are copied.
    pub fn OTF2_Archive_SetFlushCallbacks(
        archive: *mut OTF2_Archive,
        callbacks: *const OTF2_FlushCallbacks,
        user_data: *mut c_void,
    ) -> OTF2_ErrorCode;
    /// Says that one process writes the archive by itself.
    pub fn OTF2_Archive_SetSerialCollectiveCallbacks(archive: *mut OTF2_Archive) -> OTF2_ErrorCode;
    /// Makes events of locations writable.
    pub fn OTF2_Archive_OpenEvtFiles(archive: *mut OTF2_Archive) -> OTF2_ErrorCode;
    /// Ends the writing of events.
    pub fn OTF2_Archive_CloseEvtFiles(archive: *mut OTF2_Archive) -> OTF2_ErrorCode;
    /// Makes definitions of locations writable.
    pub fn OTF2_Archive_OpenDefFiles(archive: *mut OTF2_Archive) -> OTF2_ErrorCode;
    /// Ends the writing of definitions of locations.
    pub fn OTF2_Archive_CloseDefFiles(archive: *mut OTF2_Archive) -> OTF2_ErrorCode;
    /// Opens the events of a location; null on failure.
    pub fn OTF2_Archive_GetEvtWriter(
        archive: *mut OTF2_Archive,
        location: OTF2_LocationRef,
    ) -> *mut OTF2_EvtWriter;
    /// Closes the events of a location.
    pub fn OTF2_Archive_CloseEvtWriter(
        archive: *mut OTF2_Archive,
        writer: *mut OTF2_EvtWriter,
    ) -> OTF2_ErrorCode;
    /// Opens the definitions of a location; null on failure.
    pub fn OTF2_Archive_GetDefWriter(
        archive: *mut OTF2_Archive,
        location: OTF2_LocationRef,
    ) -> *mut OTF2_DefWriter;
    /// Closes the definitions of a location.
    pub fn OTF2_Archive_CloseDefWriter(
        archive: *mut OTF2_Archive,
        writer: *mut OTF2_DefWriter,
    ) -> OTF2_ErrorCode;
    /// Opens the definitions of the archive; null on failure.
    pub fn OTF2_Archive_GetGlobalDefWriter(archive: *mut OTF2_Archive) -> *mut OTF2_GlobalDefWriter;
    /// Closes the definitions of the archive.
    pub fn OTF2_Archive_CloseGlobalDefWriter(
        archive: *mut OTF2_Archive,
        writer: *mut OTF2_GlobalDefWriter,
    ) -> OTF2_ErrorCode;

    /// Ticks per second, first and last point in time.
    pub fn OTF2_GlobalDefWriter_WriteClockProperties(
        writer: *mut OTF2_GlobalDefWriter,
        timer_resolution: u64,
        global_offset: u64,
        trace_length: u64,
        realtime_timestamp: u64,
    ) -> OTF2_ErrorCode;
    /// A text.
    pub fn OTF2_GlobalDefWriter_WriteString(
        writer: *mut OTF2_GlobalDefWriter,
        own: OTF2_StringRef,
        string: *const c_char,
    ) -> OTF2_ErrorCode;
    /// A machine, a node, or whatever else holds others.
    pub fn OTF2_GlobalDefWriter_WriteSystemTreeNode(
        writer: *mut OTF2_GlobalDefWriter,
        own: OTF2_SystemTreeNodeRef,
        name: OTF2_StringRef,
        class_name: OTF2_StringRef,
        parent: OTF2_SystemTreeNodeRef,
    ) -> OTF2_ErrorCode;
    /// A process or an accelerator.
    pub fn OTF2_GlobalDefWriter_WriteLocationGroup(
        writer: *mut OTF2_GlobalDefWriter,
        own: OTF2_LocationGroupRef,
        name: OTF2_StringRef,
        kind: OTF2_LocationGroupType,
        system_tree_parent: OTF2_SystemTreeNodeRef,
        creator: OTF2_LocationGroupRef,
    ) -> OTF2_ErrorCode;
    /// A thread.
    pub fn OTF2_GlobalDefWriter_WriteLocation(
        writer: *mut OTF2_GlobalDefWriter,
        own: OTF2_LocationRef,
        name: OTF2_StringRef,
        kind: OTF2_LocationType,
        events: u64,
        location_group: OTF2_LocationGroupRef,
    ) -> OTF2_ErrorCode;
    /// A function or a piece of code.
    pub fn OTF2_GlobalDefWriter_WriteRegion(
        writer: *mut OTF2_GlobalDefWriter,
        own: OTF2_RegionRef,
        name: OTF2_StringRef,
        canonical_name: OTF2_StringRef,
        description: OTF2_StringRef,
        role: OTF2_RegionRole,
        paradigm: OTF2_Paradigm,
        flags: OTF2_RegionFlag,
        source_file: OTF2_StringRef,
        begin_line: u32,
        end_line: u32,
    ) -> OTF2_ErrorCode;
    /// A list of locations or ranks.
    pub fn OTF2_GlobalDefWriter_WriteGroup(
        writer: *mut OTF2_GlobalDefWriter,
        own: OTF2_GroupRef,
        name: OTF2_StringRef,
        kind: OTF2_GroupType,
        paradigm: OTF2_Paradigm,
        flags: OTF2_GroupFlag,
        count: u32,
        members: *const u64,
    ) -> OTF2_ErrorCode;
    /// A communicator.
    pub fn OTF2_GlobalDefWriter_WriteComm(
        writer: *mut OTF2_GlobalDefWriter,
        own: OTF2_CommRef,
        name: OTF2_StringRef,
        group: OTF2_GroupRef,
        parent: OTF2_CommRef,
        flags: OTF2_CommFlag,
    ) -> OTF2_ErrorCode;

    /// A region is entered.
    pub fn OTF2_EvtWriter_Enter(
        writer: *mut OTF2_EvtWriter,
        attributes: *mut OTF2_AttributeList,
        time: OTF2_TimeStamp,
        region: OTF2_RegionRef,
    ) -> OTF2_ErrorCode;
    /// A region is left.
    pub fn OTF2_EvtWriter_Leave(
        writer: *mut OTF2_EvtWriter,
        attributes: *mut OTF2_AttributeList,
        time: OTF2_TimeStamp,
        region: OTF2_RegionRef,
    ) -> OTF2_ErrorCode;
    /// A message is sent.
    pub fn OTF2_EvtWriter_MpiSend(
        writer: *mut OTF2_EvtWriter,
        attributes: *mut OTF2_AttributeList,
        time: OTF2_TimeStamp,
        receiver: u32,
        communicator: OTF2_CommRef,
        tag: u32,
        length: u64,
    ) -> OTF2_ErrorCode;
    /// A message is received.
    pub fn OTF2_EvtWriter_MpiRecv(
        writer: *mut OTF2_EvtWriter,
        attributes: *mut OTF2_AttributeList,
        time: OTF2_TimeStamp,
        sender: u32,
        communicator: OTF2_CommRef,
        tag: u32,
        length: u64,
    ) -> OTF2_ErrorCode;
}
