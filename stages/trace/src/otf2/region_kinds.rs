//! Which regions of an OTF2 trace communicate.

use super::constants::{
    OTF2_PARADIGM_GASPI, OTF2_PARADIGM_MPI, OTF2_PARADIGM_SHMEM, OTF2_PARADIGM_UPC,
    OTF2_REGION_ROLE_COLL_ALL2ALL, OTF2_REGION_ROLE_COLL_ALL2ONE, OTF2_REGION_ROLE_COLL_ONE2ALL,
    OTF2_REGION_ROLE_COLL_OTHER, OTF2_REGION_ROLE_POINT2POINT, OTF2_REGION_ROLE_RMA,
};

use crate::call_stack::RegionKind;

/// Communication is every region of a library that passes messages or shares memory between processes (MPI, GASPI,
/// UPC, SHMEM), by its paradigm; every region whose role is to send, to take part in a collective operation or to
/// access remote memory; and, since EZTrace gives neither paradigm nor role, every region with such a name.
pub(super) fn kind(name: &str, paradigm: u8, role: u8) -> RegionKind {
    let library = [OTF2_PARADIGM_MPI, OTF2_PARADIGM_GASPI, OTF2_PARADIGM_UPC, OTF2_PARADIGM_SHMEM];
    let collective = [
        OTF2_REGION_ROLE_COLL_ONE2ALL,
        OTF2_REGION_ROLE_COLL_ALL2ONE,
        OTF2_REGION_ROLE_COLL_ALL2ALL,
        OTF2_REGION_ROLE_COLL_OTHER,
    ];
    let roles = [OTF2_REGION_ROLE_POINT2POINT, OTF2_REGION_ROLE_RMA];
    let marked = library.contains(&paradigm) || roles.contains(&role);
    RegionKind::new(name, marked, collective.contains(&role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn communication_is_known_by_paradigm_role_or_name() {
        let communication = |name, paradigm, role| kind(name, paradigm, role).communication;
        assert!(communication("MPI_Init", 0, 0));
        assert!(communication("x", OTF2_PARADIGM_MPI, 0) && communication("x", OTF2_PARADIGM_SHMEM, 0));
        assert!(communication("x", 0, OTF2_REGION_ROLE_POINT2POINT));
        assert!(!communication("main", 1, 1));
        // A barrier of OpenMP.
        assert!(!communication("!$omp barrier", 3, 15));
    }
}
