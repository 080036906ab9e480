//! Points in time as people read them, in UTC.

/// Steps between ticks, in seconds.
const STEPS: [f64; 17] = [
    1.0,
    5.0,
    15.0,
    60.0,
    300.0,
    900.0,
    1800.0,
    3600.0,
    10_800.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    31_536_000.0,
];
const DAY: f64 = 86_400.0;

/// About `target` round points between two, in seconds since the epoch.
pub(crate) fn ticks(begin: f64, end: f64, target: usize) -> Vec<f64> {
    let wanted = (end - begin) / target.max(1) as f64;
    let longest = STEPS[STEPS.len() - 1];
    let step = STEPS.into_iter().find(|step| *step >= wanted).unwrap_or(longest * (wanted / longest).ceil());
    let first = (begin / step).ceil();
    let count = ((end / step).floor() - first).clamp(-1.0, 100.0) + 1.0;
    (0..count as usize).map(|index| (first + index as f64) * step).collect()
}

/// A day, a minute or a second, as exactly as ticks of this distance need it.
pub(crate) fn label(time: f64, step: f64) -> String {
    let (_, month, day) = date(time);
    let second = time.rem_euclid(DAY) as u32;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    match step {
        step if step >= DAY => format!("{month:02}-{day:02}"),
        step if step >= 43_200.0 => format!("{month:02}-{day:02} {hour:02}:{minute:02}"),
        step if step >= 60.0 => format!("{hour:02}:{minute:02}"),
        _ => format!("{hour:02}:{minute:02}:{second:02}"),
    }
}

/// A day and a minute.
pub(crate) fn moment(time: f64) -> String {
    let (year, month, day) = date(time);
    let minute = time.rem_euclid(DAY) as u32 / 60;
    format!("{year}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60)
}

/// Year, month and day of the proleptic Gregorian calendar (Hinnant, `chrono`-Compatible Low-Level Date Algorithms, `civil_from_days`).
fn date(time: f64) -> (i64, i64, i64) {
    let days = (time / DAY).floor().clamp(-1e9, 1e9) as i64 + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        assert_eq!(moment(0.0), "1970-01-01 00:00");
        assert_eq!(moment(951_782_400.0), "2000-02-29 00:00");
        assert_eq!(moment(1_700_000_000.0), "2023-11-14 22:13");
        assert_eq!(moment(-60.0), "1969-12-31 23:59");
        assert_eq!(label(1_700_000_000.0, 10_800.0), "22:13");
        assert_eq!(label(1_700_000_000.0, DAY), "11-14");
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(10.0, 7200.0, 4), [1800.0, 3600.0, 5400.0, 7200.0]);
        for span in [0.0, 1.0, 1e3, 1e6, 1e9, 1e12] {
            assert!(ticks(1.7e9, 1.7e9 + span, 6).len() <= 8, "{span}");
        }
    }
}
