//! What the objects of hwloc are.

use super::super::xml::Element;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    what: What,
    /// How many objects of the same sort it lies in.
    nested: u16,
}

/// Sorts of objects, those that commonly lie further in first.
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
    /// Of an element that lies in objects of some kinds. Names are those of versions 1, 2 and 3.
    pub(super) fn of(element: Element<'_>, around: &[Self]) -> Self {
        let what = What::of(element);
        let nested = around.iter().filter(|kind| kind.what == what).count();
        Self { what, nested: nested as u16 }
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

    /// Whether it is memory, beside the threads that are near to it.
    pub(super) fn is_memory(self) -> bool {
        matches!(self.what, What::NumaNode | What::MemoryCache)
    }

    /// Whether an object is of the sort that hwloc calls so.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_versions_are_understood() {
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
}
