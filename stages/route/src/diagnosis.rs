//! Why there is no answer, and what would have to be different.
//!
//! First what is wrong whatever the routes ([`facts`]). Then [`remedies`], each of which is enough: links and hosts that would have to have
//! more (the paper's modified program: least largest shortage, then as few of them as possible), switches that would have to be of type 2, or
//! a rule that would have to be weaker. With every remedy comes a plan for the machine as it would be, and the remedy is told only if that
//! plan passes the check.

mod facts;
mod remedies;

use hopmap_model::{Cause, Diagnosis};

use crate::Method;
use crate::engine::StopCondition;
use crate::error::Result;
use crate::goals::{Seeker, Sought};
use crate::problem::Problem;
use crate::solver::Solver;

use facts::Changed;
use facts::Reachability;
use remedies::Inquiry;

/// Nodes of a solver's search tree for one question, so that an answer comes also where nobody set limits.
const MOST_NODES: u64 = 2000;
/// Questions that are asked about a small problem, and about others: each may take seconds.
const MOST_QUESTIONS: [u32; 2] = [200, 30];
/// Causes of one kind that are told.
const MOST_CAUSES: usize = 20;

/// What is told so far.
#[derive(Default)]
struct Findings {
    diagnosis: Diagnosis,
    /// What is wrong whatever else is done; it stands before the first remedy.
    facts: Vec<Cause>,
    remedies: u32,
}

impl Findings {
    /// Something that would help, and is enough.
    fn remedy(&mut self, causes: Vec<Cause>) {
        if !causes.is_empty() {
            let remedy = self.remedies;
            // What is told with the amount that would do is not told twice.
            self.facts.retain(|fact| {
                !causes.iter().any(|cause| (cause.part, &cause.name) == (fact.part, &fact.name))
            });
            let causes = std::mem::take(&mut self.facts).into_iter().chain(causes);
            self.diagnosis.causes.extend(causes.map(|cause| Cause { remedy, ..cause }));
            self.remedies += 1;
        }
    }
}

/// Why a problem has no answer. What cannot be found out before it has to stop, or within the own limits
/// of this, is left out; the metric `complete` is 0 then.
pub fn diagnose(
    problem: &Problem<'_>,
    solver: Option<&dyn Solver>,
    stop: &StopCondition<'_>,
) -> Result<Diagnosis> {
    let mut changed = Changed::of(problem);
    let mut facts = at_most(facts::lacking(problem, &mut changed));
    let lacks = !facts.is_empty();
    let asked = changed.problem(problem)?;
    let mut ways = Reachability::of(&asked);
    let unconnected = at_most(ways.unconnected());
    let can_be_cured = unconnected.is_empty();
    facts.extend(at_most(facts::too_weak(&asked)));
    facts.extend(unconnected);
    facts.extend(at_most(ways.alone()));
    facts.extend(at_most(ways.together()));
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

/// What would help. Where processes ask for what no host has, that is a part of all of it, and only what is short beside is looked for.
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

/// Whether nothing else is wrong with what is asked.
fn is_cured(Inquiry { asked, changed, seeker }: &Inquiry<'_>) -> Result<bool> {
    if !asked.holds_mapping() {
        return Ok(false);
    }
    Ok(match seeker.seek(asked)? {
        Sought::Plan(plan) => changed.passes(asked, &plan)?,
        _ => false,
    })
}

/// Not more than people read.
fn at_most(mut causes: Vec<Cause>) -> Vec<Cause> {
    let more = causes.len().saturating_sub(MOST_CAUSES);
    causes.truncate(MOST_CAUSES);
    if let Some(last) = causes.last_mut().filter(|_| more > 0) {
        last.words.push_str(&format!("; and {more} more like that"));
    }
    causes
}
