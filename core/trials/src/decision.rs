//! Which block a trial runs next, and when it ends. Knows times alone: it starts no program and reads no clock.
//!
//! With a choice, all mappings run in some blocks, and the best of them goes on against the first one in blocks of its own. The
//! best of several looks better in the blocks that made it the best than it is, so that only fresh blocks say what it gains.

use hopmap_statistics::{Looks, gain_at_look, median};

/// Pairs that an interval needs.
pub const FEWEST_PAIRS: u32 = 6;
/// Largest part of the runs of a mapping that may fail: with more of them it is not compared.
const MOST_FAILED: f64 = 0.05;

/// Largest part of so many runs of a mapping that may fail before it is given up: no interval will be precise.
const MOST_FAILED_BEFORE_END: f64 = 0.25;
const RUNS_BEFORE_END: usize = 12;

/// Whether too many of the runs of a mapping failed.
pub(crate) fn fails_too_often(failed: usize, runs: usize) -> bool {
    failed as f64 > MOST_FAILED * runs as f64
}

/// What a trial measures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Design {
    /// Most blocks, without those of the choice.
    pub blocks: u32,
    /// Half width of the interval of the gain at which the trial ends.
    pub precision: Option<f64>,
    /// Blocks that choose the best of several mappings.
    pub choose: Option<u32>,
}

impl Design {
    /// When its results are looked at: at the end, or after 6, 12, 24, … pairs if it ends as soon as they are precise.
    pub(crate) fn looks(blocks: u32, is_precise: bool) -> Looks {
        let most = blocks as usize;
        if is_precise { Looks::doubling(most) } else { Looks::at_the_end(most) }
    }
}

/// The time that is left, and how long runs take.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeLeft {
    /// Seconds until the trial has to end.
    pub seconds: f64,
    /// The slowest run so far by mapping; 0 if there is none.
    pub slowest: Vec<f64>,
}

/// What a trial does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A block of these mappings, in ascending order.
    Block(Vec<usize>),
    /// Nothing.
    End(Ending),
}

/// Why a trial ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All blocks ran.
    Blocks,
    /// The intervals are as narrow as asked.
    Precise,
    /// A further block would not fit into the time.
    Time,
    /// The first mapping, or all others, were given up, and there is nothing to compare.
    NoPair,
}

/// The state of a trial. Mapping 0 is the baseline.
#[derive(Debug, Clone)]
pub struct Decision {
    design: Design,
    looks: Looks,
    given_up: Vec<bool>,
    /// Mappings that go on.
    mappings: Vec<usize>,
    is_choosing: bool,
    /// Times by mapping, of the blocks since the choice; infinite for runs that failed.
    blocks: Vec<Vec<Option<f64>>>,
    /// Numbers of these blocks after which the trial was stopped and shown.
    shown: Vec<usize>,
    /// Failed and all runs by mapping, of all blocks.
    failed: Vec<(usize, usize)>,
}

impl Decision {
    /// The state before the first block.
    #[must_use]
    pub fn new(design: Design, mappings: usize) -> Self {
        Self {
            design,
            looks: Design::looks(design.blocks, design.precision.is_some()),
            given_up: vec![false; mappings],
            mappings: (0..mappings).collect(),
            is_choosing: design.choose.is_some() && mappings > 2,
            blocks: Vec::new(),
            shown: Vec::new(),
            failed: vec![(0, 0); mappings],
        }
    }

    /// Whether the next block serves to choose the best mapping.
    #[must_use]
    pub fn is_choosing(&self) -> bool {
        self.is_choosing
    }

    /// The mapping that was chosen.
    #[must_use]
    pub fn chosen(&self) -> Option<usize> {
        self.mappings.get(1).copied().filter(|_| self.mappings.len() < self.given_up.len())
    }

    /// Adds a block: the time of each mapping that ran, infinite if it failed. The first block that does not serve the choice ends
    /// it.
    pub fn add(&mut self, block: Vec<Option<f64>>, choice: bool) {
        if self.is_choosing && !choice {
            self.choose();
        }
        for ((failed, runs), time) in self.failed.iter_mut().zip(&block) {
            *failed += usize::from(time.is_some_and(f64::is_infinite));
            *runs += usize::from(time.is_some());
        }
        self.blocks.push(block);
    }

