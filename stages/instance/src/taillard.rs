//! Generated instances like the structured ones of Taillard, taiXXeYY.
//!
//! The construction follows the published instances tai27e01 to tai729e01, measured entry by entry.
//! Facilities form groups of subgroups; half of every subgroup has one colour, half the other. Between two
//! groups matrix A has one large value where the colours differ, and matrix B the same value where they
//! agree; likewise, with smaller values, between two subgroups of a group. Inside a subgroup every value is
//! from 1 to 10. Zeros are occasionally replaced by small values, more often if there are few groups. Both
//! matrices are symmetric with zero diagonals, and their rows are in random order.
//!
//! So the best placements are those in which no large flow meets a large cost: half-groups are assigned to
//! half-groups as a unit, and exchanges of single facilities do not lead from one such placement to another.
//! See Drezner, Hahn and Taillard, "Recent advances for the quadratic assignment problem with special
//! emphasis on instances that are difficult for meta-heuristic methods", Annals of Operations Research 139,
//! 2005; the published instances differ from the output of its generator.

use hopmap_model::seed_stream;
use hopmap_random::{Draw, Pcg64, SeedableRng};

use crate::error::{InstanceError, MAX_SIZE};
use crate::params::TaillardEParams;
use crate::qaplib::AssignmentProblem;

/// Values between groups: ten consecutive ones from here …
const LEAST_OUTER: u32 = 22;
/// … or shifted by at most this.
const OUTER_SHIFT: u32 = 10;
/// Maximum difference of the values between groups.
const OUTER_RANGE: u32 = 9;
/// Values between subgroups of a group, always below those between groups.
const INNER: [u32; 2] = [11, 25];
/// Values inside a subgroup.
const INNERMOST: [u32; 2] = [1, 10];
/// Of the zeros between k groups, one in 8 k is larger, one in 12 of these is larger by one more, and so on.
const OUTER_NOISE: [u32; 2] = [8, 12];
/// The same between the subgroups of a group.
const INNER_NOISE: [u32; 2] = [2, 2];

/// A generated instance.
#[derive(Debug, Clone, PartialEq)]
pub struct LookAlike {
    /// The instance.
    pub problem: AssignmentProblem,
    /// A placement in which no large flow meets a large cost: every facility of A on its counterpart in B.
    pub planted: Vec<usize>,
}

/// Generates an instance.
pub fn taillard_e(params: &TaillardEParams) -> Result<LookAlike, InstanceError> {
    let mut draws = Pcg64::from_seed(seed_stream("instance/taillard-e", params.seed, 0));
    let structure = Structure::new(params, &mut draws)?;
    let size = structure.colours.len();
    let orders = [(); 2].map(|()| {
        let mut order: Vec<usize> = (0..size).collect();
        draws.shuffle_unbiased(&mut order);
        order
    });
    let [flows, costs] =
        [true, false].map(|differ| structure.matrix(differ, &orders[usize::from(!differ)], &mut draws));
    let mut planted = vec![0; size];
    for (&rank, &slot) in orders[0].iter().zip(&orders[1]) {
        planted[rank] = slot;
    }
    let flows = flows.into_iter().map(u64::from).collect();
    let costs = costs.into_iter().map(f64::from).collect();
    Ok(LookAlike { problem: AssignmentProblem { size, flows, costs }, planted })
}

/// Checks the group sizes and returns the number of facilities.
pub(crate) fn check(params: &TaillardEParams) -> Result<usize, InstanceError> {
    let size = params.groups.iter().map(|&count| u128::from(count)).product();
    match size {
        2.. if size <= u128::from(MAX_SIZE) => Ok(size as usize),
        _ => Err(InstanceError::new(
            format!("groups {:?} give {size} facilities", params.groups),
            format!(
                "expected three positive numbers, outermost first, with a product from 2 to {MAX_SIZE}: [3, 3, 3] is \
                 like tai27e, [9, 9, 9] like tai729e"
            ),
        )),
    }
}

/// Structure shared by both matrices.
struct Structure {
    subgroups: usize,
    /// Facilities per subgroup.
    facilities: usize,
    colours: Vec<bool>,
    /// Values between groups.
    outer: Symmetric,
    /// Values between the subgroups of every group.
    inner: Vec<Symmetric>,
}

impl Structure {
    fn new(params: &TaillardEParams, draws: &mut Pcg64) -> Result<Self, InstanceError> {
        check(params)?;
        let [groups, subgroups, facilities] = params.groups.map(|count| count as usize);
        let least = LEAST_OUTER + draws.between(0, OUTER_SHIFT);
        let inner = [INNER[0], INNER[1].min(least - 1)];
        Ok(Self {
            subgroups,
            facilities,
            colours: (0..groups).flat_map(|group| colours(group, subgroups, facilities, draws)).collect(),
            outer: Symmetric::new(groups, [least, least + OUTER_RANGE], draws),
            inner: (0..groups).map(|_| Symmetric::new(subgroups, inner, draws)).collect(),
        })
    }

