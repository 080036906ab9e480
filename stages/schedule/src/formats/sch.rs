//! `.sch` of PARUS: the tasks of every process in their order.
//!
//! ```text
//! <SCHEDULE_BEGIN>
//!
//!  num_processors 1
//!
//! <PROCESSOR_BEGIN>
//!  name 1
//!  num_nodes 2
//!  nodes ( 7 3 )
//! <PROCESSOR_END>
//!
//! <SCHEDULE_END>
//! ```

use std::collections::HashMap;
use std::fmt::Write;

use hopmap_text::FileError;

use super::common::{list, value, words};

/// A schedule of PARUS: the tasks of each process, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sch {
    /// The processes.
    pub processors: Vec<SchProcessor>,
}

/// A process and its tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SchProcessor {
    /// Its name: the MPI rank, from 1 because process 0 is the coordinator of PARUS.
    pub name: u64,
    /// Numbers of its nodes, in order.
    pub nodes: Vec<u64>,
}

impl Sch {
    /// Reads a `.sch` file. Nodes and names of processes are unique.
    pub fn read(bytes: &[u8]) -> Result<Self, FileError> {
        let mut words = words(bytes, 99, "the file must be an output of `graph2sch` of PARUS")?;
        words.expect("<SCHEDULE_BEGIN>")?;
        let count: u64 = value(&mut words, "num_processors")?;
        if count == 0 {
            return Err(words.error("the schedule has no processors"));
        }
        let mut processors = Vec::new();
        let mut lines = HashMap::new();
        let mut runs_on = HashMap::new();
        for _ in 0..count {
            words.expect("<PROCESSOR_BEGIN>")?;
            let name: u64 = value(&mut words, "name")?;
            if let Some(line) = lines.insert(name, words.line()) {
                return Err(words.error(format!("processor {name} is already defined in line {line}")));
            }
            let nodes = list(&mut words, "num_nodes", "nodes")?;
            words.expect("<PROCESSOR_END>")?;
            for &node in &nodes {
                if let Some(other) = runs_on.insert(node, name) {
                    return Err(
                        words.error(format!("node {node} runs twice: on processors {other} and {name}"))
                    );
                }
            }
            processors.push(SchProcessor { name, nodes });
        }
        words.expect("<SCHEDULE_END>")?;
        words.end()?;
        Ok(Self { processors })
    }

    /// The file as `graph2sch` writes it, byte for byte, except for comments: `comment` returns lines before a process, if any,
    /// with or without `//`.
    #[must_use]
    pub fn write(&self, comment: impl Fn(&SchProcessor) -> Option<String>) -> String {
        let mut text = format!("<SCHEDULE_BEGIN>\n\n num_processors {}\n\n", self.processors.len());
        for processor in &self.processors {
            for line in comment(processor).iter().flat_map(|comment| comment.lines()) {
                let mark = if line.starts_with("//") { "" } else { "// " };
                text += &format!("{mark}{line}\n");
            }
            let SchProcessor { name, nodes } = processor;
            text += &format!("<PROCESSOR_BEGIN>\n name {name}\n num_nodes {}\n nodes ( ", nodes.len());
            for node in nodes {
                // Writing to a string cannot fail.
                let _ = write!(text, "{node} ");
            }
            text += ")\n<PROCESSOR_END>\n\n";
        }
        text + "<SCHEDULE_END>\n"
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn small() -> Sch {
        let processor = |name, nodes: &[u64]| SchProcessor { name, nodes: nodes.to_vec() };
        Sch { processors: vec![processor(1, &[7, 3]), processor(2, &[])] }
    }

    #[test]
    fn output_is_that_of_parus() {
        let text = "<SCHEDULE_BEGIN>\n\n num_processors 2\n\n<PROCESSOR_BEGIN>\n name 1\n num_nodes 2\n nodes ( 7 3 )\n<PROCESSOR_END>\n\n\
                    <PROCESSOR_BEGIN>\n name 2\n num_nodes 0\n nodes ( )\n<PROCESSOR_END>\n\n<SCHEDULE_END>\n";
        assert_eq!(small().write(|_| None), text);
        assert_eq!(Sch::read(text.as_bytes()), Ok(small()));
        assert_eq!(Sch::read(text.to_lowercase().as_bytes()), Ok(small()));
    }

    #[test]
    fn comments_are_ignored() {
        let comment =
            |one: &SchProcessor| (one.name == 1).then(|| "node 7: rank 0, segment 1\n// node 3".into());
        let text = small().write(comment);
        assert!(text.contains("\n\n// node 7: rank 0, segment 1\n// node 3\n<PROCESSOR_BEGIN>\n name 1\n"));
        assert_eq!(Sch::read(text.as_bytes()), Ok(small()));
    }

    #[test]
    fn contradictions_are_refused() {
        let text = small().write(|_| None);
        let problem = |from: &str, to: &str| {
            assert!(text.contains(from));
            let error = Sch::read(text.replacen(from, to, 1).as_bytes()).unwrap_err();
            (error.line.unwrap(), error.problem)
        };
        assert_eq!(
            problem("num_nodes 0", "num_nodes 1").1,
            "`num_nodes` is 1, but the list of `nodes` has 0 numbers"
        );
        assert_eq!(problem("name 2", "name 1"), (12, "processor 1 is already defined in line 6".into()));
        assert_eq!(problem("7 3", "7 7").1, "node 7 runs twice: on processors 1 and 1");
        assert!(problem("_processors 2", "_processors 1").1.contains("found `<PROCESSOR_BEGIN>`"));
        assert!(problem("_processors 2", "_processors 3").1.contains("found `<SCHEDULE_END>`"));
        assert_eq!(problem("_processors 2", "_processors 0").1, "the schedule has no processors");
        assert_eq!(problem("7 3", "7 -3").0, 8);
        assert!(problem("<SCHEDULE_END>", "<SCHEDULE_END> x").1.contains("unexpected `x` after the end"));
        assert_eq!(Sch::read(b" // nothing\n").unwrap_err().problem, "the file is empty");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(nodes in prop::collection::btree_map(any::<u64>(), 0u64..5, 0..30)) {
            let of = |name| SchProcessor { name, nodes: nodes.iter().filter(|(_, on)| **on == name).map(|(node, _)| *node).collect() };
            let sch = Sch { processors: (0..5).map(of).collect() };
            prop_assert_eq!(Sch::read(sch.write(|_| None).as_bytes()), Ok(sch));
        }
    }
}
