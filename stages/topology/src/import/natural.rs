//! The order of names in which `node2` stands before `node10`.

use std::cmp::Ordering;

/// Compares names piece by piece, digits as numbers; names that differ in leading zeros only as text.
pub(super) fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        match (left.is_empty(), right.is_empty()) {
            (true, true) => return a.cmp(b),
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        let (first, rest) = piece(left);
        let (second, other) = piece(right);
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let order = match is_number(first) && is_number(second) {
            true => {
                let (first, second) = (first.trim_start_matches('0'), second.trim_start_matches('0'));
                first.len().cmp(&second.len()).then_with(|| first.cmp(second))
            }
            false => first.cmp(second),
        };
        if order.is_ne() {
            return order;
        }
        (left, right) = (rest, other);
    }
}

/// The first digits, or what stands before the next ones.
fn piece(text: &str) -> (&str, &str) {
    let is_digit = |c: char| c.is_ascii_digit();
    let digits = text.starts_with(is_digit);
    let end = text.find(|c: char| is_digit(c) != digits).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers() {
        let mut names = vec!["n10", "n2", "n1-2", "n02", "m3", "n", "n1-10", "n99999999999999999999999", "3"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["3", "m3", "n", "n1-2", "n1-10", "n02", "n2", "n10", "n99999999999999999999999"]);
    }
}
