//! `.sch` of PARUS: the tasks of every process in their turns.
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

/// A schedule as PARUS writes it: who runs what, in which order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sch {
    /// The processes.
    pub processors: Vec<SchProcessor>,
}

/// A process and what it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SchProcessor {
    /// Its name: rank in MPI, which counts from 1, since process 0 is the coordinator of PARUS.
    pub name: u64,
    /// Numbers of the nodes that it runs, in their turns.
    pub nodes: Vec<u64>,
}

impl Sch {
    /// Reads a `.sch` file. No node stands twice, and no two processes have one name.
    pub fn read(bytes: &[u8]) -> Result<Self, FileError> {
        let mut words = words(bytes, 99, "`graph2sch` of PARUS writes such a file")?;
        words.expect("<SCHEDULE_BEGIN>")?;
        let count: u64 = value(&mut words, "num_processors")?;
        if count == 0 {
            return Err(words.error("there are no processors"));
        }
        let mut processors = Vec::new();
        let mut lines = HashMap::new();
        let mut runs_on = HashMap::new();
        for _ in 0..count {
            words.expect("<PROCESSOR_BEGIN>")?;
            let name: u64 = value(&mut words, "name")?;
            if let Some(line) = lines.insert(name, words.line()) {
                return Err(words.error(format!("there is a processor {name} in line {line} already")));
            }
            let nodes = list(&mut words, "num_nodes", "nodes")?;
            words.expect("<PROCESSOR_END>")?;
            for &node in &nodes {
                if let Some(other) = runs_on.insert(node, name) {
                    return Err(words.error(format!("node {node} runs twice: on {other} and on {name}")));
                }
            }
            processors.push(SchProcessor { name, nodes });
        }
        words.expect("<SCHEDULE_END>")?;
        words.end()?;
        Ok(Self { processors })
    }

    /// The file as `graph2sch` writes it, byte for byte, but for comments: `comment` gives lines to stand before a process, if any,
    /// with or without the `//` in front.
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
                // A text takes all that is written to it.
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
    fn it_is_written_as_parus_writes_it() {
        let text = "<SCHEDULE_BEGIN>\n\n num_processors 2\n\n<PROCESSOR_BEGIN>\n name 1\n num_nodes 2\n nodes ( 7 3 )\n<PROCESSOR_END>\n\n\
                    <PROCESSOR_BEGIN>\n name 2\n num_nodes 0\n nodes ( )\n<PROCESSOR_END>\n\n<SCHEDULE_END>\n";
        assert_eq!(small().write(|_| None), text);
        assert_eq!(Sch::read(text.as_bytes()), Ok(small()));
        assert_eq!(Sch::read(text.to_lowercase().as_bytes()), Ok(small()));
    }

    #[test]
    fn comments_are_passed_over() {
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
        assert_eq!(problem("name 2", "name 1"), (12, "there is a processor 1 in line 6 already".into()));
        assert_eq!(problem("7 3", "7 7").1, "node 7 runs twice: on 1 and on 1");
        assert!(problem("_processors 2", "_processors 1").1.contains("found `<PROCESSOR_BEGIN>`"));
        assert!(problem("_processors 2", "_processors 3").1.contains("found `<SCHEDULE_END>`"));
        assert_eq!(problem("_processors 2", "_processors 0").1, "there are no processors");
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
