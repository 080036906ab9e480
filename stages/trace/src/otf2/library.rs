//! All calls of libotf2 and all callbacks from it.
//!
//! An [`Archive`] returns plain values. [`structure`](super::structure) must have validated the files
//! before, because libotf2 reads beyond its buffers, loops or aborts on damaged files.

// Required for foreign functions.
#![allow(unsafe_code)]
// All names of the C interface start with `OTF2_`.
#![allow(clippy::wildcard_imports)]

mod callbacks;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Condvar, Mutex, Once, PoisonError};

use otf2_sys::*;

use super::definitions::Definitions;
use super::local_definitions::ClockOffsets;
use super::visitor::Visitor;
use callbacks::{CallbackContext, guarded};

/// Events between two checks for interruption.
const BATCH: u64 = 1 << 22;

/// An archive opened through libotf2. Errors are messages of libotf2.
#[derive(Debug)]
pub(super) struct Archive {
    reader: NonNull<OTF2_Reader>,
}

// SAFETY: with locking callbacks, which `open` sets, several threads may use one archive in libotf2, as long
// as no two of them read the same location concurrently. There is one [`LocationReader`] per location, and
// reading borrows it mutably.
unsafe impl Send for Archive {}
// SAFETY: as above.
unsafe impl Sync for Archive {}

/// Result of reading events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadStatus {
    /// All events were read; their number.
    Complete(u64),
    /// Stopped by a callback or an interruption.
    Early,
}

/// Converts a return code of libotf2 to a result.
fn check(error: OTF2_ErrorCode) -> Result<(), String> {
    if error == OTF2_SUCCESS { Ok(()) } else { Err(take(error)) }
}

/// Converts null to an error.
fn some<T>(pointer: *mut T) -> Result<NonNull<T>, String> {
    NonNull::new(pointer).ok_or_else(|| take(OTF2_SUCCESS))
}

impl Archive {
    /// Opens the archive of an anchor file.
    pub(in crate::otf2) fn open(anchor: &Path) -> Result<Self, String> {
        capture();
        forget();
        let path =
            CString::new(anchor.as_os_str().as_bytes()).map_err(|_| "the path contains a zero byte")?;
        // SAFETY: the path is zero-terminated.
        let archive = Self { reader: some(unsafe { OTF2_Reader_Open(path.as_ptr()) })? };
        // SAFETY: the reader is open; the locking callbacks are static and do not use user data.
        unsafe {
            check(OTF2_Reader_SetSerialCollectiveCallbacks(archive.reader()))?;
            let locking = &raw const CALLBACKS;
            check(OTF2_Reader_SetLockingCallbacks(archive.reader(), locking, std::ptr::null_mut()))?;
        }
        Ok(archive)
    }

    fn reader(&self) -> *mut OTF2_Reader {
        self.reader.as_ptr()
    }

    /// The definitions of the archive and their number.
    pub(in crate::otf2) fn definitions(&mut self) -> Result<(Definitions, u64), String> {
        forget();
        let reader = self.reader();
        let mut definitions = Definitions::default();
        let mut count = 0;
        let callbacks = callbacks::of_definitions().ok_or("no memory")?;
        // SAFETY: all handles belong to this reader. `definitions` outlives the call and is not aliased.
        unsafe {
            let source = some(OTF2_Reader_GetGlobalDefReader(reader))?.as_ptr();
            let (set, data) = (callbacks.as_ptr(), (&raw mut definitions).cast());
            check(OTF2_Reader_RegisterGlobalDefCallbacks(reader, source, set, data))?;
            check(OTF2_Reader_ReadAllGlobalDefinitions(reader, source, &raw mut count))?;
            check(OTF2_Reader_CloseGlobalDefReader(reader, source))?;
        }
        Ok((definitions, count))
    }

    /// Readers of the given locations, in order of their ids.
    pub(in crate::otf2) fn locations(
        &mut self,
        ids: &BTreeSet<u64>,
    ) -> Result<Vec<LocationReader<'_>>, String> {
        forget();
        // SAFETY: the reader is open. No location is undefined, which would abort libotf2: see
        // `Definitions`.
        unsafe {
            for id in ids {
                check(OTF2_Reader_SelectLocation(self.reader(), *id))?;
            }
            check(OTF2_Reader_OpenDefFiles(self.reader()))?;
            check(OTF2_Reader_OpenEvtFiles(self.reader()))?;
        }
        let archive = &*self;
        Ok(ids.iter().map(|&location| LocationReader { archive, location }).collect())
    }
}

/// Reads the events of one location.
#[derive(Debug)]
pub(super) struct LocationReader<'a> {
    archive: &'a Archive,
    location: u64,
}

