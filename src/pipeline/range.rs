//! Ranges of numbers: `1..10`, `16..128 step 16`, `0.1..0.5 step 0.1`, `16..1024 times 2`. Both ends belong to them.
//!
//! They are counted in exact decimals, so that `0.1..0.5 step 0.1` has 0.3 and not 0.30000000000000004.

use std::cmp::Ordering;

use serde_json::{Number, Value as Json};

/// How ranges are written, for messages.
pub(crate) const RANGES: &str = "write a list, or a range such as \"1..10\", \"16..128 step 16\", \"0.1..0.5 step 0.1\" or \"16..1024 times 2\"; both ends belong to it";

/// A decimal number: `digits` · 10^−`scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    digits: i128,
    scale: u32,
}

impl Decimal {
    /// So many digits, before and behind the point, always fit, also after two numbers got the same scale.
    const MOST_DIGITS: usize = 18;

    /// Reads `12`, `-0.5` or `1e-6`.
    fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let unsigned = whole.strip_prefix(['-', '+']).unwrap_or(whole);
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_number = !unsigned.is_empty() && is_digits(unsigned) && is_digits(fraction);
        if !is_number || mantissa.ends_with('.') || unsigned.len() + fraction.len() > Self::MOST_DIGITS {
            return None;
        }
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent.parse().ok()?)?;
        let number = match u32::try_from(scale) {
            Ok(scale) => Self { digits, scale },
            Err(_) => Self { digits: digits.checked_mul(power(scale.unsigned_abs())?)?, scale: 0 },
        };
        let most = Self::MOST_DIGITS as u32;
        (number.scale <= most && number.digits.abs() < power(most)?).then_some(number)
    }

    /// The digits with another scale, which is not smaller.
    fn at(self, scale: u32) -> Option<i128> {
        self.digits.checked_mul(power(scale - self.scale)?)
    }

    fn times(self, factor: Self) -> Option<Self> {
        let mut product =
            Self { digits: self.digits.checked_mul(factor.digits)?, scale: self.scale + factor.scale };
        while product.scale > 0 && product.digits % 10 == 0 {
            product = Self { digits: product.digits / 10, scale: product.scale - 1 };
        }
        Some(product)
    }

    /// The number in JSON, whole or with a point.
    fn json(self, whole: bool) -> Json {
        if whole && let Ok(number) = i64::try_from(self.digits / power(self.scale).unwrap_or(1)) {
            return number.into();
        }
        let sign = if self.digits < 0 { "-" } else { "" };
        let text = format!("{sign}{}e-{}", self.digits.unsigned_abs(), self.scale);
        // The nearest number that a computer has, which prints as that decimal.
        text.parse().ok().and_then(Number::from_f64).map_or(Json::Null, Json::Number)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let scale = self.scale.max(other.scale);
        Some(self.at(scale)?.cmp(&other.at(scale)?))
    }
}

fn power(exponent: u32) -> Option<i128> {
    10_i128.checked_pow(exponent)
}

/// A range of numbers.
#[derive(Debug)]
pub(crate) struct Range {
    first: Decimal,
    last: Decimal,
    advance: Advance,
    whole: bool,
}

#[derive(Debug)]
enum Advance {
    By(Decimal),
    Times(Decimal),
}

