//! Without libotf2 the stage is there and says what is missing.
#![cfg(not(feature = "libotf2"))]

mod support;

use hopmap_model::{Context, Stage};
use hopmap_trace::{Otf2, Reader};
use support::{otf2_params, read_otf2, sample};

#[test]
fn the_stage_says_how_to_build_it() {
    let path = sample("rows-columns-16");
    let error = read_otf2(&path, &Context::detached()).unwrap_err();
    assert_eq!(error.to_string(), "this hopmap was built without OTF2");
    assert!(error.help().unwrap().to_string().contains("--features libotf2"));
    let files = Otf2::reads(&otf2_params(&path, Reader::Auto)).unwrap();
    assert_eq!(files.len(), 34);
}
