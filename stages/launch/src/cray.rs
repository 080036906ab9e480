//! Rank order of HPE Cray MPICH.

use std::fmt::Write;

use hopmap_model::{HostSlots, LaunchFile, Mapping};

use crate::LaunchError;
use crate::hosts::{heading, hosts_of_ranks};

/// `MPICH_RANK_ORDER` of HPE Cray MPICH: the ranks in slot order, one host per line. It is the inverse of a mapping.
///
/// Slurm starts the processes block by block, and the library gives the i-th of them the i-th rank of the file. So the
/// hosts in use are the first ones of the mapping and have equally many ranks, each from its first slot on, and the
/// nodes of the job stand in the order of the mapping. Anything else is an error: with a remainder Slurm 22.05 fills
/// hosts in one way when it runs inside an allocation and in another when it makes one.
///
/// Format: `intro_mpi(3)` of HPE Cray MPI, `MPICH_RANK_REORDER_METHOD` 3. The library was not at hand; where Slurm puts
/// the processes was tried.
pub fn cray_rank_order(mapping: &Mapping, digest: &str) -> Result<LaunchFile, LaunchError> {
    hosts_of_ranks(mapping)?;
    let rank_at = ranks_by_slot(mapping);
    let ranks_on: Vec<Vec<u32>> =
        mapping.hosts.iter().map(|host| ranks_on(host, &rank_at)).collect::<Result<_, _>>()?;
    let used = ranks_on.iter().filter(|ranks| !ranks.is_empty()).count();
    let share = equal_share(mapping, &ranks_on[..used])?;

    let mut text = heading(digest);
    for ranks in &ranks_on[..used] {
        let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", ranks.join(","));
    }
    Ok(LaunchFile {
        name: "MPICH_RANK_ORDER".into(),
        text,
        command: format!(
            "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE={{file}} \
             srun -m block -N {used} -n {} --ntasks-per-node={share} {{program}}",
            mapping.ranks.len()
        ),
    })
}

fn ranks_by_slot(mapping: &Mapping) -> Vec<Option<u32>> {
    let mut rank_at = vec![None; mapping.slot_count() as usize];
    for (rank, placement) in mapping.ranks.iter().enumerate() {
        rank_at[placement.slot as usize] = Some(rank as u32);
    }
    rank_at
}

/// The ranks on a host in slot order; an error if a free slot lies before one of them.
fn ranks_on(host: &HostSlots, rank_at: &[Option<u32>]) -> Result<Vec<u32>, LaunchError> {
    let slots = &rank_at[host.first_slot as usize..(host.first_slot + host.slots) as usize];
    let ranks: Vec<u32> = slots.iter().map_while(|&rank| rank).collect();
    if slots[ranks.len()..].iter().any(Option::is_some) {
        return Err(LaunchError::Gap { host: host.host.clone(), slot: ranks.len() as u32 });
    }
    Ok(ranks)
}

/// The number of ranks on every host; an error if it is not the same on all, which are the first ones of the mapping.
fn equal_share(mapping: &Mapping, ranks_on: &[Vec<u32>]) -> Result<usize, LaunchError> {
    let share = mapping.ranks.len().div_ceil(ranks_on.len());
    match ranks_on.iter().position(|ranks| ranks.len() != share) {
        None => Ok(share),
        Some(index) => Err(LaunchError::Uneven {
            host: mapping.hosts[index].host.clone(),
            ranks: ranks_on[index].len(),
            share,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::tests::{lines, mapping, mappings};
    use proptest::prelude::*;

    fn refused(taken: &[u32]) -> String {
        cray_rank_order(&mapping(&["a", "b", "c"], 2, taken), "d").unwrap_err().to_string()
    }

    #[test]
    fn ranks_stand_in_slot_order() {
        let file = cray_rank_order(&mapping(&["a", "b"], 2, &[3, 0, 2, 1]), "d1").unwrap();
        assert_eq!(file.text, "# hopmap mapping d1\n1,3\n2,0\n");
        assert_eq!(file.name, "MPICH_RANK_ORDER");
        assert_eq!(
            file.command,
            "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE={file} srun -m block -N 2 -n 4 \
             --ntasks-per-node=2 {program}"
        );
    }

    #[test]
    fn last_slots_and_last_hosts_may_be_free() {
        let text = |taken: &[u32]| cray_rank_order(&mapping(&["a", "b", "c"], 2, taken), "d").unwrap().text;
        assert_eq!(text(&[4, 2, 0]), "# hopmap mapping d\n2\n1\n0\n");
        assert_eq!(text(&[1, 0]), "# hopmap mapping d\n1,0\n");
    }

    #[test]
    fn gaps_and_uneven_hosts_are_refused() {
        assert_eq!(refused(&[0, 1, 3]), "slot 0 of `b` is free, but slots behind it are not");
        assert_eq!(
            refused(&[0, 2, 3]),
            "the mapping puts 1 ranks on `a`, but every host in use has to have 2"
        );
        assert_eq!(
            refused(&[0, 1, 2]),
            "the mapping puts 1 ranks on `b`, but every host in use has to have 2"
        );
        assert_eq!(
            refused(&[0, 1, 4, 5]),
            "the mapping puts 0 ranks on `b`, but every host in use has to have 2"
        );
    }

    proptest! {
        #[test]
        fn the_i_th_rank_of_the_file_is_on_the_i_th_slot_in_use(mapping in mappings()) {
            let Ok(file) = cray_rank_order(&mapping, "d") else { return Ok(()) };
            let order = lines(&file.text, "d").join(",");
            let order: Vec<usize> = order.split(',').map(|rank| rank.parse().unwrap()).collect();
            let mut slots = mapping.slots();
            slots.sort_unstable();
            let read: Vec<u32> = order.iter().map(|&rank| mapping.ranks[rank].slot).collect();
            prop_assert_eq!(read, slots);
        }

        #[test]
        fn a_full_machine_is_always_accepted(taken in Just((0..12).collect::<Vec<u32>>()).prop_shuffle()) {
            prop_assert!(cray_rank_order(&mapping(&["a", "b", "c"], 4, &taken), "d").is_ok());
        }
    }
}