impl LocationReader<'_> {
    /// Id of the location.
    pub(in crate::otf2) fn id(&self) -> u64 {
        self.location
    }

    /// Reads the definitions of the location, so that libotf2 translates the ids in its events and corrects
    /// their times. Returns the clock offsets.
    pub(in crate::otf2) fn definitions(&mut self) -> Result<ClockOffsets, String> {
        forget();
        let reader = self.archive.reader();
        let mut clock = ClockOffsets::default();
        let callbacks = callbacks::of_local_definitions().ok_or("no memory")?;
        // SAFETY: all handles belong to this reader, and only this thread uses this location. `clock`
        // outlives the call and is not aliased.
        unsafe {
            let source = some(OTF2_Reader_GetDefReader(reader, self.location))?.as_ptr();
            let (set, data) = (callbacks.as_ptr(), (&raw mut clock).cast());
            check(OTF2_Reader_RegisterDefCallbacks(reader, source, set, data))?;
            let mut count = 0;
            loop {
                match OTF2_Reader_ReadAllLocalDefinitions(reader, source, &raw mut count) {
                    // The first of two id maps counts; reading continues after the second.
                    OTF2_ERROR_DUPLICATE_MAPPING_TABLE => forget(),
                    error => break check(error)?,
                }
            }
            check(OTF2_Reader_CloseDefReader(reader, source))?;
        }
        Ok(clock)
    }

    /// Reports the events to a visitor until `stop` is set. `contexts` has the region of every calling
    /// context.
    pub(in crate::otf2) fn events<V: Visitor>(
        &mut self,
        visitor: &mut V,
        contexts: &HashMap<u32, u32>,
        stop: impl Fn() -> bool,
    ) -> Result<ReadStatus, String> {
        forget();
        let reader = self.archive.reader();
        let callbacks = callbacks::of_events::<V>().ok_or("no memory")?;
        let mut total = 0;
        let mut context = CallbackContext { visitor, contexts, panic: None };
        // SAFETY: all handles belong to this reader, and only this thread uses this location. `context`
        // outlives the call and is not aliased meanwhile.
        let ended = unsafe {
            let source = some(OTF2_Reader_GetEvtReader(reader, self.location))?.as_ptr();
            let (set, data) = (callbacks.as_ptr(), (&raw mut context).cast());
            check(OTF2_Reader_RegisterEvtCallbacks(reader, source, set, data))?;
            let ended = loop {
                let mut count = 0;
                match OTF2_Reader_ReadLocalEvents(reader, source, BATCH, &raw mut count) {
                    OTF2_ERROR_INTERRUPTED_BY_CALLBACK => break ReadStatus::Early,
                    error => check(error)?,
                }
                total += count;
                if count < BATCH {
                    break ReadStatus::Complete(total);
                }
                if stop() {
                    break ReadStatus::Early;
                }
            };
            check(OTF2_Reader_CloseEvtReader(reader, source))?;
            ended
        };
        match context.panic {
            Some(panic) => std::panic::resume_unwind(panic),
            None => Ok(ended),
        }
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        // SAFETY: the reader is open and closed only once; this closes everything opened through it.
        unsafe { OTF2_Reader_Close(self.reader()) };
        forget();
    }
}

/// A lock that one call acquires and another releases.
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

/// Lock functions for libotf2.
static CALLBACKS: OTF2_LockingCallbacks = OTF2_LockingCallbacks {
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
    // SAFETY: libotf2 passes a valid pointer to a lock handle.
    unsafe { lock.write(Box::into_raw(Box::<Lock>::default()).cast()) };
    OTF2_CALLBACK_SUCCESS
}

unsafe extern "C" fn destroy(_: *mut c_void, lock: OTF2_Lock) -> OTF2_CallbackCode {
    if lock.is_null() {
        return OTF2_CALLBACK_ERROR;
    }
    // SAFETY: libotf2 destroys each lock from `create` once, when it is no longer in use.
    drop(unsafe { Box::from_raw(lock.cast::<Lock>()) });
    OTF2_CALLBACK_SUCCESS
}

unsafe extern "C" fn lock(_: *mut c_void, lock: OTF2_Lock) -> OTF2_CallbackCode {
    // SAFETY: libotf2 passes null, or a lock from `create` that is not destroyed.
    let Some(lock) = (unsafe { lock.cast::<Lock>().as_ref() }) else { return OTF2_CALLBACK_ERROR };
    guarded(|| lock.take())
}

unsafe extern "C" fn unlock(_: *mut c_void, lock: OTF2_Lock) -> OTF2_CallbackCode {
    // SAFETY: as in `lock`.
    let Some(lock) = (unsafe { lock.cast::<Lock>().as_ref() }) else { return OTF2_CALLBACK_ERROR };
    guarded(|| lock.give_back())
}

