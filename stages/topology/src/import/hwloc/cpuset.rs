//! Sets of hardware threads as hwloc writes them.

/// Words of a set; 32 threads each.
const MOST_WORDS: usize = 1 << 15;

/// Hardware threads by the number that the operating system gives them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cpuset {
    /// The word of thread 0 first.
    words: Vec<u32>,
    /// Whether all threads behind the last word are in it.
    is_infinite: bool,
}

impl Cpuset {
    /// Reads `0x0000ffff,,0x00000001`: words of 32 bits, the highest one first, empty ones zero; `0xf...f` in front means that all
    /// higher bits are set. `None` if it is something else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (is_infinite, text) = match text.strip_prefix("0xf...f") {
            Some(rest) => (true, rest.strip_prefix(',').unwrap_or(rest)),
            None => (false, text),
        };
        let mut words = Vec::new();
        if !(is_infinite && text.is_empty()) {
            for word in text.split(',') {
                let digits = word.strip_prefix("0x").unwrap_or(word);
                let is_short = digits.len() <= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                if !is_short || words.len() == MOST_WORDS {
                    return None;
                }
                words.push(if digits.is_empty() { 0 } else { u32::from_str_radix(digits, 16).ok()? });
            }
        }
        words.reverse();
        Some(Self { words, is_infinite })
    }

    pub(super) fn contains(&self, thread: u32) -> bool {
        match self.words.get(thread as usize / 32) {
            Some(word) => word >> (thread % 32) & 1 == 1,
            None => self.is_infinite,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_highest_first() {
        let has = |text: &str, threads: [u32; 5]| {
            let set = Cpuset::parse(text).unwrap();
            threads.map(|thread| set.contains(thread))
        };
        let threads = [0, 1, 32, 64, 1000];
        assert_eq!(has("0x00000003", threads), [true, true, false, false, false]);
        assert_eq!(has("0x00000001,,0x00000002", threads), [false, true, false, true, false]);
        assert_eq!(has("0xf...f", threads), [true; 5]);
        assert_eq!(has("0xf...f,0x00000001", threads), [true, false, true, true, true]);
        assert_eq!(has("0x0", threads), [false; 5]);
        for wrong in ["0x123456789", "x", "0x1,-1", "1.5"] {
            assert_eq!(Cpuset::parse(wrong), None, "{wrong}");
        }
    }
}