impl Range {
    /// Reads a range. `None` if the text is none, an error if it is one that makes no sense.
    pub(crate) fn parse(text: &str) -> Option<Result<Self, String>> {
        let (first, rest) = text.split_once("..")?;
        let words: Vec<&str> = std::iter::once(first.trim()).chain(rest.split_whitespace()).collect();
        let numbers: Vec<&str> = match words.as_slice() {
            [first, last] => vec![first, last],
            [first, last, "step" | "times", number] => vec![first, last, number],
            _ => return None,
        };
        let decimals: Vec<Decimal> =
            numbers.iter().map(|text| Decimal::parse(text)).collect::<Option<_>>()?;
        let whole = numbers.iter().all(|text| !text.contains(['.', 'e', 'E']));
        let (first, last) = (decimals[0], decimals[1]);
        let advance = match (words.get(2), decimals.get(2)) {
            (Some(&"times"), Some(&factor)) => Advance::Times(factor),
            (_, step) => Advance::By(step.copied().unwrap_or(Decimal { digits: 1, scale: 0 })),
        };
        let fault = match &advance {
            _ if first > last => Some(format!("`{text}` has no value: {} is above {}", words[0], words[1])),
            Advance::By(step) if step.digits <= 0 => Some(format!("the step of `{text}` is not above zero")),
            Advance::By(_) if words.len() == 2 && !whole => {
                Some(format!("`{text}` does not say its step, such as `step 0.1`"))
            }
            Advance::Times(_) if first.digits <= 0 => {
                Some(format!("`{text}` multiplies and does not begin above zero"))
            }
            Advance::Times(factor) if *factor <= (Decimal { digits: 1, scale: 0 }) => {
                Some(format!("the factor of `{text}` is not above one"))
            }
            _ => None,
        };
        Some(match fault {
            Some(message) => Err(message),
            None => Ok(Self { first, last, advance, whole }),
        })
    }

    /// Number of its values.
    pub(crate) fn count(&self) -> u128 {
        match self.advance {
            Advance::By(step) => {
                let scale = self.first.scale.max(self.last.scale).max(step.scale);
                let steps = || {
                    let way = self.last.at(scale)?.checked_sub(self.first.at(scale)?)?;
                    u128::try_from(way / step.at(scale)?).ok()
                };
                steps().unwrap_or(u128::MAX).saturating_add(1)
            }
            Advance::Times(_) => self.products().count() as u128,
        }
    }

    /// Its values, from the first.
    pub(crate) fn values(&self) -> Vec<Json> {
        match self.advance {
            Advance::By(step) => {
                let scale = self.first.scale.max(self.last.scale).max(step.scale);
                let (first, step) = (self.first.at(scale).unwrap_or(0), step.at(scale).unwrap_or(1));
                let value = |index: u128| Decimal { digits: first + step * index.cast_signed(), scale };
                (0..self.count()).map(|index| value(index).json(self.whole)).collect()
            }
            Advance::Times(_) => self.products().map(|value| value.json(self.whole)).collect(),
        }
    }

    /// Values that are multiplied; they end before their digits are too many.
    fn products(&self) -> impl Iterator<Item = Decimal> {
        let next = |value: &Decimal| match self.advance {
            Advance::Times(factor) => value.times(factor),
            Advance::By(_) => None,
        };
        std::iter::successors(Some(self.first), next).take_while(|value| *value <= self.last)
    }
}

/// A range without steps that may be open at one end: `256..`, `..64`, `64..128`.
#[derive(Debug)]
pub(crate) struct Bounds {
    from: f64,
    to: f64,
}

