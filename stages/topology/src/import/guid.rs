//! GUIDs of `InfiniBand` and Omni-Path, as their tools write them.

/// A number of up to sixteen hexadecimal digits and nothing else, such as `2c9030002da23`.
pub(super) fn hexadecimal(text: &str) -> Option<u64> {
    let is_digits = (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_digits { u64::from_str_radix(text, 16).ok() } else { None }
}

/// The same behind `0x`.
pub(super) fn prefixed(text: &str) -> Option<u64> {
    hexadecimal(text.strip_prefix("0x")?)
}

/// A GUID as netloc writes it: `0002:c903:0002:da23`.
pub(super) fn grouped(text: &str) -> Option<u64> {
    let (mut guid, mut groups) = (0, 0);
    for group in text.split(':') {
        groups += 1;
        if group.len() != 4 || groups > 4 {
            return None;
        }
        guid = guid << 16 | hexadecimal(group)?;
    }
    (groups == 4).then_some(guid)
}

/// Sixteen hexadecimal digits in lower case.
pub(super) fn address(guid: u64) -> String {
    format!("{guid:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_write_a_guid_are_read() {
        let number = 0x0002_c903_0002_da23;
        let guid = Some(number);
        assert_eq!(grouped("0002:c903:0002:da23"), guid);
        assert_eq!(prefixed("0x0002c9030002da23"), guid);
        assert_eq!(hexadecimal("2c9030002da23"), guid);
        assert_eq!(address(number), "0002c9030002da23");
        for wrong in
            ["", "0002:c903:0002", "0002:c903:0002:da23:1", "0002:c903:0002:da2", "0002:c903:0002:da2g"]
        {
            assert_eq!(grouped(wrong), None, "{wrong}");
        }
        for wrong in ["", "+1", "0x1", "00002c9030002da23", "é"] {
            assert_eq!(hexadecimal(wrong), None, "{wrong}");
        }
    }
}
