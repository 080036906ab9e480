//! Rings of switches with known optima.

use std::path::Path;

use hopmap_route::Instance;

/// A ring of switches of type 1 with a host at each, and a stream from every host to the second next.
pub(crate) fn ring(size: usize) -> Instance {
    let all = |what: &dyn Fn(usize) -> String| (0..size).map(what).collect::<Vec<_>>().join(",");
    let text = format!(
        "hosts=[{}]\nswitches=[{}]\nlinks=[{},{}]\nprocesses=[{}]\nstreams=[{}]\nmapping={{{}}}\n",
        all(&|i| format!("{{ name = \"h{i}\", performance = 1 }}")),
        all(&|i| format!("{{ name = \"s{i}\", type = 1 }}")),
        all(&|i| format!("{{ a = \"s{i}\", b = \"s{}\", bandwidth = 100 }}", (i + 1) % size)),
        all(&|i| format!("{{ a = \"s{i}\", b = \"h{i}\", bandwidth = 100 }}")),
        all(&|i| format!("{{ name = \"p{i}\", requires = 1 }}")),
        all(&|i| format!("{{ from = \"p{i}\", to = \"p{}\", bandwidth = 1 }}", (i + 2) % size)),
        all(&|i| format!("p{i} = \"h{i}\"")),
    );
    Instance::parse(text.as_bytes(), Path::new("ring")).unwrap()
}
