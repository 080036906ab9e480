//! The integers that bounds are computed in.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Sub, SubAssign};

/// Small integers where they are enough, for they are faster, and large ones elsewhere.
///
/// A cost is at most [`LARGEST`](Self::LARGEST); what is [`HALF`](Self::HALF) or more stands for something that cannot be.
/// A shortest path of 64 costs lies far below.
pub(super) trait Number:
    Copy
    + Ord
    + Default
    + Debug
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + SubAssign
{
    const ZERO: Self;
    const LARGEST: Self;
    const HALF: Self;
    const IMPOSSIBLE: Self;
    /// Less than any cost.
    const BELOW: Self;
    /// Bits of the largest cost.
    const BITS: u32;

    /// The number of a value that is at most the largest cost; more is cut off.
    fn of(value: i64) -> Self;
    /// A small number of things.
    fn count(things: usize) -> Self;
    fn wide(self) -> i64;

    /// The half that is taken of a pair; all of what cannot be.
    #[inline]
    fn taken(self) -> Self {
        if self >= Self::HALF { Self::IMPOSSIBLE } else { self.halved() }
    }

    /// Half of it, rounded down.
    fn halved(self) -> Self;

    /// A sum in which what cannot be stays so.
    #[inline]
    fn join(self, other: Self) -> Self {
        if self >= Self::HALF || other >= Self::HALF { Self::IMPOSSIBLE } else { self + other }
    }
}

macro_rules! number {
    ($type:ty, $bits:expr, $impossible:expr) => {
        impl Number for $type {
            const ZERO: Self = 0;
            const LARGEST: Self = 1 << $bits;
            const HALF: Self = 1 << ($impossible - 1);
            const IMPOSSIBLE: Self = 1 << $impossible;
            const BELOW: Self = -1;
            const BITS: u32 = $bits;

            #[inline]
            fn of(value: i64) -> Self {
                value.min(i64::from(Self::LARGEST)) as Self
            }

            #[inline]
            fn halved(self) -> Self {
                self >> 1
            }

            fn count(things: usize) -> Self {
                Self::of(i64::from(things as u32))
            }

            #[inline]
            fn wide(self) -> i64 {
                i64::from(self)
            }
        }
    };
}

number!(i32, 21, 29);
number!(i64, 44, 58);
