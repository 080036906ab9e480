//! Blocks of hosts as Slurm's plugin topology/block names them, made into switches.

use std::collections::HashSet;
use std::path::Path;

use super::ImportError;
use super::reader::malformed;
use super::slurm_tree::Switch;

/// Blocks in their order, and the sizes of blocks of blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Every block as a switch above its hosts.
    pub(super) bases: Vec<Switch>,
    /// Hosts of a block, of several blocks that belong together, of several of these and so on.
    pub(super) sizes: Vec<u64>,
    /// Line of the sizes.
    pub(super) line: usize,
}

impl Blocks {
    /// Reads the sizes: numbers with commas between them.
    pub(super) fn set_sizes(&mut self, path: &Path, line: usize, text: &str) -> Result<(), ImportError> {
        self.line = line;
        for size in text.split(',').map(str::trim) {
            let Some(number) = size.parse().ok().filter(|&number: &u64| number > 0) else {
                let problem = format!("`{size}` is no size of a block");
                return Err(malformed(path, line, problem, "sizes are numbers of hosts: `BlockSizes=4,16`"));
            };
            self.sizes.push(number);
        }
        Ok(())
    }

    /// A switch for every block, for every group of blocks that is as large as one of the sizes, and for all.
    pub(super) fn switches(self, path: &Path) -> Result<(Vec<Switch>, Vec<String>), ImportError> {
        let Self { bases: blocks, mut sizes, line } = self;
        sizes.sort_unstable();
        sizes.dedup();
        let mut notes = Vec::new();
        let base = sizes.first().copied().unwrap_or(1);
        if let Some(size) = sizes.iter().find(|size| **size % base != 0) {
            let problem = format!("a block of {size} hosts does not hold whole blocks of {base}");
            return Err(malformed(path, line, problem, "larger sizes are the smallest times 2, 4, 8, …"));
        }
        let mut taken: HashSet<String> =
            blocks.iter().flat_map(|block| [&block.name].into_iter().chain(&block.hosts)).cloned().collect();
        let mut tops: Vec<String> = blocks.iter().map(|block| block.name.clone()).collect();
        let mut joined = 1;
        let mut switches = blocks;
        for size in sizes.iter().skip(1) {
            let wide = usize::try_from(size / base).unwrap_or(usize::MAX);
            tops = join(&mut switches, &mut taken, &tops, wide / joined, &format!("blocks-{size}"));
            joined = wide;
        }
        if tops.len() > 1 {
            join(&mut switches, &mut taken, &tops, usize::MAX, "blocks");
            notes.push(format!("{} blocks that no size joins meet in a switch over all", tops.len()));
        }
        Ok((switches, notes))
    }
}

/// Puts a switch over every `wide` of some switches; the names of those.
fn join(
    switches: &mut Vec<Switch>,
    taken: &mut HashSet<String>,
    below: &[String],
    wide: usize,
    prefix: &str,
) -> Vec<String> {
    let mut names = Vec::new();
    for (index, group) in below.chunks(wide.max(1)).enumerate() {
        let mut name = if wide == usize::MAX { prefix.to_owned() } else { format!("{prefix}-{index}") };
        while !taken.insert(name.clone()) {
            name.push('_');
        }
        names.push(name.clone());
        switches.push(Switch { name, switches: group.to_vec(), ..Switch::default() });
    }
    names
}
