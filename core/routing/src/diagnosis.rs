//! Infeasibility diagnosis: why a problem has no solution, and which constraints to relax.
//!
//! First come violations that do not depend on routes ([`facts`]). Then come [`remedies`], each of which suffices: more capacity
//! of links and hosts (the paper's modified program: minimise the largest shortage, then the number of affected components),
//! switches of type 2, or a weaker rule. Each remedy has a plan for the modified machine and is reported only if that plan passes
//! the checker.

mod facts;
mod remedies;

use hopmap_model::{Cause, Diagnosis};

use crate::engine::StopCondition;
use crate::error::Result;
use crate::goals::{Seeker, Sought};
use crate::params::Method;
use crate::problem::Problem;
use crate::solver::Solver;

use facts::{Changed, Reachability};
use remedies::Inquiry;

/// Node limit of a solver's search tree per query, so that a diagnosis without user limits terminates.
const MOST_NODES: u64 = 2000;
/// Query limits for small and for other problems: each query may take seconds.
const MOST_QUESTIONS: [u32; 2] = [200, 30];
/// Maximum number of reported causes of one kind.
const MOST_CAUSES: usize = 1000;

/// The findings so far.
#[derive(Default)]
struct Findings {
    diagnosis: Diagnosis,
    /// Violations that every remedy has to include; they precede the first remedy.
    facts: Vec<Cause>,
    remedies: u32,
}

impl Findings {
    /// Records a sufficient remedy.
    fn remedy(&mut self, causes: Vec<Cause>) {
        if !causes.is_empty() {
            let remedy = self.remedies;
            // A fact about a component is dropped if the remedy states the required amount for it.
            self.facts.retain(|fact| {
                !causes.iter().any(|cause| (cause.part, &cause.name) == (fact.part, &fact.name))
            });
            let causes = std::mem::take(&mut self.facts).into_iter().chain(causes);
            self.diagnosis.causes.extend(causes.map(|cause| Cause { remedy, ..cause }));
            self.remedies += 1;
        }
    }
}

/// Diagnoses an infeasible problem. The diagnosis is incomplete (metric `complete` = 0) if the stop condition or its own limits
/// end it early.
pub fn diagnose(
    problem: &Problem<'_>,
    solver: Option<&dyn Solver>,
    stop: &StopCondition<'_>,
) -> Result<Diagnosis> {
    let mut changed = Changed::of(problem);
    let mut facts = at_most(facts::unmet_demands(problem, &mut changed));
    let lacks = !facts.is_empty();
    let asked = changed.problem(problem)?;
    let mut reachability = Reachability::of(&asked);
    let unconnected = at_most(reachability.unconnected());
    let can_be_cured = unconnected.is_empty();
    facts.extend(at_most(facts::too_weak(&asked)));
    facts.extend(unconnected);
    facts.extend(at_most(reachability.infeasible_streams()));
    facts.extend(at_most(reachability.bottlenecks()));
    let seeker = Seeker {
        most_nodes: Some(MOST_NODES),
        most_questions: MOST_QUESTIONS[usize::from(!remedies::is_small(&asked))],
        ..Seeker::new(Method::Auto, solver, stop)
    };
    let mut findings = Findings { facts, ..Findings::default() };
    if can_be_cured && !seeker.is_over() {
        let inquiry = Inquiry { asked: &asked, changed: &changed, seeker: &seeker };
        remedies(&inquiry, lacks, &mut findings)?;
    }
    let Findings { mut diagnosis, facts, remedies } = findings;
    diagnosis.causes.extend(facts);
    let complete = f64::from(u8::from(!seeker.is_over()));
    diagnosis
        .metrics
        .extend([("remedies".to_owned(), f64::from(remedies)), ("complete".to_owned(), complete)]);
    Ok(diagnosis)
}

