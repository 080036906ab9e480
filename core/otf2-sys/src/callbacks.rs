//! Callbacks for definitions and events, and the functions that set them.

use std::ffi::{c_char, c_void};

use crate::{
    OTF2_AttributeList, OTF2_CallbackCode, OTF2_CallingContextRef, OTF2_CollectiveOp, OTF2_CommFlag,
    OTF2_CommRef, OTF2_DefReaderCallbacks, OTF2_ErrorCode, OTF2_EvtReaderCallbacks,
    OTF2_GlobalDefReaderCallbacks, OTF2_GroupFlag, OTF2_GroupRef, OTF2_GroupType, OTF2_LocationGroupRef,
    OTF2_LocationGroupType, OTF2_LocationRef, OTF2_LocationType, OTF2_Paradigm, OTF2_RegionFlag,
    OTF2_RegionRef, OTF2_RegionRole, OTF2_RmaAtomicType, OTF2_RmaSyncLevel, OTF2_RmaWinFlag, OTF2_RmaWinRef,
    OTF2_SourceCodeLocationRef, OTF2_StringRef, OTF2_SystemTreeNodeRef, OTF2_TimeStamp,
};

unsafe extern "C" {
    /// Creates an empty set of callbacks; null if memory is exhausted.
    pub fn OTF2_GlobalDefReaderCallbacks_New() -> *mut OTF2_GlobalDefReaderCallbacks;
    /// Frees a set of callbacks.
    pub fn OTF2_GlobalDefReaderCallbacks_Delete(callbacks: *mut OTF2_GlobalDefReaderCallbacks);
    /// Creates an empty set of callbacks; null if memory is exhausted.
    pub fn OTF2_DefReaderCallbacks_New() -> *mut OTF2_DefReaderCallbacks;
    /// Frees a set of callbacks.
    pub fn OTF2_DefReaderCallbacks_Delete(callbacks: *mut OTF2_DefReaderCallbacks);
    /// Creates an empty set of callbacks; null if memory is exhausted.
    pub fn OTF2_EvtReaderCallbacks_New() -> *mut OTF2_EvtReaderCallbacks;
    /// Frees a set of callbacks.
    pub fn OTF2_EvtReaderCallbacks_Delete(callbacks: *mut OTF2_EvtReaderCallbacks);
}

