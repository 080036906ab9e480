//! Numbers in files. Errors are the end of a sentence: "`-1` is negative".

/// Largest range in which floats hold all integers: 2⁵³.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A non-negative integer in digits.
pub fn whole(text: &str) -> Result<u64, String> {
    match text.parse() {
        // `parse` accepts a sign.
        Ok(number) if !text.starts_with('+') => Ok(number),
        _ => Err(not_an_integer(text)),
    }
}

/// A non-negative integer that may be written with a zero fraction or an exponent, `12.0` or `1e6`.
#[inline]
pub fn amount(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if !text.starts_with('+') => Ok(number),
        _ => inexact(text),
    }
}

/// A finite non-negative number. Minus zero is zero.
pub fn real(text: &str) -> Result<f64, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    match text.parse::<f64>() {
        Ok(number) if is_plain && number < 0.0 => Err("is negative".to_owned()),
        Ok(number) if is_plain && number.is_finite() => Ok(number.abs()),
        Ok(_) if is_plain => Err("is too large".to_owned()),
        _ => Err("is not a number".to_owned()),
    }
}

#[cold]
fn not_an_integer(text: &str) -> String {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("is larger than {}", u64::MAX)
    } else if text.starts_with('-') && real(text).is_err_and(|reason| reason == "is negative") {
        "is negative".to_owned()
    } else {
        "is not an integer".to_owned()
    }
}

#[cold]
fn inexact(text: &str) -> Result<u64, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(not_an_integer(text));
    }
    match real(text)? {
        number if number.fract() != 0.0 => Err("is not an integer".to_owned()),
        number if number > EXACT => Err("is too large to be exact".to_owned()),
        number => Ok(number as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_integers_in_any_notation() {
        for (text, number) in [
            ("0", 0),
            ("007", 7),
            ("3.0", 3),
            ("1e3", 1000),
            ("+2", 2),
            ("+2.5E+1", 25),
            ("-0", 0),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(amount(text), Ok(number), "{text}");
        }
        for (text, reason) in [
            ("18446744073709551616", "is larger than 18446744073709551615"),
            ("1.5", "is not an integer"),
            ("-3", "is negative"),
            ("-1e3", "is negative"),
            ("9007199254740994.0", "is too large to be exact"),
            ("1e300", "is too large to be exact"),
            ("1e400", "is too large"),
            ("x", "is not a number"),
            ("NaN", "is not a number"),
            ("inf", "is not a number"),
            ("0x10", "is not a number"),
            ("", "is not a number"),
        ] {
            assert_eq!(amount(text), Err(reason.to_owned()), "{text}");
        }
    }

    #[test]
    fn integers_are_digits_only() {
        assert_eq!(whole("007"), Ok(7));
        for (text, reason) in [
            ("18446744073709551616", "is larger than 18446744073709551615"),
            ("-3", "is negative"),
            ("+3", "is not an integer"),
            ("3.0", "is not an integer"),
            ("-", "is not an integer"),
            ("", "is not an integer"),
        ] {
            assert_eq!(whole(text), Err(reason.to_owned()), "{text}");
        }
    }

    #[test]
    fn real_numbers_are_finite_and_not_negative() {
        assert!(real("-0.0").is_ok_and(f64::is_sign_positive));
        assert_eq!(real("2.5e-1"), Ok(0.25));
    }
}
