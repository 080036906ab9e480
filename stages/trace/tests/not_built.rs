//! Messages about missing features, with and without libotf2.

use hopmap_model::{InputPath, Stage};
use hopmap_trace::{Dag, DagParams, EventsParams, ListEvents, Otf2, Otf2Params, Reader};

const HELP: &str =
    "install libotf2 (Debian: libopen-trace-format2-dev) and build with `make install FEATURES=full`";

/// Message and hint of an error.
fn message<E: Into<miette::Report>>(result: Result<(), E>) -> Option<(String, String)> {
    let error = result.err()?.into();
    Some((error.to_string(), error.help().unwrap().to_string()))
}

fn missing(what: &str) -> Option<(String, String)> {
    let lacking = cfg!(not(feature = "libotf2"));
    lacking.then(|| (format!("{what} libotf2, which this build does not have"), HELP.to_owned()))
}

#[test]
fn only_the_libotf2_reader_needs_libotf2() {
    let archive = || InputPath::new("x.otf2");
    for reader in [Reader::Auto, Reader::Native, Reader::Libotf2] {
        let expected =
            missing("`reader = \"libotf2\"` reads archives with").filter(|_| reader == Reader::Libotf2);
        let read = Otf2Params { reader, ..Otf2Params::new(archive()) };
        let list = EventsParams { reader, ..EventsParams::new(archive()) };
        let dag = DagParams { reader, ..DagParams::new(archive()) };
        for actual in
            [message(Otf2::check(&read)), message(ListEvents::check(&list)), message(Dag::check(&dag))]
        {
            assert_eq!(actual, expected, "{reader:?}");
        }
    }
}
