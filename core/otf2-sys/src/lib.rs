//! Raw bindings to libotf2 3.0 and newer: the part that is needed to read definitions and local events.
//!
//! Names and meanings are those of the C headers in `otf2/`. A test compiles the headers against these
//! declarations, so a wrong signature or value fails there and not at run time.
//!
//! The [`OTF2_Reader`] owns all handles it returns; callbacks must return and never unwind. Several threads
//! may use the local readers of one archive once locking callbacks are set.

// Required for foreign functions; callers justify their safety.
#![allow(unsafe_code)]
// The names of the C manual.
#![allow(non_camel_case_types, non_snake_case)]

mod callbacks;

use std::ffi::{c_char, c_int, c_uint, c_void};

pub use callbacks::*;

/// Declares opaque types, which are used only through pointers.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            #[derive(Debug)]
            pub struct $name {
                data: [u8; 0],
                // Neither `Send` nor `Sync` nor `Unpin`: the type behind the pointer is unknown.
                marker: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
            }
        )*
    };
}

/// Outcome of a call; [`OTF2_SUCCESS`] or one of many errors.
pub type OTF2_ErrorCode = c_int;
/// Return value of a callback; [`OTF2_CALLBACK_SUCCESS`] continues, anything else stops.
pub type OTF2_CallbackCode = c_uint;
/// Point in time in ticks of the clock of the trace.
pub type OTF2_TimeStamp = u64;
/// Id of a string.
pub type OTF2_StringRef = u32;
/// Id of a node of the tree of machines.
pub type OTF2_SystemTreeNodeRef = u32;
/// Id of a group of locations, such as a process.
pub type OTF2_LocationGroupRef = u32;
/// Id of a location, such as a thread.
pub type OTF2_LocationRef = u64;
/// Id of a region, such as a function.
pub type OTF2_RegionRef = u32;
/// Id of a group of members.
pub type OTF2_GroupRef = u32;
/// Id of a communicator.
pub type OTF2_CommRef = u32;
/// Id of a calling context.
pub type OTF2_CallingContextRef = u32;
/// Id of a place in the source code.
pub type OTF2_SourceCodeLocationRef = u32;
/// Type of a group of locations.
pub type OTF2_LocationGroupType = u8;
/// Type of a location.
pub type OTF2_LocationType = u8;
/// Role of a region.
pub type OTF2_RegionRole = u8;
/// Programming model.
pub type OTF2_Paradigm = u8;
/// Flags of a region.
pub type OTF2_RegionFlag = u32;
/// Type of the members of a group.
pub type OTF2_GroupType = u8;
/// Flags of a group.
pub type OTF2_GroupFlag = u32;
/// Flags of a communicator.
pub type OTF2_CommFlag = u32;
/// Id of an RMA window.
pub type OTF2_RmaWinRef = u32;
/// Flags of a window.
pub type OTF2_RmaWinFlag = u32;
/// Kind of a collective operation.
pub type OTF2_CollectiveOp = u8;
/// Synchronisation level of an RMA operation.
pub type OTF2_RmaSyncLevel = u32;
/// Kind of an atomic RMA operation.
pub type OTF2_RmaAtomicType = u8;

opaque! {
    /// An archive opened for reading.
    OTF2_Reader
    /// Reader of the global definitions.
    OTF2_GlobalDefReader
    /// Callbacks for global definitions.
    OTF2_GlobalDefReaderCallbacks
    /// Reader of the local definitions of a location.
    OTF2_DefReader
    /// Callbacks for local definitions.
    OTF2_DefReaderCallbacks
    /// Reader of the events of one location.
    OTF2_EvtReader
    /// Callbacks for the events of one location.
    OTF2_EvtReaderCallbacks
    /// Attributes attached to an event.
    OTF2_AttributeList
    /// A lock made by [`OTF2_Locking_Create`].
    OTF2_LockObject
}

/// Handle of a lock.
pub type OTF2_Lock = *mut OTF2_LockObject;

/// Called once when the archive no longer needs locks.
pub type OTF2_Locking_Release = unsafe extern "C" fn(user_data: *mut c_void);
/// Creates a lock.
pub type OTF2_Locking_Create =
    unsafe extern "C" fn(user_data: *mut c_void, lock: *mut OTF2_Lock) -> OTF2_CallbackCode;
/// Destroys a lock.
pub type OTF2_Locking_Destroy =
    unsafe extern "C" fn(user_data: *mut c_void, lock: OTF2_Lock) -> OTF2_CallbackCode;
/// Waits for a lock and takes it.
pub type OTF2_Locking_Lock =
    unsafe extern "C" fn(user_data: *mut c_void, lock: OTF2_Lock) -> OTF2_CallbackCode;
/// Releases a lock.
pub type OTF2_Locking_Unlock =
    unsafe extern "C" fn(user_data: *mut c_void, lock: OTF2_Lock) -> OTF2_CallbackCode;

