//! Receives events from libotf2.

use std::ffi::c_void;

use otf2_sys::*;

use super::super::tally::Tally;

/// Callbacks for the events of a location. The user data is a [`Tally`].
pub(super) struct EventCallbacks(*mut OTF2_EvtReaderCallbacks);

impl EventCallbacks {
    pub(super) fn new() -> Option<Self> {
        // SAFETY: makes a set of callbacks or returns null; a set is freed when `Self` is dropped. Every callback has
        // the type its setter takes, so setting it cannot fail.
        unsafe {
            let callbacks = OTF2_EvtReaderCallbacks_New();
            if callbacks.is_null() {
                return None;
            }
            OTF2_EvtReaderCallbacks_SetEnterCallback(callbacks, Some(enter));
            OTF2_EvtReaderCallbacks_SetLeaveCallback(callbacks, Some(leave));
            OTF2_EvtReaderCallbacks_SetMpiSendCallback(callbacks, Some(send));
            OTF2_EvtReaderCallbacks_SetMpiIsendCallback(callbacks, Some(isend));
            OTF2_EvtReaderCallbacks_SetCallingContextEnterCallback(callbacks, Some(calling_context_enter));
            OTF2_EvtReaderCallbacks_SetCallingContextLeaveCallback(callbacks, Some(calling_context_leave));
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

/// Counts in the [`Tally`] behind the user data; stops when `count` says `false` or panics.
///
/// # Safety
///
/// `user_data` is null or the only pointer in use to a `Tally`.
#[inline]
unsafe fn tally(user_data: *mut c_void, count: impl FnOnce(&mut Tally<'_>) -> bool) -> OTF2_CallbackCode {
    // SAFETY: see above.
    let Some(tally) = (unsafe { user_data.cast::<Tally<'_>>().as_mut() }) else { return OTF2_CALLBACK_ERROR };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| count(tally))) {
        Ok(true) => OTF2_CALLBACK_SUCCESS,
        _ => OTF2_CALLBACK_INTERRUPT,
    }
}

unsafe extern "C" fn enter(
    _: OTF2_LocationRef,
    time: OTF2_TimeStamp,
    _: u64,
    user_data: *mut c_void,
    _: *mut OTF2_AttributeList,
    region: OTF2_RegionRef,
) -> OTF2_CallbackCode {
    // SAFETY: the user data is what `LocationReader::events` registered.
    unsafe {
        tally(user_data, |tally| {
            tally.stack.enter(region, time);
            true
        })
    }
}

unsafe extern "C" fn leave(
    _: OTF2_LocationRef,
    time: OTF2_TimeStamp,
    _: u64,
    user_data: *mut c_void,
    _: *mut OTF2_AttributeList,
    region: OTF2_RegionRef,
) -> OTF2_CallbackCode {
    // SAFETY: as above.
    unsafe {
        tally(user_data, |tally| {
            tally.stack.leave(region, time);
            true
        })
    }
}

unsafe extern "C" fn calling_context_enter(
    _: OTF2_LocationRef,
    time: OTF2_TimeStamp,
    _: u64,
    user_data: *mut c_void,
    _: *mut OTF2_AttributeList,
    context: OTF2_CallingContextRef,
    _: u32,
) -> OTF2_CallbackCode {
    // SAFETY: as above.
    unsafe {
        tally(user_data, |tally| {
            tally.stack.enter(tally.region_of(context), time);
            true
        })
    }
}

unsafe extern "C" fn calling_context_leave(
    _: OTF2_LocationRef,
    time: OTF2_TimeStamp,
    _: u64,
    user_data: *mut c_void,
    _: *mut OTF2_AttributeList,
    context: OTF2_CallingContextRef,
) -> OTF2_CallbackCode {
    // SAFETY: as above.
    unsafe {
        tally(user_data, |tally| {
            tally.stack.leave(tally.region_of(context), time);
            true
        })
    }
}

unsafe extern "C" fn send(
    _: OTF2_LocationRef,
    _: OTF2_TimeStamp,
    event: u64,
    user_data: *mut c_void,
    _: *mut OTF2_AttributeList,
    receiver: u32,
    communicator: OTF2_CommRef,
    _: u32,
    bytes: u64,
) -> OTF2_CallbackCode {
    // SAFETY: as above.
    unsafe { tally(user_data, |tally| tally.send(event, communicator, receiver, bytes)) }
}

unsafe extern "C" fn isend(
    _: OTF2_LocationRef,
    _: OTF2_TimeStamp,
    event: u64,
    user_data: *mut c_void,
    _: *mut OTF2_AttributeList,
    receiver: u32,
    communicator: OTF2_CommRef,
    _: u32,
    bytes: u64,
    _: u64,
) -> OTF2_CallbackCode {
    // SAFETY: as above.
    unsafe { tally(user_data, |tally| tally.send(event, communicator, receiver, bytes)) }
}