/// Searches for remedies. If processes demand what no host has, every remedy includes that, and only additional shortages are
/// sought.
fn remedies(inquiry: &Inquiry<'_>, lacks: bool, findings: &mut Findings) -> Result<()> {
    let asked = inquiry.asked;
    if lacks && is_cured(inquiry)? {
        findings.remedies += 1;
        return Ok(());
    }
    let shortage = inquiry.of_links_and_hosts()?;
    if let Some(shortage) = &shortage {
        findings.remedy(shortage.causes(asked));
        let metrics = shortage.metrics().into_iter().filter(|(_, value)| value.is_finite());
        findings.diagnosis.metrics.extend(metrics.map(|(name, value)| (name.to_owned(), value)));
    }
    if lacks {
        return Ok(());
    }
    let is_of_links = shortage.as_ref().is_some_and(|shortage| !shortage.links.is_empty());
    if is_of_links
        && asked.mapped.is_none()
        && let Some(shortage) = inquiry.of_hosts()?
    {
        findings.remedy(shortage.causes(asked));
    }
    findings.remedy(inquiry.of_type_two()?);
    inquiry.rules()?.into_iter().for_each(|cause| findings.remedy(vec![cause]));
    if findings.remedies == 0 {
        findings.remedy(inquiry.all()?);
    }
    Ok(())
}

/// Whether the problem is feasible once the reported demands are dropped.
fn is_cured(Inquiry { asked, changed, seeker }: &Inquiry<'_>) -> Result<bool> {
    if !asked.holds_mapping() {
        return Ok(false);
    }
    Ok(match seeker.seek(asked)? {
        Sought::Plan(plan) => changed.passes(asked, &plan)?,
        _ => false,
    })
}

/// Truncates a list of causes to a readable length.
fn at_most(mut causes: Vec<Cause>) -> Vec<Cause> {
    let more = causes.len().saturating_sub(MOST_CAUSES);
    causes.truncate(MOST_CAUSES);
    if let Some(last) = causes.last_mut().filter(|_| more > 0) {
        last.words.push_str(&format!("; and {more} similar causes"));
    }
    causes
}

/// Causes of one kind that all have a line; of more only the worst has one.
const MOST_LINES: usize = 3;

/// The causes in words, one remedy after the other.
#[must_use]
pub fn summary(diagnosis: &Diagnosis) -> Vec<String> {
    let mut lines = Vec::new();
    let mut remedy = 0;
    let kind = |cause: &Cause| (cause.remedy, cause.part, cause.needed.is_some());
    for causes in diagnosis.causes.chunk_by(|a, b| kind(a) == kind(b)) {
        let excess = |cause: &Cause| cause.needed.unwrap_or_default() / cause.there.unwrap_or(1.0);
        let mut shown: Vec<&Cause> = causes.iter().collect();
        shown.sort_by(|a, b| excess(b).total_cmp(&excess(a)));
        let mut more = String::new();
        if shown.len() > MOST_LINES {
            more = format!(", and {} similar causes: see the report or the `diagnosis`", shown.len() - 1);
            shown.truncate(1);
        }
        for cause in shown {
            let joined = match (cause.remedy, cause.remedy == remedy) {
                (0, _) => "",
                (_, true) => "and: ",
                (_, false) => "or: ",
            };
            lines.push(format!("{joined}{}{more}", cause.words));
            remedy = cause.remedy;
        }
    }
    if diagnosis.metrics.get("complete") == Some(&0.0) {
        lines.push("other or smaller remedies may exist: the search for them was cut short".to_owned());
    } else if diagnosis.metrics.get("remedies") == Some(&0.0) {
        lines.push("no sufficient remedy was found".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::Part;

    #[test]
    fn many_streams_without_bandwidth_are_one_line() {
        let cause = |remedy, part, needed: f64| Cause {
            remedy,
            part,
            name: needed.to_string(),
            there: Some(1.0),
            needed: Some(needed),
            words: format!("{part:?} needs {needed}"),
        };
        let streams = [2.0, 9.0, 3.0, 4.0].map(|needed| cause(0, Part::Stream, needed));
        let links = [2.0, 9.0].map(|needed| cause(0, Part::Link, needed));
        let other = cause(1, Part::Host, 5.0);
        let causes = streams.into_iter().chain(links).chain([other]).collect();
        let diagnosis = Diagnosis { causes, ..Diagnosis::default() };
        assert_eq!(
            summary(&diagnosis),
            [
                "Stream needs 9, and 3 similar causes: see the report or the `diagnosis`",
                "Link needs 9",
                "Link needs 2",
                "or: Host needs 5",
            ]
        );
    }
}
