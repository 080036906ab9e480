//! What the types of the parameters cannot say.

use hopmap_model::Error;

use super::agents::host_names;
use super::start::Template;
use crate::{ProbeError, ProbeParams};

/// Largest message, in bytes; agents take no larger ones.
pub(crate) const LARGEST: u64 = 1 << 26;
/// Most sizes.
const MOST_SIZES: usize = 64;

/// Checks the parameters of a probing.
pub(crate) fn check(params: &ProbeParams) -> Result<(), Error> {
    super::levels(params).check()?;
    Ok(check_own(params)?)
}

fn check_own(params: &ProbeParams) -> Result<(), ProbeError> {
    let wrong = |name, value: &dyn std::fmt::Debug, help| {
        Err(ProbeError::Parameter { name, value: format!("{value:?}"), help })
    };
    let is_time = |seconds: f64| seconds > 0.0 && seconds <= 86_400.0;
    Template::parse(&params.start)?;
    if let Some(list) = params.hosts.as_deref().filter(|list| !list.trim().is_empty()) {
        host_names(list)?;
    }
    if params.sizes.is_empty() || params.sizes.len() > MOST_SIZES {
        return wrong("sizes", &params.sizes, "give from 1 to 64 sizes");
    }
    if params.sizes.iter().any(|&bytes| bytes == 0 || bytes > LARGEST) {
        return wrong("sizes", &params.sizes, "sizes are from 1 byte to 64 MiB (67108864)");
    }
    if params.parallel == 0 {
        return wrong("parallel", &params.parallel, "at least one pair has to be measured at a time");
    }
    if params.messages == 0 || params.messages > 1_000_000 {
        return wrong("messages", &params.messages, "give a number from 1 to 1000000");
    }
    if !(0.0..1.0).contains(&params.tolerance) {
        return wrong("tolerance", &params.tolerance, "give a part from 0 to less than 1, such as 0.02");
    }
    if !is_time(params.seconds) {
        return wrong("seconds", &params.seconds, "give seconds above zero, such as 0.1");
    }
    if !is_time(params.timeout) {
        return wrong("timeout", &params.timeout, "give seconds above zero, such as 60");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_right_and_nonsense_is_named() {
        let message = |text: &str| {
            let params: ProbeParams = serde_json::from_str(text).unwrap();
            check(&params).map_or_else(|error| error.to_string(), |()| String::new())
        };
        assert_eq!(message("{}"), "");
        assert_eq!(message(r#"{"hosts": "n[1-4],n2"}"#), "host `n2` is named twice");
        assert!(message(r#"{"hosts": "n[1-"}"#).starts_with("`hosts` is not a host list"));
        assert_eq!(message(r#"{"sizes": []}"#), "`sizes` is []");
        assert_eq!(message(r#"{"sizes": [0, 1]}"#), "`sizes` is [0, 1]");
        assert_eq!(message(r#"{"sizes": [1000000000]}"#), "`sizes` is [1000000000]");
        assert_eq!(message(r#"{"parallel": 0}"#), "`parallel` is 0");
        assert_eq!(message(r#"{"messages": 0}"#), "`messages` is 0");
        assert_eq!(message(r#"{"tolerance": 1.5}"#), "`tolerance` is 1.5");
        assert_eq!(message(r#"{"seconds": 0}"#), "`seconds` is 0.0");
        assert_eq!(message(r#"{"timeout": -1}"#), "`timeout` is -1.0");
        assert_eq!(message(r#"{"gap": 0.5}"#), "gap is 0.5, less than 1.01");
        assert_eq!(message(r#"{"start": "ssh '"}"#), "`start` is `ssh '`, which is no command");
    }
}
