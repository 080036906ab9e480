//! Fields of floating-point numbers that go on by smooth steps.

use hopmap_random::{Draw, Pcg64};

use std::f64::consts::TAU;

use crate::{Change, Width};

/// Share of the memory that a change has as its field.
pub(super) fn share(change: &Change) -> f64 {
    match *change {
        Change::Drift { share, .. } => share,
        _ => 0.0,
    }
}

/// The field at the first checkpoint: waves, and a little noise, so that numbers use all their bits.
pub(super) fn first(length: usize, width: Width, draws: &mut Pcg64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let waves = [1e-5, 1e-3, 1e-1].map(|per_number| Wave::new(per_number, draws));
    change_all(&mut bytes, width, |index, _| {
        waves.iter().map(|wave| wave.at(index)).sum::<f64>() * (1.0 + 1e-6 * draws.unit())
    });
    bytes
}

/// A step: every number gets a part of `step`, between the whole of it and its opposite.
pub(super) fn drift(bytes: &mut [u8], width: Width, step: f64, draws: &mut Pcg64) {
    let wave = Wave::new(1e-4, draws);
    change_all(bytes, width, |index, number| number + step * wave.at(index));
}

/// A wave along the numbers of a field.
struct Wave {
    per_number: f64,
    phase: f64,
}

impl Wave {
    /// One of about so many turns per number.
    fn new(turns: f64, draws: &mut Pcg64) -> Self {
        Self { per_number: TAU * turns * (0.5 + draws.unit()), phase: TAU * draws.unit() }
    }

    fn at(&self, index: usize) -> f64 {
        libm::sin(self.phase + self.per_number * index as f64)
    }
}

fn change_all(bytes: &mut [u8], width: Width, mut change: impl FnMut(usize, f64) -> f64) {
    match width {
        Width::Double => {
            for (index, number) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
                *number = change(index, f64::from_le_bytes(*number)).to_le_bytes();
            }
        }
        Width::Single => {
            for (index, number) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
                *number = (change(index, f32::from_le_bytes(*number).into()) as f32).to_le_bytes();
            }
        }
    }
}
