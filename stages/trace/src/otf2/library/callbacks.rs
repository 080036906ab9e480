//! Receives definitions and events from libotf2.

use std::any::Any;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};

use otf2_sys::*;

use crate::otf2::definitions::{Definitions, Group, Location, LocationGroup, Node, Region};
use crate::otf2::local_definitions::ClockOffsets;
use crate::otf2::visitor::{Access, Collective, Event, Message, Through, Visitor, region_of};

/// Runs a callback. A panic must not get into libotf2, so it becomes an error code.
pub(super) fn guarded(callback: impl FnOnce()) -> OTF2_CallbackCode {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(callback)) {
        Ok(()) => OTF2_CALLBACK_SUCCESS,
        Err(_) => OTF2_CALLBACK_ERROR,
    }
}

/// Who the events are told. The user data of the callbacks.
pub(super) struct Told<'a, V> {
    pub(super) visitor: &'a mut V,
    /// Region of every calling context.
    pub(super) contexts: &'a HashMap<u32, u32>,
    /// What the visitor panicked with. It must not unwind through libotf2 and goes on when that has returned.
    pub(super) panic: Option<Box<dyn Any + Send>>,
}

/// Callbacks for the events of a location.
pub(super) struct EventCallbacks(*mut OTF2_EvtReaderCallbacks);

impl EventCallbacks {
    /// Callbacks whose user data is a [`Told`] of a visitor of type `V`.
    pub(super) fn new<V: Visitor>() -> Option<Self> {
        // SAFETY: makes a set of callbacks or returns null; a set is freed when `Self` is dropped. Every callback has
        // the type its setter takes, so setting it cannot fail.
        unsafe {
            let callbacks = OTF2_EvtReaderCallbacks_New();
            if callbacks.is_null() {
                return None;
            }
            OTF2_EvtReaderCallbacks_SetEnterCallback(callbacks, Some(enter::<V>));
            OTF2_EvtReaderCallbacks_SetLeaveCallback(callbacks, Some(leave::<V>));
            OTF2_EvtReaderCallbacks_SetMpiSendCallback(callbacks, Some(send::<V>));
            OTF2_EvtReaderCallbacks_SetMpiIsendCallback(callbacks, Some(isend::<V>));
            OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback(callbacks, Some(collective::<V>));
            OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback(
                callbacks,
                Some(collective_posted::<V>),
            );
            OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback(
                callbacks,
                Some(posted_collective::<V>),
            );
            OTF2_EvtReaderCallbacks_SetRmaCollectiveEndCallback(callbacks, Some(remote_collective::<V>));
            OTF2_EvtReaderCallbacks_SetRmaPutCallback(callbacks, Some(put::<V>));
            OTF2_EvtReaderCallbacks_SetRmaGetCallback(callbacks, Some(get::<V>));
            OTF2_EvtReaderCallbacks_SetRmaAtomicCallback(callbacks, Some(atomic::<V>));
            OTF2_EvtReaderCallbacks_SetCallingContextEnterCallback(
                callbacks,
                Some(calling_context_enter::<V>),
            );
            OTF2_EvtReaderCallbacks_SetCallingContextLeaveCallback(
                callbacks,
                Some(calling_context_leave::<V>),
            );
            if V::BOTH_ENDS {
                OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback(callbacks, Some(send_completed::<V>));
                OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback(callbacks, Some(receive_posted::<V>));
                OTF2_EvtReaderCallbacks_SetMpiRequestCancelledCallback(callbacks, Some(cancelled::<V>));
                OTF2_EvtReaderCallbacks_SetMpiRecvCallback(callbacks, Some(receive::<V>));
                OTF2_EvtReaderCallbacks_SetMpiIrecvCallback(callbacks, Some(ireceive::<V>));
            }
            Some(Self(callbacks))
        }
    }

    pub(super) fn as_ptr(&self) -> *const OTF2_EvtReaderCallbacks {
        self.0
    }
}

impl Drop for EventCallbacks {
    fn drop(&mut self) {
        // SAFETY: made by `new` and freed once; libotf2 copies callbacks when they are registered.
        unsafe { OTF2_EvtReaderCallbacks_Delete(self.0) };
    }
}

