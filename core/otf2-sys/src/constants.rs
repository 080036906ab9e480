//! Values of the enumerations.

use crate::{
    OTF2_CallbackCode, OTF2_ErrorCode, OTF2_GroupFlag, OTF2_GroupType, OTF2_LocationGroupType,
    OTF2_LocationRef, OTF2_LocationType, OTF2_Paradigm, OTF2_RegionRole,
};

/// The call did what it should.
pub const OTF2_SUCCESS: OTF2_ErrorCode = 0;
/// A callback did not return [`OTF2_CALLBACK_SUCCESS`].
pub const OTF2_ERROR_INTERRUPTED_BY_CALLBACK: OTF2_ErrorCode = 92;
/// The definitions of a location hold two id maps for one kind of id; reading can go on behind the second.
pub const OTF2_ERROR_DUPLICATE_MAPPING_TABLE: OTF2_ErrorCode = 98;

/// Go on reading.
pub const OTF2_CALLBACK_SUCCESS: OTF2_CallbackCode = 0;
/// Stop reading.
pub const OTF2_CALLBACK_INTERRUPT: OTF2_CallbackCode = 1;
/// The callback failed.
pub const OTF2_CALLBACK_ERROR: OTF2_CallbackCode = 1;

/// No value, where an id or a number of 32 bits is expected.
pub const OTF2_UNDEFINED_UINT32: u32 = u32::MAX;
/// No value, where a number of 64 bits is expected.
pub const OTF2_UNDEFINED_UINT64: u64 = u64::MAX;
/// No location.
pub const OTF2_UNDEFINED_LOCATION: OTF2_LocationRef = u64::MAX;

/// Smallest size of a chunk.
pub const OTF2_CHUNK_SIZE_MIN: u64 = 256 * 1024;
/// Largest size of a chunk.
pub const OTF2_CHUNK_SIZE_MAX: u64 = 16 * 1024 * 1024;

/// A process.
pub const OTF2_LOCATION_GROUP_TYPE_PROCESS: OTF2_LocationGroupType = 1;
/// A thread on a processor.
pub const OTF2_LOCATION_TYPE_CPU_THREAD: OTF2_LocationType = 1;

/// Code that belongs to no programming model.
pub const OTF2_PARADIGM_USER: OTF2_Paradigm = 1;
/// The Message Passing Interface.
pub const OTF2_PARADIGM_MPI: OTF2_Paradigm = 4;
/// The Global Address Space Programming Interface.
pub const OTF2_PARADIGM_GASPI: OTF2_Paradigm = 11;
/// Unified Parallel C.
pub const OTF2_PARADIGM_UPC: OTF2_Paradigm = 12;
/// SHMEM and its relatives.
pub const OTF2_PARADIGM_SHMEM: OTF2_Paradigm = 13;

/// Members are locations; member `i` is the location of rank `i`.
pub const OTF2_GROUP_TYPE_COMM_LOCATIONS: OTF2_GroupType = 4;
/// Members are indexes into the group of locations.
pub const OTF2_GROUP_TYPE_COMM_GROUP: OTF2_GroupType = 5;
/// No members: everybody is alone with itself.
pub const OTF2_GROUP_TYPE_COMM_SELF: OTF2_GroupType = 6;
/// Ranks in events are indexes into the group of locations already.
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
/// Access to the memory of another process.
pub const OTF2_REGION_ROLE_RMA: OTF2_RegionRole = 29;