    /// A matrix with large values where colours differ, or where they agree; facility `i` is row and column
    /// `order[i]`.
    fn matrix(&self, differ: bool, order: &[usize], draws: &mut Pcg64) -> Vec<u32> {
        let size = self.colours.len();
        let mut values = vec![0; size * size];
        for a in 0..size {
            for b in 0..a {
                let value = self.value(a, b, differ, draws);
                values[order[a] * size + order[b]] = value;
                values[order[b] * size + order[a]] = value;
            }
        }
        values
    }

    fn value(&self, a: usize, b: usize, differ: bool, draws: &mut Pcg64) -> u32 {
        let is_large = (self.colours[a] != self.colours[b]) == differ;
        let [subgroup_a, subgroup_b] = [a, b].map(|facility| facility / self.facilities);
        let [group_a, group_b] = [subgroup_a, subgroup_b].map(|subgroup| subgroup / self.subgroups);
        if group_a != group_b {
            let outer = &self.outer;
            if is_large { outer.get(group_a, group_b) } else { outer.noise(OUTER_NOISE, draws) }
        } else if subgroup_a != subgroup_b {
            let inner = &self.inner[group_a];
            let [a, b] = [subgroup_a, subgroup_b].map(|subgroup| subgroup % self.subgroups);
            if is_large { inner.get(a, b) } else { inner.noise(INNER_NOISE, draws) }
        } else {
            draws.between(INNERMOST[0], INNERMOST[1])
        }
    }
}

/// Colours of the facilities of a group: equal numbers, up to one, in every subgroup and in the group.
fn colours(group: usize, subgroups: usize, facilities: usize, draws: &mut Pcg64) -> Vec<bool> {
    let mut more: Vec<bool> = (0..subgroups).map(|subgroup| (group + subgroup).is_multiple_of(2)).collect();
    draws.shuffle_unbiased(&mut more);
    let of_subgroup = |more: bool| (0..facilities).map(move |facility| facility.is_multiple_of(2) == more);
    more.into_iter().flat_map(of_subgroup).collect()
}

/// A value for every pair.
struct Symmetric {
    count: usize,
    values: Vec<u32>,
}

impl Symmetric {
    fn new(count: usize, [least, most]: [u32; 2], draws: &mut Pcg64) -> Self {
        let mut values = vec![0; count * count];
        for a in 0..count {
            for b in 0..a {
                let value = draws.between(least, most);
                values[a * count + b] = value;
                values[b * count + a] = value;
            }
        }
        Self { count, values }
    }

    fn get(&self, a: usize, b: usize) -> u32 {
        self.values[a * self.count + b]
    }