impl Bounds {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let end = |text: &str, open: f64| match text.trim() {
            "" => Some(open),
            text => text.parse().ok().filter(|number: &f64| number.is_finite()),
        };
        let (from, to) = text.split_once("..")?;
        let bounds = Self { from: end(from, f64::NEG_INFINITY)?, to: end(to, f64::INFINITY)? };
        (bounds.from.is_finite() || bounds.to.is_finite()).then_some(bounds)
    }

    /// Whether a value is a number between the ends, or one of them.
    pub(crate) fn contains(&self, value: &Json) -> bool {
        value.as_f64().is_some_and(|number| (self.from..=self.to).contains(&number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        match Range::parse(text) {
            None => "no range".into(),
            Some(Err(message)) => message,
            Some(Ok(range)) => {
                let values = range.values();
                assert_eq!(values.len() as u128, range.count());
                values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            }
        }
    }

    #[test]
    fn both_ends_belong_to_a_range() {
        assert_eq!(shown("1..3"), "1 2 3");
        assert_eq!(shown(" -1 .. 1 "), "-1 0 1");
        assert_eq!(shown("7..7"), "7");
        assert_eq!(shown("16..64 step 16"), "16 32 48 64");
        assert_eq!(shown("1..10 step 4"), "1 5 9");
    }

    #[test]
    fn decimals_are_printed_in_their_shortest_form() {
        assert_eq!(shown("0.1..0.5 step 0.1"), "0.1 0.2 0.3 0.4 0.5");
        assert_eq!(shown("1..2 step 0.25"), "1.0 1.25 1.5 1.75 2.0");
        assert_eq!(shown("-0.2..0.1 step 0.1"), "-0.2 -0.1 0.0 0.1");
    }

    #[test]
    fn factors_multiply() {
        assert_eq!(shown("16..1024 times 2"), "16 32 64 128 256 512 1024");
        assert_eq!(shown("1..100 times 3"), "1 3 9 27 81");
        assert_eq!(shown("0.001..1 times 10"), "0.001 0.01 0.1 1.0");
        assert_eq!(shown("1e-3..1e-1 times 10"), "0.001 0.01 0.1");
        assert_eq!(shown("1..4 times 1.5"), "1.0 1.5 2.25 3.375");
    }

    #[test]
    fn invalid_ranges_are_refused_with_the_reason() {
        assert_eq!(shown("3..1"), "`3..1` has no value: 3 is above 1");
        assert_eq!(shown("1..3 step 0"), "the step of `1..3 step 0` is not above zero");
        assert_eq!(shown("1..3 step -1"), "the step of `1..3 step -1` is not above zero");
        assert_eq!(shown("0.1..0.5"), "`0.1..0.5` does not say its step, such as `step 0.1`");
        assert_eq!(shown("0..8 times 2"), "`0..8 times 2` multiplies and does not begin above zero");
        assert_eq!(shown("1..8 times 1"), "the factor of `1..8 times 1` is not above one");
        for text in [
            "1-3",
            "1..",
            "..3",
            "a..b",
            "1..3 by 2",
            "1..3 step",
            "1...3",
            "1..3 step 1 2",
            "1..9999999999999999999",
        ] {
            assert_eq!(shown(text), "no range", "{text}");
        }
    }

    #[test]
    fn a_range_is_counted_without_being_made() {
        let count = |text: &str| Range::parse(text).unwrap().unwrap().count();
        assert_eq!(count("1..1000000000"), 1_000_000_000);
        assert_eq!(
            count("0..999999999999999999 step 0.00000000000000001"),
            999_999_999_999_999_999 * 10_u128.pow(17) + 1
        );
    }

    #[test]
    fn bounds_may_be_open() {
        let contains = |bounds: &str, value: Json| Bounds::parse(bounds).unwrap().contains(&value);
        assert!(contains("256..", 256.into()) && !contains("256..", 255.into()));
        assert!(contains("..0.5", Json::from(0.5)) && !contains("..0.5", Json::from(0.500_001)));
        assert!(contains("2..3", 3.into()) && !contains("2..3", 4.into()));
        assert!(!contains("2..3", "2".into()));
        assert!(Bounds::parse("..").is_none() && Bounds::parse("exact").is_none());
    }

    proptest! {
        #[test]
        fn a_decimal_range_is_that_of_integers_with_a_point(first in -999_i64..999, steps in 0_i64..40, step in 1_i64..99) {
            let point = |number: i64| format!("{}{}.{:02}", if number < 0 { "-" } else { "" }, number.abs() / 100, number.abs() % 100);
            let last = first + steps * step;
            let whole = Range::parse(&format!("{first}..{last} step {step}")).unwrap().unwrap().values();
            let decimal = Range::parse(&format!("{}..{} step {}", point(first), point(last), point(step)));
            let decimal = decimal.unwrap().unwrap().values();
            prop_assert_eq!(whole.len(), (steps + 1) as usize);
            prop_assert_eq!(decimal.len(), whole.len());
            for (decimal, whole) in decimal.iter().zip(whole) {
                // The printed number is the decimal itself, whatever trailing zeros it had.
                let written: f64 = point(whole.as_i64().unwrap()).parse().unwrap();
                prop_assert_eq!(decimal.to_string(), Json::from(written).to_string());
            }
        }
    }
}
