//! Tori, meshes and rings of hosts.

use hopmap_model::Ties;

use super::MAX_SLOTS;
use super::network::{Fabric, numbers, product};
use crate::SyntheticError;

/// Hosts at the points of a grid, each joined to its neighbours. Messages go along the first dimension first.
pub(super) struct Grid {
    sizes: Vec<u64>,
    /// Whether the last point of a line is joined to the first.
    wraps: bool,
}

impl Grid {
    /// `4x4x2`, the first dimension counting fastest.
    pub(super) fn new(shape: &str, text: &str, wraps: bool) -> Result<Self, SyntheticError> {
        let sizes = numbers(shape, text)?;
        product(shape, sizes.iter().copied(), u64::from(MAX_SLOTS))?;
        // Distances are counted in sixteen bits.
        let farthest: u64 = sizes.iter().map(|size| if wraps { size / 2 } else { size - 1 }).sum();
        match farthest < u64::from(u16::MAX) {
            true => Ok(Self { sizes, wraps }),
            false => Err(SyntheticError::TooManySlots { shape: shape.to_owned() }),
        }
    }

    pub(super) fn ring(shape: &str, text: &str) -> Result<Self, SyntheticError> {
        let ring = Self::new(shape, text, true)?;
        match ring.sizes.len() {
            1 => Ok(ring),
            _ => Err(SyntheticError::Size { shape: shape.to_owned(), level: 0, size: text.to_owned() }),
        }
    }

    pub(super) fn hosts(&self) -> u64 {
        self.sizes.iter().product()
    }

    pub(super) fn dimensions(&self) -> usize {
        self.sizes.len()
    }

    pub(super) fn links(&self) -> u64 {
        2 * self.hosts() * self.sizes.len() as u64
    }

    pub(super) fn fabric(&self) -> Fabric {
        let mut cables = Vec::new();
        for host in 0..self.hosts() {
            let mut step = 1;
            for (dimension, &size) in self.sizes.iter().enumerate() {
                let place = host / step % size;
                let next = match place + 1 {
                    next if next < size => Some(host + step),
                    // Of two hosts one cable leads to the other; alone none leads anywhere.
                    _ if self.wraps && size > 2 => Some(host - place * step),
                    _ => None,
                };
                cables.extend(next.map(|next| (host as u32, next as u32, dimension)));
                step *= size;
            }
        }
        // By dimension: the first link that leads nearer to a destination is one of the first dimension.
        cables.sort_by_key(|&(host, next, dimension)| (dimension, host, next));
        Fabric { switches: Vec::new(), cables, ties: Ties::First, forwarding: Vec::new() }
    }
}
