//! Bin packing: clusters of ranks into areas below switches, by depth-first search over the largest clusters first.
//!
//! The first descent is first fit decreasing. Areas with the same room that the same clusters may enter are tried once, so
//! that the search is exact for few areas; it gives up after a number of steps.

use std::collections::BTreeMap;

/// Steps after which the search gives up, about a tenth of a second.
const STEPS: usize = 1 << 21;

/// What a search has found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// The area of every cluster.
    Found(Vec<usize>),
    /// There is none.
    Impossible,
    /// There may be one.
    Unknown,
}

/// Classes of clusters that have to be in one region, and the regions of areas.
#[derive(Debug)]
pub(super) struct Regions {
    pub(super) of_clusters: Vec<u32>,
    pub(super) of_areas: Vec<u32>,
}

/// Packs clusters of these sizes into areas with this room, so that every class of clusters is in one region.
pub(super) fn pack(sizes: &[usize], room: Vec<usize>, regions: &[Regions]) -> Packing {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&cluster| std::cmp::Reverse(sizes[cluster]));
    let taken = vec![BTreeMap::new(); regions.len()];
    let areas = vec![0; sizes.len()];
    let mut search = Search { sizes, regions, order, room, taken, areas, steps: STEPS };
    match search.place(0) {
        Some(true) => Packing::Found(search.areas),
        Some(false) => Packing::Impossible,
        None => Packing::Unknown,
    }
}

struct Search<'a> {
    sizes: &'a [usize],
    regions: &'a [Regions],
    /// Clusters, the largest first.
    order: Vec<usize>,
    /// What is free in every area.
    room: Vec<usize>,
    /// For each kind of regions the region of every class, and how many of its clusters are placed.
    taken: Vec<BTreeMap<u32, (u32, usize)>>,
    areas: Vec<usize>,
    steps: usize,
}

impl Search<'_> {
    /// Places the clusters from here on; whether that is possible, if it is known.
    fn place(&mut self, from: usize) -> Option<bool> {
        let Some(&cluster) = self.order.get(from) else { return Some(true) };
        self.steps = self.steps.checked_sub(1)?;
        let mut tried = Vec::new();
        for area in 0..self.room.len() {
            let regions: Vec<u32> = self.regions.iter().map(|regions| regions.of_areas[area]).collect();
            let kind = (self.room[area], regions);
            if self.room[area] < self.sizes[cluster]
                || tried.contains(&kind)
                || !self.may_enter(cluster, &kind.1)
            {
                continue;
            }
            self.enter(cluster, area, &kind.1);
            if self.place(from + 1)? {
                return Some(true);
            }
            self.leave(cluster, area);
            tried.push(kind);
        }
        Some(false)
    }

    fn may_enter(&self, cluster: usize, entered: &[u32]) -> bool {
        let mut kinds = self.regions.iter().zip(&self.taken).zip(entered);
        kinds.all(|((regions, taken), entered)| {
            taken.get(&regions.of_clusters[cluster]).is_none_or(|(region, _)| region == entered)
        })
    }

    fn enter(&mut self, cluster: usize, area: usize, entered: &[u32]) {
        self.areas[cluster] = area;
        self.room[area] -= self.sizes[cluster];
        for ((regions, taken), &entered) in self.regions.iter().zip(&mut self.taken).zip(entered) {
            taken.entry(regions.of_clusters[cluster]).or_insert((entered, 0)).1 += 1;
        }
    }

    fn leave(&mut self, cluster: usize, area: usize) {
        self.room[area] += self.sizes[cluster];
        for (regions, taken) in self.regions.iter().zip(&mut self.taken) {
            let class = regions.of_clusters[cluster];
            let count = taken.get_mut(&class).map_or(0, |(_, count)| {
                *count -= 1;
                *count
            });
            if count == 0 {
                taken.remove(&class);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_first_fit_decreasing_does_not_find_is_found_or_proven_not_to_be_there() {
        // First fit decreasing puts 4 into 5 and 3 into 4, and has no room for 2.
        assert_eq!(pack(&[4, 3, 2], vec![5, 4], &[]), Packing::Found(vec![1, 0, 0]));
        assert_eq!(pack(&[4, 4, 4], vec![6, 6], &[]), Packing::Impossible);
        let regions = [Regions { of_clusters: vec![0, 0, 1, 1], of_areas: vec![0, 1] }];
        assert!(matches!(pack(&[1, 2, 1, 2], vec![3, 3], &regions), Packing::Found(_)));
        assert_eq!(pack(&[1, 3, 1, 1], vec![3, 3], &regions), Packing::Impossible);
    }
}
