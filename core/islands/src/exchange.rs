//! What islands tell each other.

use hopmap_model::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::spread::Spread;

/// A solution and what it costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate<S> {
    /// Its cost; less is better.
    pub cost: i64,
    /// The solution.
    pub solution: S,
}

/// Who hears what an island sends after an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// Nobody.
    Nobody,
    /// The next island of the ring.
    Ring,
    /// Everybody hears the best of all that was sent, the lowest island among equals.
    Best,
    /// Everybody hears all, in the order of the islands.
    Everybody,
}

/// What every own island hears; `sent` is what each of them sends.
pub(crate) fn deliver<S>(
    exchange: Exchange,
    spread: &Spread<'_>,
    sent: Vec<Vec<Candidate<S>>>,
) -> Result<Vec<Vec<Candidate<S>>>, Error>
where
    S: Clone + Serialize + DeserializeOwned,
{
    let islands = sent.len();
    match exchange {
        Exchange::Nobody => Ok(sent.into_iter().map(|_| Vec::new()).collect()),
        Exchange::Ring => spread.rotate(sent),
        Exchange::Best => {
            let best = sent.into_iter().flatten().min_by_key(|candidate| candidate.cost);
            let best =
                spread.gather(vec![best])?.into_iter().flatten().min_by_key(|candidate| candidate.cost);
            Ok(vec![best.into_iter().collect(); islands])
        }
        Exchange::Everybody => {
            let all: Vec<_> = spread.gather(sent)?.into_iter().flatten().collect();
            Ok(vec![all; islands])
        }
    }
}
