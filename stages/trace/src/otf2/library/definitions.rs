//! Receives definitions from libotf2.

use std::ffi::{CStr, c_char, c_void};

use otf2_sys::*;

use super::super::clock::ClockOffsets;
use super::super::definitions::{Definitions, Group, Location, LocationGroup, Node, Region};
use super::guarded;

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