    /// The trial was stopped after the last block, and its results were shown.
    pub fn was_shown(&mut self) {
        self.shown.push(self.blocks.len());
    }

    /// A mapping is not run again.
    pub fn give_up(&mut self, mapping: usize) {
        self.given_up[mapping] = true;
    }

    /// What to do next.
    pub fn next(&mut self, time: Option<&TimeLeft>) -> Step {
        if self.is_choosing {
            match self.next_of_choice(time) {
                Some(step) => return step,
                None => self.choose(),
            }
        }
        let block = self.alive();
        if self.blocks.len() >= self.design.blocks as usize {
            Step::End(Ending::Blocks)
        } else if self.is_precise() {
            Step::End(Ending::Precise)
        } else if block.is_empty() || (self.needs_pairs() && !has_pair(&block)) {
            Step::End(Ending::NoPair)
        } else if time.is_some_and(|time| !time.fits(&block, 0)) {
            Step::End(Ending::Time)
        } else {
            Step::Block(block)
        }
    }

    /// A block of the choice, the end, or `None` if it is time to choose.
    fn next_of_choice(&self, time: Option<&TimeLeft>) -> Option<Step> {
        let block = self.alive();
        if !has_pair(&block) {
            return Some(Step::End(Ending::NoPair));
        }
        // Without pairs of its own, the best one would have no interval.
        let pairs = if self.blocks.is_empty() { 0 } else { FEWEST_PAIRS };
        let fits = time.is_none_or(|time| time.fits(&block, pairs));
        match self.blocks.len() {
            0 if !fits => Some(Step::End(Ending::Time)),
            blocks if fits && blocks < self.design.choose.unwrap_or(0) as usize => Some(Step::Block(block)),
            _ => None,
        }
    }

    /// Chooses the mapping with the best median of its ratios to the baseline. One that failed in half of its pairs is none.
    fn choose(&mut self) {
        let ratio = |mapping: &usize| {
            let pairs = self.pairs(*mapping, self.blocks.len());
            let ratio = median(pairs.iter().map(|(first, second)| second / first).collect())?;
            Some((*mapping, ratio)).filter(|_| ratio.is_finite())
        };
        let rivals = self.alive().into_iter().filter(|mapping| *mapping > 0);
        let best =
            rivals.filter_map(|mapping| ratio(&mapping)).min_by(|one, other| one.1.total_cmp(&other.1));
        self.mappings = std::iter::once(0).chain(best.map(|best| best.0)).collect();
        self.blocks.clear();
        self.shown.clear();
        self.is_choosing = false;
    }

    /// The mappings that go on.
    #[must_use]
    pub fn alive(&self) -> Vec<usize> {
        // Failures before a stop may be those of a host that is back.
        let blocks = &self.blocks[self.shown.last().copied().unwrap_or(0)..];
        let fails = |mapping: usize| {
            let times = || blocks.iter().filter_map(|block| block[mapping]);
            let (failed, runs) = (times().filter(|time| time.is_infinite()).count(), times().count());
            runs >= RUNS_BEFORE_END && failed as f64 > MOST_FAILED_BEFORE_END * runs as f64
        };
        let alive = |mapping: &usize| !self.given_up[*mapping] && !fails(*mapping);
        self.mappings.iter().copied().filter(alive).collect()
    }

    /// Pairs with the baseline in the first blocks; those of which both failed say nothing.
    fn pairs(&self, mapping: usize, blocks: usize) -> Vec<(f64, f64)> {
        let pairs = self.blocks[..blocks].iter().filter_map(|block| block[0].zip(block[mapping]));
        pairs.filter(|(first, second)| first.is_finite() || second.is_finite()).collect()
    }

    /// Whether single mappings are of no use.
    fn needs_pairs(&self) -> bool {
        self.design.precision.is_some() || self.mappings.len() < self.given_up.len()
    }

