//! Values of options.

use std::time::Duration;

/// A time such as `90`, `90s`, `10m` or `2h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match text.parse::<u32>() {
        Ok(seconds) => Ok(Duration::from_secs(u64::from(seconds))),
        Err(_) => humantime::parse_duration(text)
            .map_err(|error| format!("{error}; write for example 90s, 10m or 2h")),
    }
}
