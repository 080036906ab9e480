//! The stages of this crate.

use hopmap_model::{
    Context, Error, InputPath, Inputs, Outcome, Outputs, Port, Stage, SystemGraph, TaskGraph,
};

use crate::geometric::geometric;
use crate::metis::read_graph;
use crate::params::{
    GeometricParams, GraphParams, PowerLawParams, QaplibParams, RandomGraphParams, StencilParams,
    TaillardEParams,
};
use crate::qaplib::{self, AssignmentProblem, Reading, Solution, check_solution};
use crate::random::{self, power_law, random_graph};
use crate::stencil::stencil;
use crate::taillard::{self, taillard_e};

/// A stage that generates a program without a machine: its parameters, kind and summary, the check of its
/// parameters, and the program.
macro_rules! program_stage {
    (
        $(#[$meta:meta])* $stage:ident($stage_params:ty), $kind:literal, $summary:literal;
        $check:path, |$params:ident, $cx:ident| $graph:expr
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $stage;

        impl Stage for $stage {
            type Params = $stage_params;
            const KIND: &'static str = $kind;
            const SUMMARY: &'static str = $summary;
            const REVISION: u32 = 1;
            const PORTS: &'static [Port] = &[Port::output::<TaskGraph>("task-graph")];

            fn check(params: &Self::Params) -> Result<(), Error> {
                $check(params)?;
                Ok(())
            }

            fn run($params: Self::Params, _: Inputs, $cx: &Context<'_>) -> Result<Outcome, Error> {
                Ok(Outcome::Done(Outputs::new().with("task-graph", $graph)))
            }
        }
    };
}

program_stage! {
    /// `instance/stencil`: a program on a grid.
    Stencil(StencilParams), "instance/stencil", "Generate a stencil program: ranks of a grid send to their neighbours";
    crate::stencil::check, |params, _cx| stencil(&params)?
}

program_stage! {
    /// `instance/geometric`: a random geometric graph.
    Geometric(GeometricParams), "instance/geometric",
    "Generate a program from a random geometric graph";
    crate::geometric::check, |params, _cx| geometric(&params)?
}

program_stage! {
    /// `instance/random`: a uniform random graph.
    RandomGraph(RandomGraphParams), "instance/random",
    "Generate a program from a uniform random graph";
    random::check, |params, _cx| random_graph(&params)?
}

program_stage! {
    /// `instance/power-law`: a random graph whose degrees follow a power law.
    PowerLaw(PowerLawParams), "instance/power-law", "Generate a program from a power-law random graph";
    random::check_power_law, |params, cx| {
        let (wanted, _) = random::check_power_law(&params)?;
        let graph = power_law(&params)?;
        let missing = wanted - graph.edges.len() as u64 / 2;
        if missing > 0 {
            cx.log(format_args!(
                "{missing} of {wanted} pairs are missing: the heaviest ranks have nearly all other ranks as neighbours"
            ));
        }
        graph
    }
}

/// `instance/qaplib`: a quadratic assignment problem from a file.
#[derive(Debug)]
pub struct Qaplib;

/// `instance/taillard-e`: a generated quadratic assignment problem like those of Taillard.
#[derive(Debug)]
pub struct TaillardE;

/// `instance/graph`: a program from a graph file.
#[derive(Debug)]
pub struct Graph;

const PORTS: &[Port] = &[Port::output::<TaskGraph>("task-graph"), Port::output::<SystemGraph>("system")];

impl Stage for Qaplib {
    type Params = QaplibParams;
    const KIND: &'static str = "instance/qaplib";
    const SUMMARY: &'static str = "Read a QAPLIB problem as a program and a machine";
    const REVISION: u32 = 1;
    const PORTS: &'static [Port] = PORTS;

    fn reads(params: &QaplibParams) -> Result<Vec<InputPath>, Error> {
        // Fixed names, so that renaming a file does not change keys.
        let solution = params.solution.iter().map(|file| InputPath::named(file.path(), "solution.sln"));
        Ok(std::iter::once(InputPath::named(params.path.path(), "instance.dat")).chain(solution).collect())
    }

    fn run(params: QaplibParams, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let problem = qaplib::read(params.path.path(), params.flow, cx)?;
        if let Some(file) = &params.solution {
            log_solution(&check_solution(file.path(), &problem, cx)?, &file.name(), cx);
        }
        Ok(finish(&problem))
    }
}

impl Stage for TaillardE {
    type Params = TaillardEParams;
    const KIND: &'static str = "instance/taillard-e";
    const SUMMARY: &'static str = "Generate a quadratic assignment problem like Taillard's taiXXeYY";
    const REVISION: u32 = 1;
    const PORTS: &'static [Port] = PORTS;

    fn check(params: &TaillardEParams) -> Result<(), Error> {
        taillard::check(params)?;
        Ok(())
    }

    fn run(params: TaillardEParams, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let look = taillard_e(&params)?;
        cx.log(format_args!("known placement: cost {}", look.problem.cost(&look.planted)));
        Ok(finish(&look.problem))
    }
}

impl Stage for Graph {
    type Params = GraphParams;
    const KIND: &'static str = "instance/graph";
    const SUMMARY: &'static str = "Read a METIS graph as a program";
    const REVISION: u32 = 1;
    const PORTS: &'static [Port] = &[Port::output::<TaskGraph>("task-graph")];

    fn reads(params: &GraphParams) -> Result<Vec<InputPath>, Error> {
        Ok(vec![InputPath::named(params.path.path(), "instance.graph")])
    }

    fn run(params: GraphParams, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = read_graph(params.path.path(), cx)?;
        Ok(Outcome::Done(Outputs::new().with("task-graph", graph)))
    }
}

fn finish(problem: &AssignmentProblem) -> Outcome {
    let outputs = Outputs::new().with("task-graph", problem.task_graph());
    Outcome::Done(outputs.with("system", problem.system_graph()))
}

/// Logs the cost of a solution.
fn log_solution(solution: &Solution, name: &str, cx: &Context<'_>) {
    let Solution { stated, cost, reading, .. } = solution;
    if cost < stated {
        cx.log(format_args!("warning: `{name}` states {stated}, but its permutation costs only {cost}"));
    }
    let meaning = match reading {
        Reading::SlotOfRank => "slots in order of ranks",
        Reading::RankOfSlot => "ranks in order of slots",
    };
    cx.log(format_args!("known placement: cost {cost} (`{name}`, {meaning})"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_parameters_are_rejected() {
        assert!(serde_json::from_str::<QaplibParams>(r#"{"path": "a", "swap": true}"#).is_err());
        assert!(serde_json::from_str::<TaillardEParams>(r#"{"groups": [3, 3]}"#).is_err());
        assert!(serde_json::from_str::<StencilParams>(r#"{"shape": "2x2", "bytes": -1}"#).is_err());
        assert!(serde_json::from_str::<GraphParams>(r#"{"path": "a", "base": 0}"#).is_err());
        assert!(serde_json::from_str::<GeometricParams>(r#"{"n": 4, "weights": "far"}"#).is_err());
        assert!(serde_json::from_str::<RandomGraphParams>(r#"{"n": 4, "bytes": [1, 2, 3]}"#).is_err());
        assert!(serde_json::from_str::<PowerLawParams>(r#"{"degree": 4}"#).is_err());
    }

    /// Otherwise stored results would be recomputed without need.
    #[test]
    fn the_default_neighbours_are_not_in_the_key() {
        let key = |text: &str| {
            serde_json::to_value(serde_json::from_str::<StencilParams>(text).unwrap()).unwrap().to_string()
        };
        assert_eq!(key(r#"{"shape": "2x2"}"#), r#"{"bytes":1024,"periodic":false,"shape":"2x2"}"#);
        assert!(key(r#"{"shape": "2x2", "neighbours": "box"}"#).contains(r#""neighbours":"box""#));
    }

    #[test]
    fn the_solution_is_one_of_the_input_files() {
        let reads = |text: &str| {
            let params: QaplibParams = serde_json::from_str(text).unwrap();
            Qaplib::reads(&params).unwrap().iter().map(|file| file.name().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(reads(r#"{"path": "a"}"#), ["instance.dat"]);
        assert_eq!(reads(r#"{"path": "a", "solution": "b"}"#), ["instance.dat", "solution.sln"]);
    }
}
