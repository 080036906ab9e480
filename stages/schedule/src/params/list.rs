//! Parameters of `schedule/list`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::machine::with_machine;

with_machine! {
    /// A list heuristic.
    pub struct ListParams {
        /// Which one; `best` tries all and takes the best.
        #[serde(default)]
        pub heuristic: Heuristic,
    }
}

/// A list heuristic. Where a program belongs to ranks all are one: the best placement that needs no search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Heuristic {
    /// The best of all.
    #[default]
    Best,
    /// Heterogeneous earliest finish time (Topcuoglu, Hariri, Wu 2002): the task with the longest way to the end first, where it is
    /// done first, between others if there is room.
    Heft,
    /// HEFT in which the way to the end counts what tasks take on the processor that is the fastest for them.
    HeftFastest,
    /// HEFT from the end: all messages are turned round, and what would be done last comes first.
    HeftBackward,
    /// HEFT that looks one step ahead: every task goes where its children could be done first (Bittencourt, Sakellariou, Madeira
    /// 2010).
    Lookahead,
    /// Critical path on a processor (Topcuoglu, Hariri, Wu 2002).
    Cpop,
    /// Predict earliest finish time with an optimistic cost table (Arabnejad, Barbosa 2014).
    Peft,
    /// Modified critical path (Wu, Gajski 1990): the task first that must begin first, where it can.
    Mcp,
    /// Highest level first with estimated times (Adam, Chandy, Dickson 1974).
    Hlfet,
    /// Earliest time first (Hwang, Chow, Anger, Lee 1989). As the next four it compares all ready tasks for every step.
    Etf,
    /// Dynamic level scheduling (Sih, Lee 1993).
    Dls,
    /// Of all ready tasks the one that can be done first (Ibarra, Kim 1977).
    MinMin,
    /// Of all ready tasks the one that is done last where it is done first (Ibarra, Kim 1977).
    MaxMin,
    /// Of all ready tasks the one that loses most if it gets the second best processor (Maheswaran, Ali, Siegel, Hensgen, Freund
    /// 1999).
    Sufferage,
    /// The longest paths stay together (Kim, Browne 1988). Looks through all tasks for every path.
    LinearClusters,
    /// Tasks stay with a parent if they can begin earlier there (after Yang, Gerasoulis 1994).
    DominantSequence,
    /// Everything on the processor that is done first with it.
    Serial,
}

impl Heuristic {
    /// All single ones, in the order in which `best` tries them.
    pub const ALL: [Self; 16] = [
        Self::Heft,
        Self::HeftFastest,
        Self::HeftBackward,
        Self::Lookahead,
        Self::Cpop,
        Self::Peft,
        Self::Mcp,
        Self::Hlfet,
        Self::Etf,
        Self::Dls,
        Self::MinMin,
        Self::MaxMin,
        Self::Sufferage,
        Self::LinearClusters,
        Self::DominantSequence,
        Self::Serial,
    ];

    /// Name in pipelines and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::Heft => "heft",
            Self::HeftFastest => "heft-fastest",
            Self::HeftBackward => "heft-backward",
            Self::Lookahead => "lookahead",
            Self::Cpop => "cpop",
            Self::Peft => "peft",
            Self::Mcp => "mcp",
            Self::Hlfet => "hlfet",
            Self::Etf => "etf",
            Self::Dls => "dls",
            Self::MinMin => "min-min",
            Self::MaxMin => "max-min",
            Self::Sufferage => "sufferage",
            Self::LinearClusters => "linear-clusters",
            Self::DominantSequence => "dominant-sequence",
            Self::Serial => "serial",
        }
    }

    /// Whether its time may grow with the square of the number of tasks.
    #[must_use]
    pub fn is_quadratic(self) -> bool {
        matches!(
            self,
            Self::Lookahead
                | Self::Etf
                | Self::Dls
                | Self::MinMin
                | Self::MaxMin
                | Self::Sufferage
                | Self::LinearClusters
        )
    }
}