/// Tells the visitor behind the user data; stops when it found an event that cannot be, or keeps what it panicked with.
///
/// # Safety
///
/// `user_data` is null or the only pointer in use to a `Told` of a `V`.
#[inline]
unsafe fn tell<V: Visitor>(
    user_data: *mut c_void,
    event: impl FnOnce(&mut Told<'_, V>),
) -> OTF2_CallbackCode {
    // SAFETY: see above.
    let Some(told) = (unsafe { user_data.cast::<Told<'_, V>>().as_mut() }) else {
        return OTF2_CALLBACK_ERROR;
    };
    let visit = std::panic::AssertUnwindSafe(|| {
        event(told);
        told.visitor.bad_event().is_none()
    });
    match std::panic::catch_unwind(visit) {
        Ok(true) => OTF2_CALLBACK_SUCCESS,
        Ok(false) => OTF2_CALLBACK_INTERRUPT,
        Err(panic) => {
            told.panic = Some(panic);
            OTF2_CALLBACK_INTERRUPT
        }
    }
}

/// Declares one callback per event. The user data is what `LocationReader::events` registered.
macro_rules! callbacks {
    ($($name:ident($told:ident, $number:ident, $time:ident $(, $argument:tt: $type:ty)*) $body:block)*) => {
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
                unsafe { tell::<V>(user_data, |$told| $body) }
            }
        )*
    };
}

callbacks! {
    enter(told, _number, time, region: OTF2_RegionRef) {
        let place = told.visitor.place(region);
        told.visitor.enter(place, || time);
    }
    leave(told, _number, time, region: OTF2_RegionRef) {
        let place = told.visitor.place(region);
        told.visitor.leave(place, || time);
    }
    calling_context_enter(told, _number, time, context: OTF2_CallingContextRef, _: u32) {
        let place = told.visitor.place(region_of(told.contexts, context));
        told.visitor.enter(place, || time);
    }
    calling_context_leave(told, _number, time, context: OTF2_CallingContextRef) {
        let place = told.visitor.place(region_of(told.contexts, context));
        told.visitor.leave(place, || time);
    }
    send(told, number, time, peer: u32, communicator: OTF2_CommRef, tag: u32, bytes: u64) {
        told.visitor.send(number, Message { peer, communicator, tag, bytes, request: None }, || time);
    }
    isend(told, number, time, peer: u32, communicator: OTF2_CommRef, tag: u32, bytes: u64, request: u64) {
        let request = Some(request);
        told.visitor.send(number, Message { peer, communicator, tag, bytes, request }, || time);
    }
    send_completed(told, number, time, request: u64) {
        told.visitor.event(number, Event::SendCompleted(request), || time);
    }
    receive_posted(told, number, time, request: u64) {
        told.visitor.event(number, Event::ReceivePosted(request), || time);
    }
    cancelled(told, number, time, request: u64) {
        told.visitor.event(number, Event::Cancelled(request), || time);
    }
    receive(told, number, time, peer: u32, communicator: OTF2_CommRef, tag: u32, bytes: u64) {
        let message = Message { peer, communicator, tag, bytes, request: None };
        told.visitor.event(number, Event::Received(message), || time);
    }
    ireceive(told, number, time, peer: u32, communicator: OTF2_CommRef, tag: u32, bytes: u64, request: u64) {
        let message = Message { peer, communicator, tag, bytes, request: Some(request) };
        told.visitor.event(number, Event::Received(message), || time);
    }
    collective(
        told, number, time, operation: OTF2_CollectiveOp, communicator: OTF2_CommRef, root: u32, sent: u64,
        received: u64
    ) {
        let through = Through::Communicator(communicator);
        let collective = Collective { operation, through, root, sent, received };
        told.visitor.event(number, Event::Collective(collective, None), || time);
    }
    collective_posted(told, number, time, request: u64) {
        told.visitor.event(number, Event::CollectivePosted(request), || time);
    }
    posted_collective(
        told, number, time, operation: OTF2_CollectiveOp, communicator: OTF2_CommRef, root: u32, sent: u64,
        received: u64, request: u64
    ) {
        let through = Through::Communicator(communicator);
        let collective = Collective { operation, through, root, sent, received };
        told.visitor.event(number, Event::Collective(collective, Some(request)), || time);
    }
    remote_collective(
        told, number, time, operation: OTF2_CollectiveOp, _: OTF2_RmaSyncLevel, window: OTF2_RmaWinRef,
        root: u32, sent: u64, received: u64
    ) {
        let collective = Collective { operation, through: Through::Window(window), root, sent, received };
        told.visitor.event(number, Event::Collective(collective, None), || time);
    }
    put(told, number, time, window: OTF2_RmaWinRef, remote: u32, bytes: u64, _: u64) {
        let access = Access { window, remote, put: Some(bytes), got: None };
        told.visitor.event(number, Event::Access(access), || time);
    }
    get(told, number, time, window: OTF2_RmaWinRef, remote: u32, bytes: u64, _: u64) {
        let access = Access { window, remote, put: None, got: Some(bytes) };
        told.visitor.event(number, Event::Access(access), || time);
    }
    atomic(
        told, number, time, window: OTF2_RmaWinRef, remote: u32, _: OTF2_RmaAtomicType, sent: u64,
        received: u64, _: u64
    ) {
        let access = Access { window, remote, put: Some(sent), got: Some(received) };
        told.visitor.event(number, Event::Access(access), || time);
    }
}

