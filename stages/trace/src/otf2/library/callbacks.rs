//! Callbacks for definitions and events from libotf2.

use std::any::Any;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};

use otf2_sys::*;

use crate::otf2::definitions::{Definitions, Group, Location, LocationGroup, Node, Region};
use crate::otf2::local_definitions::ClockOffsets;
use crate::otf2::visitor::{Access, Collective, Event, Message, Through, Visitor, region_of};

/// Runs a callback. A panic must not unwind into libotf2, so it becomes an error code.
pub(super) fn guarded(callback: impl FnOnce()) -> OTF2_CallbackCode {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(callback)) {
        Ok(()) => OTF2_CALLBACK_SUCCESS,
        Err(_) => OTF2_CALLBACK_ERROR,
    }
}

/// User data of event callbacks.
pub(super) struct CallbackContext<'a, V> {
    pub(super) visitor: &'a mut V,
    /// Region of every calling context.
    pub(super) contexts: &'a HashMap<u32, u32>,
    /// Payload of a panic of the visitor, resumed after libotf2 has returned.
    pub(super) panic: Option<Box<dyn Any + Send>>,
}

/// A set of callbacks.
pub(super) struct Callbacks<T> {
    set: *mut T,
    delete: unsafe extern "C" fn(*mut T),
}

impl<T> Callbacks<T> {
    /// A set that libotf2 created, or null if memory is exhausted.
    fn new(set: *mut T, delete: unsafe extern "C" fn(*mut T)) -> Option<Self> {
        (!set.is_null()).then(|| Self { set, delete })
    }

    pub(super) fn as_ptr(&self) -> *const T {
        self.set
    }
}

impl<T> Drop for Callbacks<T> {
    fn drop(&mut self) {
        // SAFETY: created by `new` and freed only once; libotf2 copies callbacks when they are registered.
        unsafe { (self.delete)(self.set) };
    }
}

/// Callbacks for the events of a location, with a [`CallbackContext`] of a visitor of type `V` as user data.
pub(super) fn of_events<V: Visitor>() -> Option<Callbacks<OTF2_EvtReaderCallbacks>> {
    // SAFETY: creates a set of callbacks. Every callback has the type of its setter, so setting cannot fail.
    unsafe {
        let callbacks = Callbacks::new(OTF2_EvtReaderCallbacks_New(), OTF2_EvtReaderCallbacks_Delete)?;
        let set = callbacks.set;
        OTF2_EvtReaderCallbacks_SetEnterCallback(set, Some(enter::<V>));
        OTF2_EvtReaderCallbacks_SetLeaveCallback(set, Some(leave::<V>));
        OTF2_EvtReaderCallbacks_SetMpiSendCallback(set, Some(send::<V>));
        OTF2_EvtReaderCallbacks_SetMpiIsendCallback(set, Some(isend::<V>));
        OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback(set, Some(collective::<V>));
        OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback(set, Some(collective_posted::<V>));
        OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback(set, Some(posted_collective::<V>));
        OTF2_EvtReaderCallbacks_SetRmaCollectiveEndCallback(set, Some(remote_collective::<V>));
        OTF2_EvtReaderCallbacks_SetRmaPutCallback(set, Some(put::<V>));
        OTF2_EvtReaderCallbacks_SetRmaGetCallback(set, Some(get::<V>));
        OTF2_EvtReaderCallbacks_SetRmaAtomicCallback(set, Some(atomic::<V>));
        OTF2_EvtReaderCallbacks_SetCallingContextEnterCallback(set, Some(calling_context_enter::<V>));
        OTF2_EvtReaderCallbacks_SetCallingContextLeaveCallback(set, Some(calling_context_leave::<V>));
        OTF2_EvtReaderCallbacks_SetMpiRequestCancelledCallback(set, Some(cancelled::<V>));
        if V::BOTH_ENDS {
            OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback(set, Some(send_completed::<V>));
            OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback(set, Some(receive_posted::<V>));
            OTF2_EvtReaderCallbacks_SetMpiRecvCallback(set, Some(receive::<V>));
            OTF2_EvtReaderCallbacks_SetMpiIrecvCallback(set, Some(ireceive::<V>));
        }
        Some(callbacks)
    }
}