/// Lock functions of an archive.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct OTF2_LockingCallbacks {
    /// Releases the user data.
    pub otf2_release: Option<OTF2_Locking_Release>,
    /// Creates a lock.
    pub otf2_create: Option<OTF2_Locking_Create>,
    /// Destroys a lock.
    pub otf2_destroy: Option<OTF2_Locking_Destroy>,
    /// Takes a lock.
    pub otf2_lock: Option<OTF2_Locking_Lock>,
    /// Releases a lock.
    pub otf2_unlock: Option<OTF2_Locking_Unlock>,
}

/// Receives error messages of the library. The last argument is a C `va_list`, passed through unchanged.
///
/// In every C calling convention that Rust and libotf2 share, a `va_list` argument is one pointer or has its
/// size.
pub type OTF2_ErrorCallback = unsafe extern "C" fn(
    user_data: *mut c_void,
    file: *const c_char,
    line: u64,
    function: *const c_char,
    error: OTF2_ErrorCode,
    format: *const c_char,
    arguments: *mut c_void,
) -> OTF2_ErrorCode;

unsafe extern "C" {
    /// Redirects errors to a callback instead of standard error; returns the previous callback.
    pub fn OTF2_Error_RegisterCallback(
        callback: Option<OTF2_ErrorCallback>,
        user_data: *mut c_void,
    ) -> Option<OTF2_ErrorCallback>;
    /// Description of an error code.
    pub fn OTF2_Error_GetDescription(error: OTF2_ErrorCode) -> *const c_char;

    /// Opens an archive by its anchor file; null on failure.
    pub fn OTF2_Reader_Open(anchor_file_path: *const c_char) -> *mut OTF2_Reader;
    /// Closes an archive and everything opened through it.
    pub fn OTF2_Reader_Close(reader: *mut OTF2_Reader) -> OTF2_ErrorCode;
    /// Sets up serial reading by one process.
    pub fn OTF2_Reader_SetSerialCollectiveCallbacks(reader: *mut OTF2_Reader) -> OTF2_ErrorCode;
    /// Makes the archive usable from several threads. May be called only once.
    pub fn OTF2_Reader_SetLockingCallbacks(
        reader: *mut OTF2_Reader,
        callbacks: *const OTF2_LockingCallbacks,
        user_data: *mut c_void,
    ) -> OTF2_ErrorCode;
    /// Selects a location for reading.
    pub fn OTF2_Reader_SelectLocation(reader: *mut OTF2_Reader, location: OTF2_LocationRef)
    -> OTF2_ErrorCode;

    /// Opens the files of local definitions.
    pub fn OTF2_Reader_OpenDefFiles(reader: *mut OTF2_Reader) -> OTF2_ErrorCode;
    /// Opens the event files.
    pub fn OTF2_Reader_OpenEvtFiles(reader: *mut OTF2_Reader) -> OTF2_ErrorCode;

    /// Opens the global definitions; null on failure.
    pub fn OTF2_Reader_GetGlobalDefReader(reader: *mut OTF2_Reader) -> *mut OTF2_GlobalDefReader;
    /// Closes the global definitions.
    pub fn OTF2_Reader_CloseGlobalDefReader(
        reader: *mut OTF2_Reader,
        definitions: *mut OTF2_GlobalDefReader,
    ) -> OTF2_ErrorCode;
    /// Registers callbacks for the global definitions. The callbacks are copied.
    pub fn OTF2_Reader_RegisterGlobalDefCallbacks(
        reader: *mut OTF2_Reader,
        definitions: *mut OTF2_GlobalDefReader,
        callbacks: *const OTF2_GlobalDefReaderCallbacks,
        user_data: *mut c_void,
    ) -> OTF2_ErrorCode;
    /// Reads all global definitions.
    pub fn OTF2_Reader_ReadAllGlobalDefinitions(
        reader: *mut OTF2_Reader,
        definitions: *mut OTF2_GlobalDefReader,
        definitions_read: *mut u64,
    ) -> OTF2_ErrorCode;

    /// Opens the definitions of a location; null on failure.
    pub fn OTF2_Reader_GetDefReader(
        reader: *mut OTF2_Reader,
        location: OTF2_LocationRef,
    ) -> *mut OTF2_DefReader;
    /// Closes the definitions of a location.
    pub fn OTF2_Reader_CloseDefReader(
        reader: *mut OTF2_Reader,
        definitions: *mut OTF2_DefReader,
    ) -> OTF2_ErrorCode;
    /// Registers callbacks for the definitions of a location. The callbacks are copied.
    pub fn OTF2_Reader_RegisterDefCallbacks(
        reader: *mut OTF2_Reader,
        definitions: *mut OTF2_DefReader,
        callbacks: *const OTF2_DefReaderCallbacks,
        user_data: *mut c_void,
    ) -> OTF2_ErrorCode;
    /// Reads all definitions of a location; the library keeps its id maps and clock offsets for the events.
    pub fn OTF2_Reader_ReadAllLocalDefinitions(
        reader: *mut OTF2_Reader,
        definitions: *mut OTF2_DefReader,
        definitions_read: *mut u64,
    ) -> OTF2_ErrorCode;

    /// Opens the events of a location; null on failure.
    pub fn OTF2_Reader_GetEvtReader(
        reader: *mut OTF2_Reader,
        location: OTF2_LocationRef,
    ) -> *mut OTF2_EvtReader;
    /// Closes the events of a location.
    pub fn OTF2_Reader_CloseEvtReader(
        reader: *mut OTF2_Reader,
        events: *mut OTF2_EvtReader,
    ) -> OTF2_ErrorCode;
    /// Registers callbacks for the events of a location. The callbacks are copied.
    pub fn OTF2_Reader_RegisterEvtCallbacks(
        reader: *mut OTF2_Reader,
        events: *mut OTF2_EvtReader,
        callbacks: *const OTF2_EvtReaderCallbacks,
        user_data: *mut c_void,
    ) -> OTF2_ErrorCode;
    /// Reads the next events of a location; fewer than requested at its end.
    pub fn OTF2_Reader_ReadLocalEvents(
        reader: *mut OTF2_Reader,
        events: *mut OTF2_EvtReader,
        events_to_read: u64,
        events_read: *mut u64,
    ) -> OTF2_ErrorCode;
}

