//! Numbers that the format gives to things, by their names in the headers of libotf2.

macro_rules! constants {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        $(pub(super) const $name: $type = $value;)*

        #[cfg(all(test, feature = "libotf2"))]
        #[test]
        fn constants_are_those_of_libotf2() {
            $(assert_eq!($name, otf2_sys::$name, stringify!($name));)*
        }
    };
}

constants! {
    OTF2_UNDEFINED_UINT32: u32 = u32::MAX;
    OTF2_UNDEFINED_UINT64: u64 = u64::MAX;
    OTF2_UNDEFINED_LOCATION: u64 = u64::MAX;
    OTF2_CHUNK_SIZE_MIN: u64 = 256 << 10;
    OTF2_CHUNK_SIZE_MAX: u64 = 16 << 20;
    OTF2_LOCATION_GROUP_TYPE_PROCESS: u8 = 1;
    OTF2_LOCATION_TYPE_CPU_THREAD: u8 = 1;
    OTF2_PARADIGM_USER: u8 = 1;
    OTF2_PARADIGM_MPI: u8 = 4;
    OTF2_PARADIGM_GASPI: u8 = 11;
    OTF2_PARADIGM_UPC: u8 = 12;
    OTF2_PARADIGM_SHMEM: u8 = 13;
    OTF2_GROUP_TYPE_COMM_LOCATIONS: u8 = 4;
    OTF2_GROUP_TYPE_COMM_GROUP: u8 = 5;
    OTF2_GROUP_TYPE_COMM_SELF: u8 = 6;
    OTF2_GROUP_FLAG_GLOBAL_MEMBERS: u32 = 1;
    OTF2_REGION_ROLE_FUNCTION: u8 = 1;
    OTF2_REGION_ROLE_COLL_ONE2ALL: u8 = 23;
    OTF2_REGION_ROLE_COLL_ALL2ONE: u8 = 24;
    OTF2_REGION_ROLE_COLL_ALL2ALL: u8 = 25;
    OTF2_REGION_ROLE_COLL_OTHER: u8 = 26;
    OTF2_REGION_ROLE_POINT2POINT: u8 = 28;
    OTF2_REGION_ROLE_RMA: u8 = 29;
}