/// Reports an event to the visitor; stops after an invalid event, and keeps the payload of a panic.
///
/// # Safety
///
/// `user_data` is null or the only pointer in use to a `CallbackContext<V>`.
#[inline]
unsafe fn dispatch<V: Visitor>(
    user_data: *mut c_void,
    event: impl FnOnce(&mut CallbackContext<'_, V>),
) -> OTF2_CallbackCode {
    // SAFETY: see above.
    let Some(context) = (unsafe { user_data.cast::<CallbackContext<'_, V>>().as_mut() }) else {
        return OTF2_CALLBACK_ERROR;
    };
    let visit = std::panic::AssertUnwindSafe(|| {
        event(context);
        context.visitor.bad_event().is_none()
    });
    match std::panic::catch_unwind(visit) {
        Ok(true) => OTF2_CALLBACK_SUCCESS,
        Ok(false) => OTF2_CALLBACK_INTERRUPT,
        Err(panic) => {
            context.panic = Some(panic);
            OTF2_CALLBACK_INTERRUPT
        }
    }
}

/// Declares one callback per event. `LocationReader::events` registers the user data.
macro_rules! callbacks {
    ($($name:ident($context:ident, $number:ident, $time:ident $(, $argument:tt: $type:ty)*) $body:block)*) => {
        $(
            unsafe extern "C" fn $name<V: Visitor>(
                _: OTF2_LocationRef,
                $time: OTF2_TimeStamp,
                $number: u64,
                user_data: *mut c_void,
                _: *mut OTF2_AttributeList,
                $($argument: $type),*
            ) -> OTF2_CallbackCode {
                // SAFETY: see above.
                unsafe { dispatch::<V>(user_data, |$context| $body) }
            }
        )*
    };
}

callbacks! {
    enter(context, _number, time, region: OTF2_RegionRef) {
        let place = context.visitor.place(region);
        context.visitor.enter(place, || time);
    }
    leave(context, _number, time, region: OTF2_RegionRef) {
        let place = context.visitor.place(region);
        context.visitor.leave(place, || time);
    }
    calling_context_enter(context, _number, time, calling: OTF2_CallingContextRef, _: u32) {
        let place = context.visitor.place(region_of(context.contexts, calling));
        context.visitor.enter(place, || time);
    }
    calling_context_leave(context, _number, time, calling: OTF2_CallingContextRef) {
        let place = context.visitor.place(region_of(context.contexts, calling));
        context.visitor.leave(place, || time);
    }
    send(context, number, time, peer: u32, communicator: OTF2_CommRef, tag: u32, bytes: u64) {
        context.visitor.send(number, Message { peer, communicator, tag, bytes, request: None }, || time);
    }
    isend(context, number, time, peer: u32, communicator: OTF2_CommRef, tag: u32, bytes: u64, request: u64) {
        let request = Some(request);
        context.visitor.send(number, Message { peer, communicator, tag, bytes, request }, || time);
    }
    send_completed(context, number, time, request: u64) {
        context.visitor.event(number, Event::SendCompleted(request), || time);
    }
    receive_posted(context, number, time, request: u64) {
        context.visitor.event(number, Event::ReceivePosted(request), || time);
    }
    cancelled(context, number, time, request: u64) {
        context.visitor.event(number, Event::Cancelled(request), || time);
    }
    receive(context, number, time, peer: u32, communicator: OTF2_CommRef, tag: u32, bytes: u64) {
        let message = Message { peer, communicator, tag, bytes, request: None };
        context.visitor.event(number, Event::Received(message), || time);
    }
    ireceive(context, number, time, peer: u32, communicator: OTF2_CommRef, tag: u32, bytes: u64, request: u64) {
        let message = Message { peer, communicator, tag, bytes, request: Some(request) };
        context.visitor.event(number, Event::Received(message), || time);
    }
    collective(
        context, number, time, operation: OTF2_CollectiveOp, communicator: OTF2_CommRef, root: u32, sent: u64,
        received: u64
    ) {
        let through = Through::Communicator(communicator);
        let collective = Collective { operation, through, root, sent, received };
        context.visitor.event(number, Event::Collective(collective, None), || time);
    }
    collective_posted(context, number, time, request: u64) {
        context.visitor.event(number, Event::CollectivePosted(request), || time);
    }
    posted_collective(
        context, number, time, operation: OTF2_CollectiveOp, communicator: OTF2_CommRef, root: u32, sent: u64,
        received: u64, request: u64
    ) {
        let through = Through::Communicator(communicator);
        let collective = Collective { operation, through, root, sent, received };
        context.visitor.event(number, Event::Collective(collective, Some(request)), || time);
    }
    remote_collective(
        context, number, time, operation: OTF2_CollectiveOp, _: OTF2_RmaSyncLevel, window: OTF2_RmaWinRef,
        root: u32, sent: u64, received: u64
    ) {
        let collective = Collective { operation, through: Through::Window(window), root, sent, received };
        context.visitor.event(number, Event::Collective(collective, None), || time);
    }
    put(context, number, time, window: OTF2_RmaWinRef, remote: u32, bytes: u64, _: u64) {
        let access = Access { window, remote, put: Some(bytes), got: None };
        context.visitor.event(number, Event::Access(access), || time);
    }
    get(context, number, time, window: OTF2_RmaWinRef, remote: u32, bytes: u64, _: u64) {
        let access = Access { window, remote, put: None, got: Some(bytes) };
        context.visitor.event(number, Event::Access(access), || time);
    }
    atomic(
        context, number, time, window: OTF2_RmaWinRef, remote: u32, _: OTF2_RmaAtomicType, sent: u64,
        received: u64, _: u64
    ) {
        let access = Access { window, remote, put: Some(sent), got: Some(received) };
        context.visitor.event(number, Event::Access(access), || time);
    }
}

/// Callbacks for the definitions of an archive. The user data is a [`Definitions`].
pub(super) fn of_definitions() -> Option<Callbacks<OTF2_GlobalDefReaderCallbacks>> {
    // SAFETY: as in `of_events`.
    unsafe {
        let delete = OTF2_GlobalDefReaderCallbacks_Delete;
        let callbacks = Callbacks::new(OTF2_GlobalDefReaderCallbacks_New(), delete)?;
        let set = callbacks.set;
        OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(set, Some(clock_properties));
        OTF2_GlobalDefReaderCallbacks_SetStringCallback(set, Some(string));
        OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeCallback(set, Some(system_tree_node));
        OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(set, Some(location_group));
        OTF2_GlobalDefReaderCallbacks_SetLocationCallback(set, Some(location));
        OTF2_GlobalDefReaderCallbacks_SetRegionCallback(set, Some(region));
        OTF2_GlobalDefReaderCallbacks_SetGroupCallback(set, Some(group));
        OTF2_GlobalDefReaderCallbacks_SetCommCallback(set, Some(communicator));
        OTF2_GlobalDefReaderCallbacks_SetInterCommCallback(set, Some(inter_communicator));
        OTF2_GlobalDefReaderCallbacks_SetCallingContextCallback(set, Some(calling_context));
        OTF2_GlobalDefReaderCallbacks_SetRmaWinCallback(set, Some(window));
        Some(callbacks)
    }
}

/// Callbacks for the definitions of a location. The user data is a [`ClockOffsets`].
pub(super) fn of_local_definitions() -> Option<Callbacks<OTF2_DefReaderCallbacks>> {
    // SAFETY: as in `of_events`.
    unsafe {
        let callbacks = Callbacks::new(OTF2_DefReaderCallbacks_New(), OTF2_DefReaderCallbacks_Delete)?;
        OTF2_DefReaderCallbacks_SetClockOffsetCallback(callbacks.set, Some(clock_offset));
        Some(callbacks)
    }
}

/// Declares one callback per definition. `Archive::definitions` or `LocationReader::definitions` registers
/// the user data, of the given type, without aliases.
macro_rules! definition_callbacks {
    ($data:ty: $($name:ident($all:ident $(, $argument:tt: $type:ty)*) $body:block)*) => {
        $(
            unsafe extern "C" fn $name(user_data: *mut c_void, $($argument: $type),*) -> OTF2_CallbackCode {
                // SAFETY: see above.
                match unsafe { user_data.cast::<$data>().as_mut() } {
                    Some($all) => guarded(|| $body),
                    None => OTF2_CALLBACK_ERROR,
                }
            }
        )*
    };
}

definition_callbacks! { Definitions:
    clock_properties(all, ticks_per_second: u64, _: u64, _: u64, _: u64) {
        all.ticks_per_second = Some(ticks_per_second);
    }
    string(all, id: OTF2_StringRef, string: *const c_char) {
        if !string.is_null() {
            // SAFETY: libotf2 passes a zero-terminated text.
            let text = unsafe { CStr::from_ptr(string) };
            all.strings.entry(id).or_insert_with(|| text.to_string_lossy().into_owned());
        }
    }
    system_tree_node(
        all, id: OTF2_SystemTreeNodeRef, name: OTF2_StringRef, class: OTF2_StringRef, parent: OTF2_SystemTreeNodeRef
    ) {
        all.nodes.entry(id).or_insert(Node { name, class, parent });
    }
    location_group(
        all, id: OTF2_LocationGroupRef, _: OTF2_StringRef, kind: OTF2_LocationGroupType, node: OTF2_SystemTreeNodeRef,
        _: OTF2_LocationGroupRef
    ) {
        all.add_location_group(id, LocationGroup { kind, node });
    }
    location(
        all, id: OTF2_LocationRef, _: OTF2_StringRef, kind: OTF2_LocationType, events: u64, group: OTF2_LocationGroupRef
    ) {
        all.add_location(id, Location { kind, events, group });
    }
    region(
        all, id: OTF2_RegionRef, name: OTF2_StringRef, _: OTF2_StringRef, _: OTF2_StringRef, role: OTF2_RegionRole,
        paradigm: OTF2_Paradigm, _: OTF2_RegionFlag, _: OTF2_StringRef, _: u32, _: u32
    ) {
        all.regions.entry(id).or_insert(Region { name, paradigm, role });
    }
    group(
        all, id: OTF2_GroupRef, _: OTF2_StringRef, kind: OTF2_GroupType, paradigm: OTF2_Paradigm, flags: OTF2_GroupFlag,
        count: u32, members: *const u64
    ) {
        let members = match count == 0 || members.is_null() {
            true => &[],
            // SAFETY: libotf2 passes an array of `count` members.
            false => unsafe { std::slice::from_raw_parts(members, count as usize) },
        };
        all.add_group(kind, id, Group { paradigm, flags, members: members.to_vec() });
    }
    communicator(
        all, id: OTF2_CommRef, name: OTF2_StringRef, group: OTF2_GroupRef, _: OTF2_CommRef, _: OTF2_CommFlag
    ) {
        all.add_communicator(id, group);
        all.communicator_names.entry(id).or_insert(name);
    }
    inter_communicator(
        all, id: OTF2_CommRef, name: OTF2_StringRef, one: OTF2_GroupRef, other: OTF2_GroupRef, _: OTF2_CommRef,
        _: OTF2_CommFlag
    ) {
        all.add_inter_communicator(id, (one, other));
        all.communicator_names.entry(id).or_insert(name);
    }
    window(all, id: OTF2_RmaWinRef, _: OTF2_StringRef, communicator: OTF2_CommRef, _: OTF2_RmaWinFlag) {
        all.add_window(id, communicator);
    }
    calling_context(
        all, id: OTF2_CallingContextRef, region: OTF2_RegionRef, _: OTF2_SourceCodeLocationRef, _: OTF2_CallingContextRef
    ) {
        all.calling_contexts.entry(id).or_insert(region);
    }
}

definition_callbacks! { ClockOffsets:
    clock_offset(clock, time: OTF2_TimeStamp, offset: i64, _: f64) {
        clock.add(time, offset);
    }
}