/// Callbacks for the definitions of an archive. The user data is a [`Definitions`].
pub(super) struct GlobalCallbacks(*mut OTF2_GlobalDefReaderCallbacks);

impl GlobalCallbacks {
    pub(super) fn new() -> Option<Self> {
        // SAFETY: makes a set of callbacks or returns null; a set is freed when `Self` is dropped. Every callback has
        // the type its setter takes, so setting it cannot fail.
        unsafe {
            let callbacks = OTF2_GlobalDefReaderCallbacks_New();
            if callbacks.is_null() {
                return None;
            }
            OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(callbacks, Some(clock_properties));
            OTF2_GlobalDefReaderCallbacks_SetStringCallback(callbacks, Some(string));
            OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeCallback(callbacks, Some(system_tree_node));
            OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(callbacks, Some(location_group));
            OTF2_GlobalDefReaderCallbacks_SetLocationCallback(callbacks, Some(location));
            OTF2_GlobalDefReaderCallbacks_SetRegionCallback(callbacks, Some(region));
            OTF2_GlobalDefReaderCallbacks_SetGroupCallback(callbacks, Some(group));
            OTF2_GlobalDefReaderCallbacks_SetCommCallback(callbacks, Some(communicator));
            OTF2_GlobalDefReaderCallbacks_SetInterCommCallback(callbacks, Some(inter_communicator));
            OTF2_GlobalDefReaderCallbacks_SetCallingContextCallback(callbacks, Some(calling_context));
            OTF2_GlobalDefReaderCallbacks_SetRmaWinCallback(callbacks, Some(window));
            Some(Self(callbacks))
        }
    }

    pub(super) fn as_ptr(&self) -> *const OTF2_GlobalDefReaderCallbacks {
        self.0
    }
}

impl Drop for GlobalCallbacks {
    fn drop(&mut self) {
        // SAFETY: made by `new` and freed once; libotf2 copies callbacks when they are registered.
        unsafe { OTF2_GlobalDefReaderCallbacks_Delete(self.0) };
    }
}

/// Adds to the [`Definitions`] behind the user data.
///
/// # Safety
///
/// `user_data` is null or the only pointer in use to a `Definitions`.
unsafe fn add(user_data: *mut c_void, change: impl FnOnce(&mut Definitions)) -> OTF2_CallbackCode {
    // SAFETY: see above.
    match unsafe { user_data.cast::<Definitions>().as_mut() } {
        Some(definitions) => guarded(|| change(definitions)),
        None => OTF2_CALLBACK_ERROR,
    }
}

unsafe extern "C" fn clock_properties(
    user_data: *mut c_void,
    timer_resolution: u64,
    _: u64,
    _: u64,
    _: u64,
) -> OTF2_CallbackCode {
    // SAFETY: the user data is what `Archive::definitions` registered.
    unsafe { add(user_data, |all| all.ticks_per_second = Some(timer_resolution)) }
}

unsafe extern "C" fn string(
    user_data: *mut c_void,
    id: OTF2_StringRef,
    string: *const c_char,
) -> OTF2_CallbackCode {
    if string.is_null() {
        return OTF2_CALLBACK_ERROR;
    }
    // SAFETY: libotf2 passes a text that ends with a zero byte.
    let text = unsafe { CStr::from_ptr(string) };
    // SAFETY: as above.
    unsafe {
        add(user_data, |all| {
            all.strings.entry(id).or_insert_with(|| text.to_string_lossy().into_owned());
        })
    }
}

unsafe extern "C" fn system_tree_node(
    user_data: *mut c_void,
    id: OTF2_SystemTreeNodeRef,
    name: OTF2_StringRef,
    class: OTF2_StringRef,
    parent: OTF2_SystemTreeNodeRef,
) -> OTF2_CallbackCode {
    // SAFETY: as above.
    unsafe {
        add(user_data, |all| {
            all.nodes.entry(id).or_insert(Node { name, class, parent });
        })
    }
}

unsafe extern "C" fn location_group(
    user_data: *mut c_void,
    id: OTF2_LocationGroupRef,
    _: OTF2_StringRef,
    kind: OTF2_LocationGroupType,
    node: OTF2_SystemTreeNodeRef,
    _: OTF2_LocationGroupRef,
) -> OTF2_CallbackCode {
    // SAFETY: as above.
    unsafe { add(user_data, |all| all.add_location_group(id, LocationGroup { kind, node })) }
}

unsafe extern "C" fn location(
    user_data: *mut c_void,
    id: OTF2_LocationRef,
    _: OTF2_StringRef,
    kind: OTF2_LocationType,
    events: u64,
    group: OTF2_LocationGroupRef,
) -> OTF2_CallbackCode {
    // SAFETY: as above.
    unsafe { add(user_data, |all| all.add_location(id, Location { kind, events, group })) }
}