    /// Whether this is a look at all comparisons, and they are precise enough.
    fn is_precise(&self) -> bool {
        let Some(precision) = self.design.precision else { return false };
        let mut rivals = self.alive().into_iter().filter(|mapping| *mapping > 0).peekable();
        let is_precise = |mapping: usize| {
            let pairs = self.pairs(mapping, self.blocks.len());
            let shown: Vec<usize> =
                self.shown.iter().map(|blocks| self.pairs(mapping, *blocks).len()).collect();
            if !self.looks.is_look(pairs.len()) && !shown.contains(&pairs.len()) {
                return false;
            }
            let gain = gain_at_look(&pairs, &self.looks.clone().with(&shown));
            gain.is_some_and(|gain| gain.is_precise(precision))
        };
        rivals.peek().is_some() && rivals.all(is_precise) && !self.may_fail_less()
    }

    /// Whether too many runs failed so far, and further blocks without failures would make them few enough.
    fn may_fail_less(&self) -> bool {
        let more = (self.design.blocks as usize).saturating_sub(self.blocks.len());
        let counts = || self.alive().into_iter().map(|mapping| self.failed[mapping]);
        counts().any(|(failed, runs)| fails_too_often(failed, runs))
            && counts().all(|(failed, runs)| !fails_too_often(failed, runs + more))
    }
}

impl TimeLeft {
    /// Whether a block fits, and after it pairs of the first mapping and the slowest other one.
    fn fits(&self, block: &[usize], pairs: u32) -> bool {
        let time = |mapping: &usize| self.slowest[*mapping];
        let slowest = block.iter().skip(1).map(time).max_by(f64::total_cmp).unwrap_or(0.0);
        let pair = block.first().map_or(0.0, time) + slowest;
        block.iter().map(time).sum::<f64>() + f64::from(pairs) * pair <= self.seconds
    }
}

