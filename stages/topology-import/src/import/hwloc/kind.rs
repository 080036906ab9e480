//! Kinds of hwloc objects, and sets of processors.

use crate::import::xml::Element;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    what: What,
    /// Number of enclosing objects of the same type.
    nested: u16,
}

/// Object types, roughly from the innermost to the outermost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Thread,
    Core,
    InstructionCache,
    Cache(u8),
    Module,
    Die,
    NumaNode,
    MemoryCache,
    Group,
    Package,
    Other,
    Machine,
}

impl Kind {
    /// The kind of an element nested in objects of given kinds, with the names of versions 1, 2 and 3.
    pub(super) fn of(element: Element<'_>, around: &[Self]) -> Self {
        let what = What::of(element);
        let nested = around.iter().filter(|kind| kind.what == what).count();
        Self { what, nested: u16::try_from(nested).unwrap_or(u16::MAX) }
    }

    pub(super) fn is_thread(self) -> bool {
        self.what == What::Thread
    }

    pub(super) fn is_core(self) -> bool {
        self.what == What::Core
    }

    pub(super) fn is_numa_node(self) -> bool {
        self.what == What::NumaNode
    }

    /// Whether it is memory, which is listed next to its local threads.
    pub(super) fn is_memory(self) -> bool {
        matches!(self.what, What::NumaNode | What::MemoryCache)
    }

    /// Whether hwloc uses this name for the type.
    pub(super) fn is_called(self, name: &str) -> bool {
        self.what == What::named(name, None)
    }

    pub(super) fn name(self) -> String {
        match self.what {
            What::Thread => "hardware thread".into(),
            What::Core => "core".into(),
            What::InstructionCache => "instruction cache".into(),
            What::Cache(level) => format!("L{level}"),
            What::Module => "module".into(),
            What::Die => "die".into(),
            What::NumaNode => "NUMA node".into(),
            What::MemoryCache => "memory cache".into(),
            What::Group => "group".into(),
            What::Package => "package".into(),
            What::Other => "other".into(),
            What::Machine => "machine".into(),
        }
    }
}

impl What {
    fn of(element: Element<'_>) -> Self {
        Self::named(element.attribute("type").unwrap_or_default(), element.attribute("depth"))
    }

    fn named(name: &str, depth: Option<&str>) -> Self {
        let name = name.to_ascii_lowercase();
        let level = |digits: &str| digits.parse().ok().filter(|level| (1..=9).contains(level));
        match name.as_str() {
            "pu" | "proc" => Self::Thread,
            "core" => Self::Core,
            "cache" => depth.and_then(level).map_or(Self::Other, Self::Cache),
            "tile" | "module" => Self::Module,
            "die" => Self::Die,
            "numanode" | "node" => Self::NumaNode,
            "memcache" => Self::MemoryCache,
            "group" | "misc" => Self::Group,
            "package" | "socket" => Self::Package,
            "machine" | "system" => Self::Machine,
            _ => {
                let cache = name.strip_prefix('l').and_then(|rest| rest.strip_suffix("cache"));
                match cache.map(|level_and_type| (level(level_and_type), level_and_type)) {
                    Some((Some(level), _)) => Self::Cache(level),
                    Some((None, digits)) if digits.ends_with('i') => Self::InstructionCache,
                    Some((None, digits)) => {
                        level(digits.trim_end_matches('d')).map_or(Self::Other, Self::Cache)
                    }
                    None => Self::Other,
                }
            }
        }
    }
}

/// Largest number of 32-bit words of a set.
const MOST_WORDS: usize = 1 << 15;

/// A set of hardware threads by operating system index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cpuset {
    /// Lowest word first.
    words: Vec<u32>,
    /// Whether it contains all threads after the last word.
    is_infinite: bool,
}

impl Cpuset {
    /// Parses `0x0000ffff,,0x00000001`: words of 32 bits, the highest first, empty words are zero; a leading
    /// `0xf...f` sets all higher bits. `None` if invalid.
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
    fn names_of_all_versions_are_parsed() {
        let same =
            [("Socket", "Package"), ("L2Cache", "L2Cache"), ("Node", "NUMANode"), ("system", "Machine")];
        for (old, new) in same {
            assert_eq!(What::named(old, None), What::named(new, None));
        }
        assert_eq!(What::named("Cache", Some("3")), What::named("L3Cache", None));
        assert_eq!(What::named("L1iCache", None), What::InstructionCache);
        assert_eq!(What::named("L1dCache", None), What::Cache(1));
        for strange in ["", "Cache", "L99Cache", "lcache", "Bridge", "É"] {
            assert_eq!(What::named(strange, None), What::Other, "{strange}");
        }
    }

    #[test]
    fn the_highest_word_is_first() {
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
