//! What libotf2 has to say about errors, in place of its printing it.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Once;

use otf2_sys::{
    OTF2_Error_GetDescription, OTF2_Error_RegisterCallback, OTF2_ErrorCode, OTF2_SUCCESS, vsnprintf,
};

thread_local! {
    /// The first message since the last call of [`take`]: the cause; others follow from it.
    static FIRST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Silences libotf2 for the whole process. Its messages are kept per thread.
pub(super) fn capture() {
    static ONCE: Once = Once::new();
    // SAFETY: the callback lives for ever and needs no user data.
    ONCE.call_once(|| unsafe {
        OTF2_Error_RegisterCallback(Some(keep), std::ptr::null_mut());
    });
}

/// Forgets what was said so far, so that old messages are not taken for new ones.
pub(super) fn forget() {
    let _ = FIRST.try_with(|first| first.replace(None));
}

/// Why the last call on this thread failed.
pub(super) fn take(error: OTF2_ErrorCode) -> String {
    let message = FIRST.try_with(RefCell::take).ok().flatten();
    message.unwrap_or_else(|| description(error))
}

fn description(error: OTF2_ErrorCode) -> String {
    // SAFETY: the function takes any code and returns a static text or null.
    let text = unsafe { OTF2_Error_GetDescription(error) };
    if error == OTF2_SUCCESS || text.is_null() {
        return "no reason given".into();
    }
    // SAFETY: it is not null, so it is a text that ends with a zero byte and is never freed.
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
    // SAFETY: libotf2 passes a format, which may be null, and the arguments that belong to it.
    super::guarded(|| unsafe { remember(error, format, arguments) });
    error
}

/// # Safety
///
/// `format` is null, or a format of `printf` that `arguments`, a `va_list` not yet used, belong to.
unsafe fn remember(error: OTF2_ErrorCode, format: *const c_char, arguments: *mut c_void) {
    let _ = FIRST.try_with(|first| {
        let Ok(mut first) = first.try_borrow_mut() else { return };
        if first.is_some() {
            return;
        }
        let description = description(error);
        let mut buffer = [0u8; 512];
        if !format.is_null() {
            // SAFETY: see above; the buffer is as long as said, and its last byte stays zero.
            unsafe { vsnprintf(buffer.as_mut_ptr().cast(), buffer.len() - 1, format, arguments) };
        }
        let message = CStr::from_bytes_until_nul(&buffer).unwrap_or_default().to_string_lossy();
        *first = Some(if message.is_empty() { description } else { format!("{message} ({description})") });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_kept_and_not_printed() {
        capture();
        forget();
        // SAFETY: the path is a text; what is returned is null.
        let reader = unsafe { otf2_sys::OTF2_Reader_Open(c"/nowhere/trace.otf2".as_ptr()) };
        assert!(reader.is_null());
        let message = take(OTF2_SUCCESS);
        assert!(message.contains("/nowhere/trace.otf2"), "{message}");
        assert_eq!(take(OTF2_SUCCESS), "no reason given");
    }
}