    /// Replacement of a zero: mostly zero.
    fn noise(&self, [first, next]: [u32; 2], draws: &mut Pcg64) -> u32 {
        if draws.below_unbiased(first * self.count as u32) > 0 {
            return 0;
        }
        let mut value = INNERMOST[0];
        while value < INNERMOST[1] && draws.below_unbiased(next) == 0 {
            value += 1;
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn look_alike(groups: [u32; 3], seed: u64) -> LookAlike {
        taillard_e(&TaillardEParams { groups, seed }).unwrap()
    }

    fn symmetric(look: &LookAlike) -> bool {
        let n = look.problem.size;
        let flow = |a: usize, b: usize| look.problem.flows[a * n + b] as f64;
        let cost = |a: usize, b: usize| look.problem.costs[a * n + b];
        let same = |f: &dyn Fn(usize, usize) -> f64| {
            (0..n).all(|a| f(a, a) < 0.5 && (0..n).all(|b| (f(a, b) - f(b, a)).abs() < 0.5))
        };
        same(&flow) && same(&cost)
    }

    #[test]
    fn the_instance_of_a_seed_never_changes() {
        let look = look_alike([2, 2, 2], 1);
        assert_eq!(look.problem.flows[..16], [0, 32, 20, 0, 0, 32, 1, 0, 32, 0, 0, 18, 32, 0, 0, 9]);
        assert_eq!(look_alike([3, 3, 3], 5), look_alike([3, 3, 3], 5));
        assert_ne!(look_alike([3, 3, 3], 5), look_alike([3, 3, 3], 6));
    }

    #[test]
    fn no_large_flow_meets_a_large_cost_in_the_planted_placement() {
        for groups in [[3, 3, 3], [3, 3, 5], [5, 3, 5], [5, 5, 7]] {
            let LookAlike { problem, planted } = look_alike(groups, 3);
            let n = problem.size;
            for a in 0..n {
                for b in 0..n {
                    let (flow, cost) = (problem.flows[a * n + b], problem.costs[planted[a] * n + planted[b]]);
                    assert!(flow <= 10 || cost <= 10.0, "{flow} meets {cost}");
                }
            }
            let linear: Vec<usize> = (0..n).collect();
            assert!(problem.cost(&planted) * 5.0 < problem.cost(&linear));
        }
    }

    /// Rows with large values in the same positions belong to one half-group.
    fn half_groups(values: &[u32], size: usize, least: u32) -> Vec<usize> {
        let mut halves = std::collections::BTreeMap::new();
        for row in values.chunks(size) {
            let large: Vec<bool> = row.iter().map(|value| *value >= least).collect();
            *halves.entry(large).or_insert(0) += 1;
        }
        let mut sizes: Vec<usize> = halves.into_values().collect();
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn half_groups_have_the_sizes_of_the_published_instances() {
        // Measured on tai27e01, tai125e01 and tai343e01.
        for (groups, small, large) in [([3, 3, 3], 4, 5), ([5, 5, 5], 12, 13), ([7, 7, 7], 24, 25)] {
            let problem = look_alike(groups, 2).problem;
            let values: [Vec<u32>; 2] = [
                problem.flows.iter().map(|&flow| flow as u32).collect(),
                problem.costs.iter().map(|&cost| cost as u32).collect(),
            ];
            for values in &values {
                let most = values.iter().copied().max().unwrap();
                let least = (most - OUTER_RANGE).max(LEAST_OUTER);
                let count = groups[0] as usize;
                let expected = [vec![small; count], vec![large; count]].concat();
                // The smallest value between groups is at least ten below the largest, and values between
                // subgroups are below it.
                let found = (least..=most).map(|least| half_groups(values, problem.size, least));
                assert!(found.into_iter().any(|sizes| sizes == expected), "{groups:?}");
            }
        }
    }

    #[test]
    fn values_have_the_shares_of_the_published_instances() {
        // Percentages of values above 10 and of zeros in matrices A and B of tai27e01, tai125e01, tai343e01
        // and tai729e01.
        for (groups, large, zero) in [
            ([3, 3, 3], [46.72, 45.58], [43.30, 40.74]),
            ([5, 5, 5], [48.46, 48.31], [46.19, 45.92]),
            ([7, 7, 7], [49.14, 49.10], [47.83, 47.72]),
            ([9, 9, 9], [49.46, 49.44], [48.58, 48.51]),
        ] {
            let problem = look_alike(groups, 4).problem;
            let size = problem.size as f64;
            let flows = problem.flows.iter().map(|&flow| flow as f64).collect();
            for (matrix, values) in [flows, problem.costs].iter().enumerate() {
                let share = |count: f64| 100.0 * count / (size * (size - 1.0));
                let count =
                    |counts: fn(f64) -> bool| values.iter().filter(|value| counts(**value)).count() as f64;
                // The number of large values follows from the sizes of groups and colours; the others are
                // random.
                assert!((share(count(|value| value > 10.0)) - large[matrix]).abs() < 0.006, "{groups:?}");
                assert!((share(count(|value| value < 0.5) - size) - zero[matrix]).abs() < 4.0, "{groups:?}");
                assert!(values.iter().all(|value| *value <= 41.0));
            }
        }
    }

    #[test]
    fn invalid_groups_are_rejected() {
        let message = |groups| taillard_e(&TaillardEParams { groups, seed: 1 }).unwrap_err().to_string();
        assert_eq!(message([0, 3, 3]), "groups [0, 3, 3] give 0 facilities");
        assert_eq!(message([1, 1, 1]), "groups [1, 1, 1] give 1 facilities");
        assert_eq!(message([17, 16, 16]), "groups [17, 16, 16] give 4352 facilities");
        assert_eq!(
            message([u32::MAX; 3]),
            "groups [4294967295, 4294967295, 4294967295] give 79228162458924105385300197375 facilities"
        );
    }

    proptest! {
        #[test]
        fn every_instance_is_symmetric_and_its_planted_placement_a_permutation(
            groups in prop::array::uniform3(1u32..6).prop_filter("two facilities", |g| g.iter().product::<u32>() > 1),
            seed in any::<u64>(),
        ) {
            let look = look_alike(groups, seed);
            prop_assert!(symmetric(&look));
            let mut slots = look.planted.clone();
            slots.sort_unstable();
            prop_assert_eq!(slots, (0..look.problem.size).collect::<Vec<_>>());
        }
    }
}