/// Declares the type of one callback per definition of the archive, and the function that sets it.
macro_rules! global_definitions {
    ($($(#[$doc:meta])* $callback:ident, $set:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            $(#[$doc])*
            pub type $callback =
                unsafe extern "C" fn(user_data: *mut c_void, $($argument: $type),*) -> OTF2_CallbackCode;
        )*
        unsafe extern "C" {
            $(
                /// Sets the callback of the same name.
                pub fn $set(
                    callbacks: *mut OTF2_GlobalDefReaderCallbacks,
                    callback: Option<$callback>,
                ) -> OTF2_ErrorCode;
            )*
        }
    };
}

global_definitions! {
    /// Ticks per second, first and last time.
    OTF2_GlobalDefReaderCallback_ClockProperties, OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(
        timer_resolution: u64, global_offset: u64, trace_length: u64, realtime_timestamp: u64);
    /// A zero-terminated text.
    OTF2_GlobalDefReaderCallback_String, OTF2_GlobalDefReaderCallbacks_SetStringCallback(
        own: OTF2_StringRef, string: *const c_char);
    /// A node of the system tree, such as a machine or a compute node.
    OTF2_GlobalDefReaderCallback_SystemTreeNode, OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeCallback(
        own: OTF2_SystemTreeNodeRef, name: OTF2_StringRef, class_name: OTF2_StringRef,
        parent: OTF2_SystemTreeNodeRef);
    /// A process or an accelerator.
    OTF2_GlobalDefReaderCallback_LocationGroup, OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(
        own: OTF2_LocationGroupRef, name: OTF2_StringRef, location_group_type: OTF2_LocationGroupType,
        system_tree_parent: OTF2_SystemTreeNodeRef, creating_location_group: OTF2_LocationGroupRef);
    /// A thread, a stream of an accelerator or a source of metrics.
    OTF2_GlobalDefReaderCallback_Location, OTF2_GlobalDefReaderCallbacks_SetLocationCallback(
        own: OTF2_LocationRef, name: OTF2_StringRef, location_type: OTF2_LocationType,
        number_of_events: u64, location_group: OTF2_LocationGroupRef);
    /// A region, such as a function.
    OTF2_GlobalDefReaderCallback_Region, OTF2_GlobalDefReaderCallbacks_SetRegionCallback(
        own: OTF2_RegionRef, name: OTF2_StringRef, canonical_name: OTF2_StringRef, description: OTF2_StringRef,
        region_role: OTF2_RegionRole, paradigm: OTF2_Paradigm, region_flags: OTF2_RegionFlag,
        source_file: OTF2_StringRef, begin_line_number: u32, end_line_number: u32);
    /// A list of locations, ranks or other ids.
    OTF2_GlobalDefReaderCallback_Group, OTF2_GlobalDefReaderCallbacks_SetGroupCallback(
        own: OTF2_GroupRef, name: OTF2_StringRef, group_type: OTF2_GroupType, paradigm: OTF2_Paradigm,
        group_flags: OTF2_GroupFlag, number_of_members: u32, members: *const u64);
    /// A communicator.
    OTF2_GlobalDefReaderCallback_Comm, OTF2_GlobalDefReaderCallbacks_SetCommCallback(
        own: OTF2_CommRef, name: OTF2_StringRef, group: OTF2_GroupRef, parent: OTF2_CommRef,
        flags: OTF2_CommFlag);
    /// An intercommunicator.
    OTF2_GlobalDefReaderCallback_InterComm, OTF2_GlobalDefReaderCallbacks_SetInterCommCallback(
        own: OTF2_CommRef, name: OTF2_StringRef, group_a: OTF2_GroupRef, group_b: OTF2_GroupRef,
        common_communicator: OTF2_CommRef, flags: OTF2_CommFlag);
    /// A region with its call path.
    OTF2_GlobalDefReaderCallback_CallingContext, OTF2_GlobalDefReaderCallbacks_SetCallingContextCallback(
        own: OTF2_CallingContextRef, region: OTF2_RegionRef,
        source_code_location: OTF2_SourceCodeLocationRef, parent: OTF2_CallingContextRef);
    /// An RMA window of the members of a communicator.
    OTF2_GlobalDefReaderCallback_RmaWin, OTF2_GlobalDefReaderCallbacks_SetRmaWinCallback(
        own: OTF2_RmaWinRef, name: OTF2_StringRef, communicator: OTF2_CommRef, flags: OTF2_RmaWinFlag);
}

/// Offset between the clock of a location and the common clock at a point in time.
pub type OTF2_DefReaderCallback_ClockOffset = unsafe extern "C" fn(
    user_data: *mut c_void,
    time: OTF2_TimeStamp,
    offset: i64,
    standard_deviation: f64,
) -> OTF2_CallbackCode;

unsafe extern "C" {
    /// Sets the callback of the same name.
    pub fn OTF2_DefReaderCallbacks_SetClockOffsetCallback(
        callbacks: *mut OTF2_DefReaderCallbacks,
        callback: Option<OTF2_DefReaderCallback_ClockOffset>,
    ) -> OTF2_ErrorCode;
}

/// Declares the type of one callback per event, and the function that sets it.
macro_rules! events {
    ($($(#[$doc:meta])* $callback:ident, $set:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            $(#[$doc])*
            pub type $callback = unsafe extern "C" fn(
                location: OTF2_LocationRef,
                time: OTF2_TimeStamp,
                event_position: u64,
                user_data: *mut c_void,
                attributes: *mut OTF2_AttributeList,
                $($argument: $type),*
            ) -> OTF2_CallbackCode;
        )*
        unsafe extern "C" {
            $(
                /// Sets the callback of the same name.
                pub fn $set(callbacks: *mut OTF2_EvtReaderCallbacks, callback: Option<$callback>) -> OTF2_ErrorCode;
            )*
        }
    };
}

events! {
    /// A region is entered.
    OTF2_EvtReaderCallback_Enter, OTF2_EvtReaderCallbacks_SetEnterCallback(region: OTF2_RegionRef);
    /// A region is left.
    OTF2_EvtReaderCallback_Leave, OTF2_EvtReaderCallbacks_SetLeaveCallback(region: OTF2_RegionRef);
    /// A blocking send starts.
    OTF2_EvtReaderCallback_MpiSend, OTF2_EvtReaderCallbacks_SetMpiSendCallback(
        receiver: u32, communicator: OTF2_CommRef, message_tag: u32, message_length: u64);
    /// A nonblocking send starts.
    OTF2_EvtReaderCallback_MpiIsend, OTF2_EvtReaderCallbacks_SetMpiIsendCallback(
        receiver: u32, communicator: OTF2_CommRef, message_tag: u32, message_length: u64, request: u64);
    /// A nonblocking send completes.
    OTF2_EvtReaderCallback_MpiIsendComplete, OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback(request: u64);
    /// A nonblocking receive is posted.
    OTF2_EvtReaderCallback_MpiIrecvRequest, OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback(request: u64);
    /// A request is cancelled.
    OTF2_EvtReaderCallback_MpiRequestCancelled, OTF2_EvtReaderCallbacks_SetMpiRequestCancelledCallback(request: u64);
    /// A blocking receive completes.
    OTF2_EvtReaderCallback_MpiRecv, OTF2_EvtReaderCallbacks_SetMpiRecvCallback(
        sender: u32, communicator: OTF2_CommRef, message_tag: u32, message_length: u64);
    /// A nonblocking receive completes.
    OTF2_EvtReaderCallback_MpiIrecv, OTF2_EvtReaderCallbacks_SetMpiIrecvCallback(
        sender: u32, communicator: OTF2_CommRef, message_tag: u32, message_length: u64, request: u64);
    /// A collective operation completes.
    OTF2_EvtReaderCallback_MpiCollectiveEnd, OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback(
        operation: OTF2_CollectiveOp, communicator: OTF2_CommRef, root: u32, size_sent: u64, size_received: u64);
    /// A nonblocking collective operation starts.
    OTF2_EvtReaderCallback_NonBlockingCollectiveRequest,
    OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback(request: u64);
    /// A nonblocking collective operation completes.
    OTF2_EvtReaderCallback_NonBlockingCollectiveComplete,
    OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback(
        operation: OTF2_CollectiveOp, communicator: OTF2_CommRef, root: u32, size_sent: u64, size_received: u64,
        request: u64);
    /// A collective operation on a window completes.
    OTF2_EvtReaderCallback_RmaCollectiveEnd, OTF2_EvtReaderCallbacks_SetRmaCollectiveEndCallback(
        operation: OTF2_CollectiveOp, synchronised: OTF2_RmaSyncLevel, window: OTF2_RmaWinRef, root: u32,
        bytes_sent: u64, bytes_received: u64);
    /// Bytes are written to remote memory.
    OTF2_EvtReaderCallback_RmaPut, OTF2_EvtReaderCallbacks_SetRmaPutCallback(
        window: OTF2_RmaWinRef, remote: u32, bytes: u64, matching: u64);
    /// Bytes are read from remote memory.
    OTF2_EvtReaderCallback_RmaGet, OTF2_EvtReaderCallbacks_SetRmaGetCallback(
        window: OTF2_RmaWinRef, remote: u32, bytes: u64, matching: u64);
    /// Remote memory is updated atomically.
    OTF2_EvtReaderCallback_RmaAtomic, OTF2_EvtReaderCallbacks_SetRmaAtomicCallback(
        window: OTF2_RmaWinRef, remote: u32, operation: OTF2_RmaAtomicType, bytes_sent: u64, bytes_received: u64,
        matching: u64);
    /// The region of a calling context is entered.
    OTF2_EvtReaderCallback_CallingContextEnter, OTF2_EvtReaderCallbacks_SetCallingContextEnterCallback(
        calling_context: OTF2_CallingContextRef, unwind_distance: u32);
    /// The region of a calling context is left.
    OTF2_EvtReaderCallback_CallingContextLeave, OTF2_EvtReaderCallbacks_SetCallingContextLeaveCallback(
        calling_context: OTF2_CallingContextRef);
}
