//! Names of files in an archive: what may be unpacked, and how a name is written as an IRI.

/// Why a name must not be unpacked; none if it may.
pub(super) fn flaw(name: &str) -> Option<&'static str> {
    const LONGEST: usize = 4096;
    if name.is_empty() || name.len() > LONGEST {
        return Some("its name is empty or too long");
    }
    if name.starts_with('/') || name.contains('\\') || name.as_bytes().get(1) == Some(&b':') {
        return Some("its path is absolute, or written for another system");
    }
    if name.chars().any(char::is_control) {
        return Some("its name has control characters");
    }
    let parts = name.strip_suffix('/').unwrap_or(name).split('/');
    for part in parts {
        match part {
            ".." => return Some("its path leads out of the archive"),
            "" | "." => return Some("its path is not plain"),
            part if part.len() > 255 => return Some("its name is too long"),
            _ => {}
        }
    }
    None
}

/// A name as a relative IRI: everything but letters, digits and a few marks percent-encoded.
pub(super) fn encoded(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                text.push(byte as char);
            }
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// What [`encoded`] made of a name, back; none if it is no such text.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in
            ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/.", "C:/x", "a\\b", "a\nb", "a/.."]
        {
            assert!(flaw(name).is_some(), "{name}");
        }
        for name in ["a", "a/b", "a.b/..c", "ä/ö ü"] {
            assert_eq!(flaw(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_name_comes_back_from_its_iri(name in ".{0,20}") {
            let text = encoded(&name);
            prop_assert!(text.is_ascii() && !text.contains(' '));
            prop_assert_eq!(decoded(&text), Some(name));
        }
    }
}
