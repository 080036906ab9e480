//! Everything that calls libotf2 or is called by it.
//!
//! An [`Archive`] hands out plain values. The files it reads must have passed [`structure`](super::structure):
//! libotf2 reads beyond its buffers, loops or aborts on files that are damaged.
// Foreign functions cannot be called otherwise.
#![allow(unsafe_code)]
// All names of the C interface begin with `OTF2_`; lists of them would say nothing more.
#![allow(clippy::wildcard_imports)]

mod archive;
mod definitions;
mod events;
mod locks;
mod messages;

pub(super) use archive::{Archive, Ended, LocationReader};

use otf2_sys::{OTF2_CALLBACK_ERROR, OTF2_CALLBACK_SUCCESS, OTF2_CallbackCode};

/// Runs a callback. A panic must not get into libotf2, so it becomes an error code.
fn guarded(callback: impl FnOnce()) -> OTF2_CallbackCode {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(callback)) {
        Ok(()) => OTF2_CALLBACK_SUCCESS,
        Err(_) => OTF2_CALLBACK_ERROR,
    }
}