/// Whether there is the baseline, and a mapping to compare with it.
fn has_pair(mappings: &[usize]) -> bool {
    mappings.first() == Some(&0) && mappings.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESIGN: Design = Design { blocks: 24, precision: Some(0.01), choose: None };

    /// The blocks of a trial whose mappings take these times, and its end. The time of a block is the sum of its runs.
    fn blocks(design: Design, times: &[f64], limit: Option<f64>) -> (Vec<Vec<usize>>, Ending) {
        let (mut decision, mut blocks) = (Decision::new(design, times.len()), Vec::new());
        let mut left = limit;
        loop {
            let time = left.map(|seconds| TimeLeft { seconds, slowest: times.to_vec() });
            let mappings = match decision.next(time.as_ref()) {
                Step::Block(mappings) => mappings,
                Step::End(ending) => return (blocks, ending),
            };
            let time = |mapping: usize| mappings.contains(&mapping).then_some(times[mapping]);
            let choice = decision.is_choosing();
            decision.add((0..times.len()).map(time).collect(), choice);
            left = left.map(|left| left - mappings.iter().map(|mapping| times[*mapping]).sum::<f64>());
            blocks.push(mappings);
        }
    }

    #[test]
    fn a_trial_ends_at_a_planned_look() {
        assert_eq!(blocks(DESIGN, &[2.0, 1.0], None), (vec![vec![0, 1]; 12], Ending::Precise));
        let fixed = Design { blocks: 7, precision: None, choose: None };
        assert_eq!(blocks(fixed, &[2.0, 1.0, 3.0], None), (vec![vec![0, 1, 2]; 7], Ending::Blocks));
    }

    #[test]
    fn the_best_mapping_goes_on_in_fresh_blocks() {
        let design = Design { choose: Some(4), ..DESIGN };
        let expected = [vec![vec![0, 1, 2, 3]; 4], vec![vec![0, 2]; 12]].concat();
        assert_eq!(blocks(design, &[2.0, 1.5, 1.0, 3.0], None), (expected, Ending::Precise));
        assert_eq!(blocks(design, &[2.0, 1.5], None).0.len(), 12);
    }

    #[test]
    fn a_resumed_trial_goes_on_with_the_choice_that_it_had_made() {
        let design = Design { choose: Some(4), ..DESIGN };
        let mut decision = Decision::new(design, 3);
        // The choice had ended after two blocks, for want of time.
        for choice in [true, true, false] {
            decision.add(vec![Some(2.0), choice.then_some(1.5), Some(1.0)], choice);
        }
        assert_eq!((decision.is_choosing(), decision.chosen()), (false, Some(2)));
        assert_eq!(decision.next(None), Step::Block(vec![0, 2]));
    }

    #[test]
    fn looks_that_were_shown_make_later_ones_wider() {
        // Every nth pair is far off.
        let ends = |every: usize, shown: &[usize]| {
            let mut decision = Decision::new(Design { blocks: 96, ..DESIGN }, 2);
            let end = (0..96).find(|block| {
                let is_end = matches!(decision.next(None), Step::End(_));
                decision.add(vec![Some(1.0), Some(if block % every == 1 { 2.0 } else { 1.0 })], false);
                if shown.contains(block) {
                    decision.was_shown();
                }
                is_end
            });
            end.unwrap()
        };
        // Six of 24: an interval from the 7th value to the 7th last leaves them out, one from the 6th does not.
        assert_eq!((ends(4, &[]), ends(4, &[19, 20, 21, 22])), (24, 48));
        // What was precise when it was shown is precise.
        assert_eq!((ends(11, &[]), ends(11, &[10])), (12, 11));
    }

    #[test]
    fn a_failed_run_loses_and_more_runs_show_how_often_it_fails() {
        let failed = f64::INFINITY;
        let ends = |fails: fn(u32) -> bool| {
            let mut decision = Decision::new(Design { blocks: 48, ..DESIGN }, 2);
            (0..49)
                .find(|block| {
                    let is_end = matches!(decision.next(None), Step::End(_));
                    decision.add(vec![Some(1.0), Some(if fails(*block) { failed } else { 0.9 })], false);
                    is_end
                })
                .unwrap()
        };
        assert_eq!(ends(|_| false), 12);
        // One of 12 is more than 5 %, one of 24 is not; three of 48 are, whatever follows.
        assert_eq!(ends(|block| block == 3), 24);
        assert_eq!(ends(|block| block % 8 == 0 && block < 24), 24);
        // Half of the runs fail: twelve show that.
        assert_eq!(ends(|block| block % 2 == 0), 12);
        let mut decision = Decision::new(Design { choose: Some(2), ..DESIGN }, 3);
        for second in [1.0, failed] {
            decision.add(vec![Some(1.0), Some(0.5 * second), Some(2.0)], true);
        }
        assert_eq!(decision.next(None), Step::Block(vec![0, 2]));
    }

    #[test]
    fn no_block_is_started_that_does_not_fit_and_a_choice_leaves_time_for_six_pairs() {
        assert_eq!(blocks(DESIGN, &[2.0, 1.0], Some(10.0)), (vec![vec![0, 1]; 3], Ending::Time));
        assert_eq!(blocks(DESIGN, &[2.0, 1.0], Some(2.0)), (vec![], Ending::Time));
        // Blocks of the choice take 6 s, and pairs at most 5 s: after two of the former, 35 s remain for 11 of 3 s.
        let design = Design { choose: Some(4), ..DESIGN };
        let (blocks, ending) = blocks(design, &[2.0, 1.0, 3.0], Some(47.0));
        assert_eq!(
            (blocks[..2].to_vec(), blocks[2..].to_vec()),
            (vec![vec![0, 1, 2]; 2], vec![vec![0, 1]; 11])
        );
        assert_eq!(ending, Ending::Time);
    }

    #[test]
    fn a_trial_ends_if_nothing_can_be_compared() {
        let mut decision = Decision::new(DESIGN, 2);
        decision.give_up(1);
        assert_eq!(decision.next(None), Step::End(Ending::NoPair));
        let design = Design { choose: Some(1), ..DESIGN };
        let mut decision = Decision::new(design, 3);
        decision.give_up(1);
        assert_eq!(decision.next(None), Step::Block(vec![0, 2]));
        decision.add(vec![Some(1.0), None, None], true);
        assert_eq!(decision.next(None), Step::End(Ending::NoPair));
        assert_eq!(decision.chosen(), None);
        // Without a precision or a choice, a single mapping goes on.
        let mut decision = Decision::new(Design { precision: None, ..DESIGN }, 2);
        decision.give_up(1);
        assert_eq!(decision.next(None), Step::Block(vec![0]));
    }
}
