//! Why there is no answer, and what would have to be different.
//!
//! First what is wrong whatever the routes ([`facts`]). Then remedies, each of which is enough: links and hosts that would have to
//! have more ([`shortage`]; the paper's modified program: least largest shortage, then as few of them as possible), switches that would
//! have to be of type 2 ([`relaxed`]), or a rule that would have to be weaker ([`relaxed`]). With every remedy comes a plan for the machine
//! as it would be, and the remedy is told only if that plan passes the check.

mod facts;
mod relaxed;
mod remedy;
mod shortage;

use hopmap_model::{Cause, Diagnosis, Error};

use crate::Method;
use crate::engine::StopCondition;
use crate::problem::Problem;
use crate::seek::{Seeker, Sought};
use crate::solver::Solver;

use facts::Reachability;
use remedy::Changed;

/// Nodes of a solver's search tree for one question, so that an answer comes also where nobody set limits.
const MOST_NODES: u64 = 2000;
/// Questions that are asked about a small problem, and about others: each may take seconds.
const MOST_QUESTIONS: [u32; 2] = [200, 30];
/// Causes of one kind that are told.
const MOST_CAUSES: usize = 20;

/// What is told so far.
#[derive(Default)]
struct Told {
    diagnosis: Diagnosis,
    /// What is wrong whatever else is done; it stands before the first remedy.
    facts: Vec<Cause>,
    remedies: u32,
}

impl Told {
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

    fn metric(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.diagnosis.metrics.insert(name.to_owned(), value);
        }
    }
}

/// Why a problem has no answer. What cannot be found out before it has to stop, or within the own limits
/// of this, is left out; the metric `complete` is 0 then.
pub fn diagnose(
    problem: &Problem<'_>,
    solver: Option<&dyn Solver>,
    stop: &StopCondition<'_>,
) -> Result<Diagnosis, Error> {
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
        most_questions: MOST_QUESTIONS[usize::from(!shortage::is_small(&asked))],
        ..Seeker::new(Method::Auto, solver, stop)
    };
    let mut told = Told { facts, ..Told::default() };
    if can_be_cured && !seeker.is_over() {
        remedies(&asked, &changed, &seeker, lacks, &mut told)?;
    }
    let Told { mut diagnosis, facts, remedies } = told;
    diagnosis.causes.extend(facts);
    let complete = !seeker.is_over();
    for (name, value) in [("remedies", f64::from(remedies)), ("complete", f64::from(u8::from(complete)))] {
        diagnosis.metrics.insert(name.to_owned(), value);
    }
    Ok(diagnosis)
}

/// What would help. Where processes ask for what no host has, that is a part of all of it, and only what is short beside is looked for.
fn remedies(
    asked: &Problem<'_>,
    changed: &Changed,
    seeker: &Seeker<'_>,
    lacks: bool,
    told: &mut Told,
) -> Result<(), Error> {
    if lacks && is_cured(asked, changed, seeker)? {
        told.remedies += 1;
        return Ok(());
    }
    let shortage = shortage::of_links_and_hosts(asked, changed, seeker)?;
    if let Some(shortage) = &shortage {
        told.remedy(shortage.causes(asked));
        for (name, value) in shortage.metrics() {
            told.metric(name, value);
        }
    }
    if lacks {
        return Ok(());
    }
    let is_of_links = shortage.as_ref().is_some_and(|shortage| !shortage.links.is_empty());
    if is_of_links
        && asked.mapped.is_none()
        && let Some(shortage) = shortage::of_hosts(asked, changed, seeker)?
    {
        told.remedy(shortage.causes(asked));
    }
    told.remedy(relaxed::of_type_two(asked, changed, seeker)?);
    for cause in relaxed::rules(asked, changed, seeker)? {
        told.remedy(vec![cause]);
    }
    if told.remedies == 0 {
        told.remedy(relaxed::all(asked, changed, seeker)?);
    }
    Ok(())
}

/// Whether nothing else is wrong with what is asked.
fn is_cured(asked: &Problem<'_>, changed: &Changed, seeker: &Seeker<'_>) -> Result<bool, Error> {
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
