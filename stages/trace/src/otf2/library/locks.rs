//! Locks for an archive that several threads read.

use std::ffi::c_void;
use std::sync::{Condvar, Mutex, PoisonError};

use otf2_sys::{
    OTF2_CALLBACK_ERROR, OTF2_CALLBACK_SUCCESS, OTF2_CallbackCode, OTF2_Lock, OTF2_LockingCallbacks,
};

/// A lock that is taken by one call and given back by another.
#[derive(Debug, Default)]
struct Lock {
    taken: Mutex<bool>,
    given_back: Condvar,
}

impl Lock {
    fn take(&self) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken =
            self.given_back.wait_while(taken, |taken| *taken).unwrap_or_else(PoisonError::into_inner);
        *taken = true;
    }

    fn give_back(&self) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.given_back.notify_one();
    }
}

/// How libotf2 makes and uses locks.
pub(super) static CALLBACKS: OTF2_LockingCallbacks = OTF2_LockingCallbacks {
    otf2_release: None,
    otf2_create: Some(create),
    otf2_destroy: Some(destroy),
    otf2_lock: Some(lock),
    otf2_unlock: Some(unlock),
};

unsafe extern "C" fn create(_: *mut c_void, lock: *mut OTF2_Lock) -> OTF2_CallbackCode {
    if lock.is_null() {
        return OTF2_CALLBACK_ERROR;
    }
    // SAFETY: libotf2 passes the place for a lock.
    unsafe { lock.write(Box::into_raw(Box::<Lock>::default()).cast()) };
    OTF2_CALLBACK_SUCCESS
}

unsafe extern "C" fn destroy(_: *mut c_void, lock: OTF2_Lock) -> OTF2_CallbackCode {
    if lock.is_null() {
        return OTF2_CALLBACK_ERROR;
    }
    // SAFETY: libotf2 destroys a lock that `create` made once, when nobody uses it any more.
    drop(unsafe { Box::from_raw(lock.cast::<Lock>()) });
    OTF2_CALLBACK_SUCCESS
}

unsafe extern "C" fn lock(_: *mut c_void, lock: OTF2_Lock) -> OTF2_CallbackCode {
    // SAFETY: libotf2 passes a lock that `create` made and `destroy` has not seen, or null.
    let Some(lock) = (unsafe { lock.cast::<Lock>().as_ref() }) else { return OTF2_CALLBACK_ERROR };
    super::guarded(|| lock.take())
}

unsafe extern "C" fn unlock(_: *mut c_void, lock: OTF2_Lock) -> OTF2_CallbackCode {
    // SAFETY: as in `lock`.
    let Some(lock) = (unsafe { lock.cast::<Lock>().as_ref() }) else { return OTF2_CALLBACK_ERROR };
    super::guarded(|| lock.give_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_thread_has_the_lock() {
        let mut handle: OTF2_Lock = std::ptr::null_mut();
        // SAFETY: the place for the lock is there.
        assert_eq!(unsafe { create(std::ptr::null_mut(), &raw mut handle) }, OTF2_CALLBACK_SUCCESS);
        let address = handle as usize;
        let counter = Mutex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        // SAFETY: the lock is destroyed only after all threads have ended.
                        unsafe { lock(std::ptr::null_mut(), address as OTF2_Lock) };
                        *counter.try_lock().unwrap() += 1;
                        // SAFETY: as above.
                        unsafe { unlock(std::ptr::null_mut(), address as OTF2_Lock) };
                    }
                });
            }
        });
        assert_eq!(*counter.lock().unwrap(), 4000);
        // SAFETY: nobody uses the lock any more.
        assert_eq!(unsafe { destroy(std::ptr::null_mut(), handle) }, OTF2_CALLBACK_SUCCESS);
    }

    #[test]
    fn no_lock_is_an_error() {
        let none = std::ptr::null_mut();
        // SAFETY: null is allowed.
        let answers = unsafe { [create(none, std::ptr::null_mut()), lock(none, std::ptr::null_mut())] };
        assert_eq!(answers, [OTF2_CALLBACK_ERROR; 2]);
    }
}
