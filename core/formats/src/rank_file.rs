//! The cores of a rank in a rank file of Open MPI: `0`, `0-3`, `0,2`, `1:0-3`, `0:*`, `0:0-1;1:0`.
//!
//! Numbers are logical. A socket holds for the cores after it, up to the next one: `1:0,1` is two cores of socket 1.
//!
//! Source: mpirun(1) of Open MPI 4.1, "Rankfiles", and where 4.1.4 binds ranks.

/// Some cores of a host or a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cores {
    /// The socket in which they are numbered; none if they are those of the host.
    pub socket: Option<usize>,
    /// The first and the last one; none for all.
    pub range: Option<(u32, u32)>,
}

/// The cores behind `slot=`; the error says what is wrong with the text.
pub fn cores(text: &str) -> Result<Vec<Cores>, String> {
    let number = |digits: &str| {
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u32>().ok().filter(|_| is_number)
    };
    let mut socket = None;
    let item = |item: &str| {
        let cores = match item.split_once(':') {
            Some((before, cores)) => {
                socket = Some(number(before)? as usize);
                cores
            }
            None => item,
        };
        let range = match (cores, cores.split_once('-')) {
            ("*", _) => None,
            (_, Some((first, last))) => {
                Some((number(first)?, number(last)?)).filter(|(first, last)| first <= last)
            }
            (core, None) => Some((number(core)?, number(core)?)),
        };
        (range.is_some() || cores == "*").then_some(Cores { socket, range })
    };
    let found = text.split([',', ';']).map(item).collect::<Option<Vec<Cores>>>();
    found.ok_or_else(|| match text.to_ascii_lowercase().contains('p') {
        true => format!("`{text}` is a physical core number"),
        false => format!("`{text}` is not a list of cores"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_lists_of_ranges_in_sockets() {
        let of = |text: &str| -> Vec<_> {
            cores(text).unwrap().into_iter().map(|cores| (cores.socket, cores.range)).collect()
        };
        assert_eq!(of("3"), [(None, Some((3, 3)))]);
        assert_eq!(of("0-3,8"), [(None, Some((0, 3))), (None, Some((8, 8)))]);
        assert_eq!(of("1:0,2-3"), [(Some(1), Some((0, 0))), (Some(1), Some((2, 3)))]);
        assert_eq!(of("0:0-1;1:*"), [(Some(0), Some((0, 1))), (Some(1), None)]);
        assert_eq!(of("*"), [(None, None)]);
        for wrong in ["", "x", "3-1", "0-", "-1", "1:", "0-1:0", "0:0:0", "0 - 1", "1,", "99999999999"] {
            assert_eq!(cores(wrong), Err(format!("`{wrong}` is not a list of cores")));
        }
        assert_eq!(cores("p1"), Err("`p1` is a physical core number".to_owned()));
    }
}
