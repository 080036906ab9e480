//! Pictures of artifacts as SVG.
//!
//! Every view is a function from artifacts to the text of one SVG: valid XML, without scripts, the same bytes for the
//! same input, and small enough for a report (well under 1 MB for 65,536 ranks or 10,000 hosts, since large
//! inputs are binned or drawn in groups).
//!
//! A view brings its own colours for light and dark surroundings; those of text and lines are those of the pages. Colours
//! are distinguishable with colour vision deficiency: a single ramp from pale to dark for amounts, and the palette of
//! Okabe and Ito (2008) for kinds.

mod chart;
mod comparison;
mod convergence;
mod correlation;
mod dag;
mod deltas;
mod drift;
mod gantt;
mod groups;
mod human;
mod latencies;
mod layered;
mod levels;
mod matrix;
mod palette;
mod pareto;
mod rank_times;
mod routes;
mod run_time_parts;
mod run_times;
mod svg;
mod timeline;
mod topology;

pub use comparison::comparison;
pub use convergence::{
    Band, IslandSearch, SearchCurve, bands, convergence, first_evaluations, makespan_convergence,
    makespan_searches, searches,
};
pub use correlation::correlation;
pub use dag::{DagNode, NodeState, dag};
pub use deltas::{deltas, stored};
pub use drift::{DriftPoint, drift};
pub use gantt::gantt;
pub use groups::groups;
pub use human::seconds;
pub use latencies::latencies;
pub use levels::{found_levels, levels};
pub use matrix::{RankOrder, SmallMatrix, matrices, matrix, small_matrices};
pub use palette::Palette;
pub use pareto::{Cloud, pareto};
pub use rank_times::rank_times;
pub use routes::{Routed, route_loads, routes};
pub use run_time_parts::run_time_parts;
pub use run_times::run_times;
pub use svg::escape;
pub use timeline::{Slice, timeline};
pub use topology::{scaled_topology, topology};
