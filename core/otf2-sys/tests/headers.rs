//! Compiles the headers of libotf2 against the declarations of this crate.

use std::process::Command;

/// `_Static_assert`s that each constant has the same value in C.
macro_rules! same_in_c {
    ($($name:ident)*) => {
        concat!($("_Static_assert(", stringify!($name), " == VALUE_", stringify!($name), ", \"", stringify!($name), "\");\n"),*)
    };
}

/// `-DVALUE_NAME=…` for each constant, with its value in Rust.
macro_rules! values {
    ($($name:ident)*) => { [$(format!("-DVALUE_{}={}", stringify!($name), otf2_sys::$name)),*] };
}

macro_rules! all_constants {
    ($what:ident) => {
        $what! {
            OTF2_SUCCESS OTF2_ERROR_INTERRUPTED_BY_CALLBACK OTF2_ERROR_DUPLICATE_MAPPING_TABLE
            OTF2_CALLBACK_SUCCESS OTF2_CALLBACK_INTERRUPT OTF2_CALLBACK_ERROR
            OTF2_UNDEFINED_UINT32 OTF2_CHUNK_SIZE_MIN OTF2_CHUNK_SIZE_MAX
            OTF2_LOCATION_GROUP_TYPE_PROCESS OTF2_LOCATION_TYPE_CPU_THREAD
            OTF2_PARADIGM_USER OTF2_REGION_ROLE_FUNCTION
            OTF2_PARADIGM_MPI OTF2_PARADIGM_GASPI OTF2_PARADIGM_UPC OTF2_PARADIGM_SHMEM
            OTF2_GROUP_TYPE_COMM_LOCATIONS OTF2_GROUP_TYPE_COMM_GROUP OTF2_GROUP_TYPE_COMM_SELF
            OTF2_GROUP_FLAG_GLOBAL_MEMBERS
            OTF2_REGION_ROLE_COLL_ONE2ALL OTF2_REGION_ROLE_COLL_ALL2ONE OTF2_REGION_ROLE_COLL_ALL2ALL
            OTF2_REGION_ROLE_COLL_OTHER OTF2_REGION_ROLE_POINT2POINT OTF2_REGION_ROLE_RMA
        }
    };
}

/// Constants that do not fit a signed 64-bit expression on the command line.
const WIDE: &str = "
    _Static_assert(OTF2_UNDEFINED_UINT64 == UINT64_MAX, \"undefined\");
    _Static_assert(OTF2_UNDEFINED_LOCATION == UINT64_MAX, \"undefined location\");
";

#[test]
fn signatures_and_constants_match_the_headers() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("headers.c");
    let text = [include_str!("signatures.c"), all_constants!(same_in_c), WIDE].join("\n");
    std::fs::write(&source, text).unwrap();
    let library = pkg_config::Config::new().cargo_metadata(false).env_metadata(false).probe("otf2").unwrap();
    let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler.args(["-std=gnu11", "-fsyntax-only", "-Wall", "-Werror"]).args(all_constants!(values));
    for path in &library.include_paths {
        compiler.arg("-I").arg(path);
    }
    let output = compiler.arg(&source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(otf2_sys::OTF2_UNDEFINED_UINT64, u64::MAX);
    assert_eq!(otf2_sys::OTF2_UNDEFINED_LOCATION, u64::MAX);
}

#[test]
#[allow(unsafe_code)] // Calls one function that takes and gives plain values.
fn the_library_can_be_called() {
    // SAFETY: the function accepts any error code and returns a static text.
    let text =
        unsafe { std::ffi::CStr::from_ptr(otf2_sys::OTF2_Error_GetDescription(otf2_sys::OTF2_SUCCESS)) };
    assert_eq!(text.to_str().unwrap(), "Success");
}