unsafe extern "C" fn region(
    user_data: *mut c_void,
    id: OTF2_RegionRef,
    name: OTF2_StringRef,
    _: OTF2_StringRef,
    _: OTF2_StringRef,
    role: OTF2_RegionRole,
    paradigm: OTF2_Paradigm,
    _: OTF2_RegionFlag,
    _: OTF2_StringRef,
    _: u32,
    _: u32,
) -> OTF2_CallbackCode {
    // SAFETY: as above.
    unsafe {
        add(user_data, |all| {
            all.regions.entry(id).or_insert(Region { name, paradigm, role });
        })
    }
}

unsafe extern "C" fn group(
    user_data: *mut c_void,
    id: OTF2_GroupRef,
    _: OTF2_StringRef,
    kind: OTF2_GroupType,
    paradigm: OTF2_Paradigm,
    flags: OTF2_GroupFlag,
    count: u32,
    members: *const u64,
) -> OTF2_CallbackCode {
    let members = if count == 0 || members.is_null() {
        &[]
    } else {
        // SAFETY: libotf2 passes an array of `count` members.
        unsafe { std::slice::from_raw_parts(members, count as usize) }
    };
    // SAFETY: as above.
    unsafe {
        add(user_data, |all| all.add_group(kind, id, Group { paradigm, flags, members: members.to_vec() }))
    }
}

unsafe extern "C" fn communicator(
    user_data: *mut c_void,
    id: OTF2_CommRef,
    name: OTF2_StringRef,
    group: OTF2_GroupRef,
    _: OTF2_CommRef,
    _: OTF2_CommFlag,
) -> OTF2_CallbackCode {
    let communicator = |all: &mut Definitions| {
        all.add_communicator(id, group);
        all.communicator_names.entry(id).or_insert(name);
    };
    // SAFETY: as above.
    unsafe { add(user_data, communicator) }
}

unsafe extern "C" fn inter_communicator(
    user_data: *mut c_void,
    id: OTF2_CommRef,
    name: OTF2_StringRef,
    one: OTF2_GroupRef,
    other: OTF2_GroupRef,
    _: OTF2_CommRef,
    _: OTF2_CommFlag,
) -> OTF2_CallbackCode {
    let communicator = |all: &mut Definitions| {
        all.add_inter_communicator(id, (one, other));
        all.communicator_names.entry(id).or_insert(name);
    };
    // SAFETY: as above.
    unsafe { add(user_data, communicator) }
}

unsafe extern "C" fn window(
    user_data: *mut c_void,
    id: OTF2_RmaWinRef,
    _: OTF2_StringRef,
    communicator: OTF2_CommRef,
    _: OTF2_RmaWinFlag,
) -> OTF2_CallbackCode {
    // SAFETY: as above.
    unsafe { add(user_data, |all| all.add_window(id, communicator)) }
}

unsafe extern "C" fn calling_context(
    user_data: *mut c_void,
    id: OTF2_CallingContextRef,
    region: OTF2_RegionRef,
    _: OTF2_SourceCodeLocationRef,
    _: OTF2_CallingContextRef,
) -> OTF2_CallbackCode {
    // SAFETY: as above.
    unsafe {
        add(user_data, |all| {
            all.calling_contexts.entry(id).or_insert(region);
        })
    }
}

/// Callbacks for the definitions of a location. The user data is a [`ClockOffsets`].
pub(super) struct LocalCallbacks(*mut OTF2_DefReaderCallbacks);

impl LocalCallbacks {
    pub(super) fn new() -> Option<Self> {
        // SAFETY: as in `GlobalCallbacks::new`.
        unsafe {
            let callbacks = OTF2_DefReaderCallbacks_New();
            if callbacks.is_null() {
                return None;
            }
            OTF2_DefReaderCallbacks_SetClockOffsetCallback(callbacks, Some(clock_offset));
            Some(Self(callbacks))
        }
    }

    pub(super) fn as_ptr(&self) -> *const OTF2_DefReaderCallbacks {
        self.0
    }
}

impl Drop for LocalCallbacks {
    fn drop(&mut self) {
        // SAFETY: as in `GlobalCallbacks::drop`.
        unsafe { OTF2_DefReaderCallbacks_Delete(self.0) };
    }
}

unsafe extern "C" fn clock_offset(
    user_data: *mut c_void,
    time: OTF2_TimeStamp,
    offset: i64,
    _: f64,
) -> OTF2_CallbackCode {
    // SAFETY: the user data is what `LocationReader::definitions` registered, used by nobody else meanwhile.
    match unsafe { user_data.cast::<ClockOffsets>().as_mut() } {
        Some(clock) => guarded(|| clock.add(time, offset)),
        None => OTF2_CALLBACK_ERROR,
    }
}
