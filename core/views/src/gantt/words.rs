//! Times as words. Nobody says in which unit they are.

use crate::human::six_digits;

/// A power of a thousand by which the labels of an axis are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeUnit(i32);

impl TimeUnit {
    /// The one in which a time has one to three digits before the point, or none if it is a common number.
    pub(super) fn of(makespan: f64) -> Self {
        match makespan {
            _ if !(makespan > 0.0 && makespan.is_finite()) => Self(0),
            common if (0.1..1e5).contains(&common) => Self(0),
            _ => Self(3 * libm::floor(libm::log10(makespan) / 3.0) as i32),
        }
    }

    /// A time on the axis.
    pub(super) fn label(self, time: f64) -> String {
        six_digits(time * libm::exp10(f64::from(-self.0)))
    }

    /// What the axis is.
    pub(super) fn axis(self) -> String {
        const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
        if self.0 == 0 {
            return "time →".to_owned();
        }
        let digit = |digit: char| match digit.to_digit(10) {
            Some(digit) => SUPERSCRIPTS[digit as usize],
            None => '⁻',
        };
        format!("× 10{} →", self.0.to_string().chars().map(digit).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_short_axes_have_a_unit() {
        let micro = TimeUnit::of(2.5e-5);
        assert_eq!((micro.label(1e-5), micro.axis()), ("10".to_owned(), "× 10⁻⁶ →".to_owned()));
        assert_eq!(TimeUnit::of(57.0).axis(), "time →");
        assert_eq!(TimeUnit::of(0.0), TimeUnit(0));
        assert_eq!(TimeUnit::of(2e7).axis(), "× 10⁶ →");
    }
}