unsafe extern "C" {
    /// Formats a C `va_list` into a buffer (C standard library); for use in an [`OTF2_ErrorCallback`] only.
    pub fn vsnprintf(
        buffer: *mut c_char,
        size: usize,
        format: *const c_char,
        arguments: *mut c_void,
    ) -> c_int;
}

/// Success.
pub const OTF2_SUCCESS: OTF2_ErrorCode = 0;
/// A callback did not return [`OTF2_CALLBACK_SUCCESS`].
pub const OTF2_ERROR_INTERRUPTED_BY_CALLBACK: OTF2_ErrorCode = 92;
/// The definitions of a location contain two id maps for one kind of id; reading can continue after the
/// second.
pub const OTF2_ERROR_DUPLICATE_MAPPING_TABLE: OTF2_ErrorCode = 98;

/// Continue reading.
pub const OTF2_CALLBACK_SUCCESS: OTF2_CallbackCode = 0;
/// Stop reading.
pub const OTF2_CALLBACK_INTERRUPT: OTF2_CallbackCode = 1;
/// The callback failed.
pub const OTF2_CALLBACK_ERROR: OTF2_CallbackCode = 1;

/// Undefined id or 32-bit number.
pub const OTF2_UNDEFINED_UINT32: u32 = u32::MAX;
/// Undefined 64-bit number.
pub const OTF2_UNDEFINED_UINT64: u64 = u64::MAX;
/// Undefined location.
pub const OTF2_UNDEFINED_LOCATION: OTF2_LocationRef = u64::MAX;

/// Minimum chunk size.
pub const OTF2_CHUNK_SIZE_MIN: u64 = 256 * 1024;
/// Maximum chunk size.
pub const OTF2_CHUNK_SIZE_MAX: u64 = 16 * 1024 * 1024;

/// A process.
pub const OTF2_LOCATION_GROUP_TYPE_PROCESS: OTF2_LocationGroupType = 1;
/// A CPU thread.
pub const OTF2_LOCATION_TYPE_CPU_THREAD: OTF2_LocationType = 1;

/// User code without a programming model.
pub const OTF2_PARADIGM_USER: OTF2_Paradigm = 1;
/// The Message Passing Interface.
pub const OTF2_PARADIGM_MPI: OTF2_Paradigm = 4;
/// The Global Address Space Programming Interface.
pub const OTF2_PARADIGM_GASPI: OTF2_Paradigm = 11;
/// Unified Parallel C.
pub const OTF2_PARADIGM_UPC: OTF2_Paradigm = 12;
/// SHMEM and its variants.
pub const OTF2_PARADIGM_SHMEM: OTF2_Paradigm = 13;

/// Members are locations; member `i` is the location of rank `i`.
pub const OTF2_GROUP_TYPE_COMM_LOCATIONS: OTF2_GroupType = 4;
/// Members are indices into the group of locations.
pub const OTF2_GROUP_TYPE_COMM_GROUP: OTF2_GroupType = 5;
/// No members: every process is its own group.
pub const OTF2_GROUP_TYPE_COMM_SELF: OTF2_GroupType = 6;
/// Ranks in events are already indices into the group of locations.
pub const OTF2_GROUP_FLAG_GLOBAL_MEMBERS: OTF2_GroupFlag = 1;

/// A function.
pub const OTF2_REGION_ROLE_FUNCTION: OTF2_RegionRole = 1;
/// From one process to all.
pub const OTF2_REGION_ROLE_COLL_ONE2ALL: OTF2_RegionRole = 23;
/// From all processes to one.
pub const OTF2_REGION_ROLE_COLL_ALL2ONE: OTF2_RegionRole = 24;
/// From all processes to all.
pub const OTF2_REGION_ROLE_COLL_ALL2ALL: OTF2_RegionRole = 25;
/// From several processes to several.
pub const OTF2_REGION_ROLE_COLL_OTHER: OTF2_RegionRole = 26;
/// From one process to another.
pub const OTF2_REGION_ROLE_POINT2POINT: OTF2_RegionRole = 28;
/// Remote memory access.
pub const OTF2_REGION_ROLE_RMA: OTF2_RegionRole = 29;
