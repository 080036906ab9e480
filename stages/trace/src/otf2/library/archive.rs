//! An archive opened through libotf2.

use std::collections::{BTreeSet, HashMap};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use otf2_sys::*;

use super::super::clock::ClockOffsets;
use super::super::definitions::Definitions;
use super::super::visitor::Visitor;
use super::definitions::{GlobalCallbacks, LocalCallbacks};
use super::events::{EventCallbacks, Told};
use super::{locks, messages};

/// Events between two looks at whether to stop.
const BATCH: u64 = 1 << 22;

/// An archive opened through libotf2. Errors are what libotf2 says.
#[derive(Debug)]
pub(in super::super) struct Archive {
    reader: NonNull<OTF2_Reader>,
}

// SAFETY: libotf2 lets several threads use one archive once locking callbacks are set, which `open` does, as long as
// no two of them read the same location at once. There is one [`LocationReader`] per location, and reading borrows
// it mutably.
unsafe impl Send for Archive {}
// SAFETY: as above.
unsafe impl Sync for Archive {}

/// How the reading of events ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Ended {
    /// With the last of so many events.
    Complete(u64),
    /// By a callback or because it was asked to stop.
    Early,
}

/// Turns the answer of libotf2 into a result.
fn check(error: OTF2_ErrorCode) -> Result<(), String> {
    if error == OTF2_SUCCESS { Ok(()) } else { Err(messages::take(error)) }
}

/// Turns null into an error.
fn some<T>(pointer: *mut T) -> Result<NonNull<T>, String> {
    NonNull::new(pointer).ok_or_else(|| messages::take(OTF2_SUCCESS))
}

impl Archive {
    /// Opens the archive of an anchor file.
    pub(in super::super) fn open(anchor: &Path) -> Result<Self, String> {
        messages::capture();
        messages::forget();
        let path = CString::new(anchor.as_os_str().as_bytes()).map_err(|_| "its path holds a zero byte")?;
        // SAFETY: the path is a text that ends with a zero byte.
        let archive = Self { reader: some(unsafe { OTF2_Reader_Open(path.as_ptr()) })? };
        // SAFETY: the reader is open; the locking callbacks live for ever and need no user data.
        unsafe {
            check(OTF2_Reader_SetSerialCollectiveCallbacks(archive.reader()))?;
            check(OTF2_Reader_SetLockingCallbacks(
                archive.reader(),
                &raw const locks::CALLBACKS,
                std::ptr::null_mut(),
            ))?;
        }
        Ok(archive)
    }

    fn reader(&self) -> *mut OTF2_Reader {
        self.reader.as_ptr()
    }

    /// The definitions of the archive, and how many there are.
    pub(in super::super) fn definitions(&mut self) -> Result<(Definitions, u64), String> {
        messages::forget();
        let mut definitions = Definitions::default();
        let mut count = 0;
        let callbacks = GlobalCallbacks::new().ok_or("no memory")?;
        // SAFETY: all handles belong to this reader. `definitions` outlives the reading, and nobody else uses it.
        unsafe {
            let source = some(OTF2_Reader_GetGlobalDefReader(self.reader()))?.as_ptr();
            check(OTF2_Reader_RegisterGlobalDefCallbacks(
                self.reader(),
                source,
                callbacks.as_ptr(),
                (&raw mut definitions).cast(),
            ))?;
            check(OTF2_Reader_ReadAllGlobalDefinitions(self.reader(), source, &raw mut count))?;
            check(OTF2_Reader_CloseGlobalDefReader(self.reader(), source))?;
        }
        Ok((definitions, count))
    }

    /// Readers of some locations, in the order of ids.
    pub(in super::super) fn locations(
        &mut self,
        ids: &BTreeSet<u64>,
    ) -> Result<Vec<LocationReader<'_>>, String> {
        messages::forget();
        // SAFETY: the reader is open. No location is undefined, on which libotf2 would abort: see `Definitions`.
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

/// Reads what one location did.
#[derive(Debug)]
pub(in super::super) struct LocationReader<'a> {
    archive: &'a Archive,
    location: u64,
}

