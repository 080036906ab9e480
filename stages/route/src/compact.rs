//! A smaller program than that of the paper: hosts are parts of their switches.
//!
//! Where every host has one cable, a route is its arcs between switches and two hops. All that a process sends to another is one
//! commodity. For destinations that are alone on their hosts the entries of switches of type 1 form a tree of arcs, so that nothing has
//! to be said about pairs of hosts and processes; where several processes fit on a host, entries are those for hosts, as in (16) and (17).
//! What the longest route weighs is not left to the solver: programs with routes of at most so many hops come one after the other.
//!
//! Machines with other hosts go to the program of the paper.

mod cuts;
mod model;
mod shape;
mod steps;
mod tables;

use hopmap_model::Error;

use crate::engine::{Engine, Found, StopCondition};
use crate::paper::Paper;
use crate::problem::{Plan, Problem};
use crate::solver::Solver;

/// Constraints of a program that is built. What has more takes gigabytes, and no solver comes to an end.
const MOST_CONSTRAINTS: usize = 2_000_000;

/// The compact program, solved by a solver of linear programs.
#[derive(Clone, Copy)]
pub struct Compact<'a> {
    /// The solver.
    pub solver: &'a dyn Solver,
}

impl Engine for Compact<'_> {
    fn solve(
        &self,
        problem: &Problem<'_>,
        best: Option<&Plan>,
        stop: &StopCondition<'_>,
    ) -> Result<Found, Error> {
        match shape::Shape::new(problem) {
            Some(shape) if shape.size() <= MOST_CONSTRAINTS => {
                steps::Steps::new(&shape, self.solver, best, stop).run()
            }
            None if size(problem) <= MOST_CONSTRAINTS => {
                Paper { solver: self.solver }.solve(problem, best, stop)
            }
            _ => Ok(Found::nothing()),
        }
    }
}

/// Constraints of the program of the paper, roughly.
fn size(problem: &Problem<'_>) -> usize {
    let hosts = if problem.mapped.is_some() { 1 } else { problem.hosts.len() };
    problem.flows.len().saturating_mul(problem.system.links.len()).saturating_mul(hosts)
}
