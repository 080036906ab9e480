//! Receives events from libotf2.

use std::any::Any;
use std::collections::HashMap;
use std::ffi::c_void;

use otf2_sys::*;

use super::super::visitor::{Access, Collective, Event, Message, Through, Visitor, region_of};

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