thread_local! {
    /// The first message since the last call of [`take`]: the cause of all others.
    static FIRST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Silences libotf2 in this process and captures its messages per thread.
fn capture() {
    static ONCE: Once = Once::new();
    // SAFETY: the callback is static and does not use user data.
    ONCE.call_once(|| unsafe {
        OTF2_Error_RegisterCallback(Some(keep), std::ptr::null_mut());
    });
}

/// Discards captured messages.
fn forget() {
    let _ = FIRST.try_with(|first| first.replace(None));
}

/// Reason for the failure of the last call on this thread.
fn take(error: OTF2_ErrorCode) -> String {
    let message = FIRST.try_with(RefCell::take).ok().flatten();
    message.unwrap_or_else(|| description(error))
}

fn description(error: OTF2_ErrorCode) -> String {
    // SAFETY: the function accepts any code and returns a static text or null.
    let text = unsafe { OTF2_Error_GetDescription(error) };
    if error == OTF2_SUCCESS || text.is_null() {
        return "unknown reason".into();
    }
    // SAFETY: not null, so a static zero-terminated text.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

unsafe extern "C" fn keep(
    _: *mut c_void,
    _: *const c_char,
    _: u64,
    _: *const c_char,
    error: OTF2_ErrorCode,
    format: *const c_char,
    arguments: *mut c_void,
) -> OTF2_ErrorCode {
    // SAFETY: libotf2 passes a format, which may be null, and its arguments.
    guarded(|| unsafe { remember(error, format, arguments) });
    error
}

/// # Safety
///
/// `format` is null, or a `printf` format for `arguments`, an unused `va_list`.
unsafe fn remember(error: OTF2_ErrorCode, format: *const c_char, arguments: *mut c_void) {
    let _ = FIRST.try_with(|first| {
        let Ok(mut first) = first.try_borrow_mut() else { return };
        if first.is_some() {
            return;
        }
        let description = description(error);
        let mut buffer = [0u8; 512];
        if !format.is_null() {
            // SAFETY: see above; the length of the buffer is correct, and its last byte stays zero.
            unsafe { vsnprintf(buffer.as_mut_ptr().cast(), buffer.len() - 1, format, arguments) };
        }
        let message = CStr::from_bytes_until_nul(&buffer).unwrap_or_default().to_string_lossy();
        *first = Some(if message.is_empty() { description } else { format!("{message} ({description})") });
    });
}

#[cfg(test)]
mod tests {
    use super::super::visitor::{BadEvent, Event, Message};
    use super::*;

    /// Panics when the first region is entered.
    struct Panics;

    impl Visitor for Panics {
        const BOTH_ENDS: bool = false;
        fn place(&mut self, region: u32) -> u32 {
            region
        }
        fn enter(&mut self, _: u32, _: impl Fn() -> u64) {
            panic!("a bug in the visitor");
        }
        fn leave(&mut self, _: u32, _: impl Fn() -> u64) {}
        fn send(&mut self, _: u64, _: Message, _: impl Fn() -> u64) {}
        fn event(&mut self, _: u64, _: Event, _: impl Fn() -> u64) {}
        fn bad_event(&self) -> Option<&BadEvent> {
            None
        }
    }

    #[test]
    fn a_panic_of_a_visitor_propagates() {
        let sample = "../../sample-traces/rows-columns-16/eztrace_log.otf2";
        let mut archive = Archive::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(sample)).unwrap();
        archive.definitions().unwrap();
        let mut readers = archive.locations(&BTreeSet::from([0])).unwrap();
        readers[0].definitions().unwrap();
        let read = || readers[0].events(&mut Panics, &HashMap::new(), || false);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"a bug in the visitor"));
    }

    #[test]
    fn only_one_thread_has_the_lock() {
        let mut handle: OTF2_Lock = std::ptr::null_mut();
        // SAFETY: the pointer to the handle is valid.
        assert_eq!(unsafe { create(std::ptr::null_mut(), &raw mut handle) }, OTF2_CALLBACK_SUCCESS);
        let address = handle as usize;
        let counter = Mutex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        // SAFETY: the lock is destroyed after all threads have ended.
                        unsafe { lock(std::ptr::null_mut(), address as OTF2_Lock) };
                        *counter.try_lock().unwrap() += 1;
                        // SAFETY: as above.
                        unsafe { unlock(std::ptr::null_mut(), address as OTF2_Lock) };
                    }
                });
            }
        });
        assert_eq!(*counter.lock().unwrap(), 4000);
        // SAFETY: the lock is no longer in use.
        assert_eq!(unsafe { destroy(std::ptr::null_mut(), handle) }, OTF2_CALLBACK_SUCCESS);
    }

    #[test]
    fn null_locks_are_errors() {
        let none = std::ptr::null_mut();
        // SAFETY: null is allowed.
        let answers = unsafe { [create(none, std::ptr::null_mut()), lock(none, std::ptr::null_mut())] };
        assert_eq!(answers, [OTF2_CALLBACK_ERROR; 2]);
    }

    #[test]
    fn messages_are_kept_and_not_printed() {
        capture();
        forget();
        // SAFETY: the path is zero-terminated; the result is null.
        let reader = unsafe { otf2_sys::OTF2_Reader_Open(c"/nowhere/trace.otf2".as_ptr()) };
        assert!(reader.is_null());
        let message = take(OTF2_SUCCESS);
        assert!(message.contains("/nowhere/trace.otf2"), "{message}");
        assert_eq!(take(OTF2_SUCCESS), "unknown reason");
    }
}