impl LocationReader<'_> {
    /// Id of the location.
    pub(in super::super) fn id(&self) -> u64 {
        self.location
    }

    /// Reads the definitions of the location, so that libotf2 translates the ids in its events and corrects their
    /// times. Returns what it corrects the times by.
    pub(in super::super) fn definitions(&mut self) -> Result<ClockOffsets, String> {
        messages::forget();
        let reader = self.archive.reader();
        let mut clock = ClockOffsets::default();
        let callbacks = LocalCallbacks::new().ok_or("no memory")?;
        // SAFETY: all handles belong to this reader, and this thread is the only one at this location. `clock`
        // outlives the reading, and nobody else uses it.
        unsafe {
            let source = some(OTF2_Reader_GetDefReader(reader, self.location))?.as_ptr();
            check(OTF2_Reader_RegisterDefCallbacks(
                reader,
                source,
                callbacks.as_ptr(),
                (&raw mut clock).cast(),
            ))?;
            let mut count = 0;
            loop {
                match OTF2_Reader_ReadAllLocalDefinitions(reader, source, &raw mut count) {
                    // The first of two id maps counts, and reading goes on behind the second.
                    OTF2_ERROR_DUPLICATE_MAPPING_TABLE => messages::forget(),
                    error => break check(error)?,
                }
            }
            check(OTF2_Reader_CloseDefReader(reader, source))?;
        }
        Ok(clock)
    }

    /// Tells a visitor the events, until `stop` says so. `contexts` has the region of every calling context.
    pub(in super::super) fn events<V: Visitor>(
        &mut self,
        visitor: &mut V,
        contexts: &HashMap<u32, u32>,
        stop: impl Fn() -> bool,
    ) -> Result<Ended, String> {
        messages::forget();
        let reader = self.archive.reader();
        let callbacks = EventCallbacks::new::<V>().ok_or("no memory")?;
        let mut total = 0;
        let mut told = Told { visitor, contexts, panic: None };
        // SAFETY: all handles belong to this reader, and this thread is the only one at this location. `told`
        // outlives the reading, and nobody else uses it meanwhile.
        let ended = unsafe {
            let source = some(OTF2_Reader_GetEvtReader(reader, self.location))?.as_ptr();
            check(OTF2_Reader_RegisterEvtCallbacks(
                reader,
                source,
                callbacks.as_ptr(),
                (&raw mut told).cast(),
            ))?;
            let ended = loop {
                let mut count = 0;
                match OTF2_Reader_ReadLocalEvents(reader, source, BATCH, &raw mut count) {
                    OTF2_ERROR_INTERRUPTED_BY_CALLBACK => break Ended::Early,
                    error => check(error)?,
                }
                total += count;
                if count < BATCH {
                    break Ended::Complete(total);
                }
                if stop() {
                    break Ended::Early;
                }
            };
            check(OTF2_Reader_CloseEvtReader(reader, source))?;
            ended
        };
        match told.panic {
            Some(panic) => std::panic::resume_unwind(panic),
            None => Ok(ended),
        }
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        // SAFETY: the reader is open and closed once; this closes everything opened through it.
        unsafe { OTF2_Reader_Close(self.reader()) };
        messages::forget();
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::visitor::{BadEvent, Event, Message};
    use super::*;

    /// Panics at the first region that is entered.
    struct Panics;

    impl Visitor for Panics {
        const BOTH_ENDS: bool = false;
        fn place(&mut self, region: u32) -> u32 {
            region
        }
        fn enter(&mut self, _: u32, _: impl Fn() -> u64) {
            panic!("a fault of the visitor");
        }
        fn leave(&mut self, _: u32, _: impl Fn() -> u64) {}
        fn send(&mut self, _: u64, _: Message, _: impl Fn() -> u64) {}
        fn event(&mut self, _: u64, _: Event, _: impl Fn() -> u64) {}
        fn bad_event(&self) -> Option<&BadEvent> {
            None
        }
    }

    #[test]
    fn a_panic_of_a_visitor_is_no_stop() {
        let sample = "../../sample-traces/rows-columns-16/eztrace_log.otf2";
        let mut archive = Archive::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(sample)).unwrap();
        archive.definitions().unwrap();
        let mut readers = archive.locations(&BTreeSet::from([0])).unwrap();
        readers[0].definitions().unwrap();
        let read = || readers[0].events(&mut Panics, &HashMap::new(), || false);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"a fault of the visitor"));
    }
}
