//! `sch.ini`: the parameters of both schedulers of PARUS.
//!
//! ```text
//! [creatures]
//! max = 100 ;                 # a comment
//! creatures:start_part = 1 ;  ; the same key with its section before it
//! ```
//!
//! Defaults of the two programs for missing keys, and the values in the file that comes with them:
//!
//! | key | new program | old program | file | what it is |
//! |---|---|---|---|---|
//! | `creatures:max` | 100 | 50 | 100 | schedules in a population |
//! | `creatures:start_part` | 1, not used | 1 | 1 | fraction of them in the first population |
//! | `creatures:random_selecting` | 10 | 10 | 0.1 | new: number of best schedules that survive; old: maximum random penalty in the selection |
//! | `stop:max_cycles` | 128 | 128 | 128 | generations |
//! | `stop:min_difference` | 0.01 | 0.01 | 0.0001 | a generation that improves by less is idle |
//! | `stop:idle_iterations` | 25 | 5 | 32 | consecutive idle generations that end the search |
//! | `mutate_possibilities:avg` | 0.7 | 0.5 | 0.5 | fraction of the population that mutates |
//! | `mutate_possibilities:processor` | 0.8 | 0.6 | 0.6 | probability that a gene changes its processor |
//! | `mutate_possibilities:priority` | 0.4 | 0.2 | 0.2 | probability that a gene changes its place in the order |
//! | `mutate_possibilities:avg_gens` | 0.3 | 0.2 | 0.2 as `gens` | fraction of the genes that a mutation changes |
//! | `recombination:avg_possibility` | 0.7 | 0.5 | 0.6 | fraction of the population that is crossed |
//! | `recombination:avg_points` | 6 | 2 | 2 | number of crossover points |
//!
//! Both programs read `avg_gens` and ignore `gens`, the spelling in their own file, as well as misspelt keys and non-numeric
//! values. This reader accepts both spellings and rejects the rest.

use hopmap_text::{FileError, closest, shown};
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// The parameters in a `sch.ini`; none if the file does not set them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SchIni {
    /// `creatures:max`: schedules in a population, at least 1.
    pub population: Option<u32>,
    /// `creatures:start_part`: fraction of them in the first population, above 0 and up to 1.
    pub start_part: Option<f64>,
    /// `creatures:random_selecting`.
    pub random_selecting: Option<RandomSelecting>,
    /// `stop:max_cycles`: generations.
    pub max_cycles: Option<u32>,
    /// `stop:min_difference`: a generation that improves by less is idle; at least 0.
    pub min_difference: Option<f64>,
    /// `stop:idle_iterations`: consecutive idle generations that end the search.
    pub idle_iterations: Option<u32>,
    /// `mutate_possibilities:avg`: fraction of the population that mutates, 0 to 1.
    pub mutation: Option<f64>,
    /// `mutate_possibilities:processor`: probability that a gene changes its processor.
    pub mutation_processor: Option<f64>,
    /// `mutate_possibilities:priority`: probability that a gene changes its place in the order.
    pub mutation_priority: Option<f64>,
    /// `mutate_possibilities:avg_gens`, also spelt `gens`: fraction of the genes that a mutation changes, 0 to 1.
    pub mutation_genes: Option<f64>,
    /// `recombination:avg_possibility`: fraction of the population that is crossed, 0 to 1.
    pub recombination: Option<f64>,
    /// `recombination:avg_points`: number of crossover points, at least 1.
    pub crossover_points: Option<u32>,
}

/// The meaning of `creatures:random_selecting`, which differs between the two programs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RandomSelecting {
    /// In the old program a fraction below 1: the maximum random penalty of a schedule in the selection.
    Penalty(f64),
    /// In the new program an integer: the number of best schedules that always survive.
    Elites(u32),
}

const KEYS: [&str; 13] = [
    "creatures:max",
    "creatures:start_part",
    "creatures:random_selecting",
    "stop:max_cycles",
    "stop:min_difference",
    "stop:idle_iterations",
    "mutate_possibilities:avg",
    "mutate_possibilities:processor",
    "mutate_possibilities:priority",
    "mutate_possibilities:avg_gens",
    "mutate_possibilities:gens",
    "recombination:avg_possibility",
    "recombination:avg_points",
];

/// The value of a key, and its position.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Value<'a> {
    key: &'static str,
    text: &'a str,
    line: usize,
}

impl SchIni {
    /// Reads a `sch.ini`.
    pub fn read(bytes: &[u8]) -> Result<Self, FileError> {
        let text = String::from_utf8_lossy(bytes);
        let values = values(&text)?;
        let value = |key: &str| values.get(key);
        let part = |key: &str| value(key).map(|value| value.number(0.0..=1.0)).transpose();
        let count = |key: &str, least: u32| value(key).map(|value| value.count(least)).transpose();
        let start_part = part("creatures:start_part")?;
        if let (Some(0.0), Some(value)) = (start_part, value("creatures:start_part")) {
            return Err(value.wrong("a number above 0 and up to 1"));
        }
        Ok(Self {
            population: count("creatures:max", 1)?,
            start_part,
            random_selecting: value("creatures:random_selecting").map(Value::random_selecting).transpose()?,
            max_cycles: count("stop:max_cycles", 0)?,
            min_difference: value("stop:min_difference")
                .map(|value| value.number(0.0..=f64::MAX))
                .transpose()?,
            idle_iterations: count("stop:idle_iterations", 1)?,
            mutation: part("mutate_possibilities:avg")?,
            mutation_processor: part("mutate_possibilities:processor")?,
            mutation_priority: part("mutate_possibilities:priority")?,
            mutation_genes: part("mutate_possibilities:avg_gens")?,
            recombination: part("recombination:avg_possibility")?,
            crossover_points: count("recombination:avg_points", 1)?,
        })
    }
}

/// All keys that are set; `avg_gens` if both spellings are.
fn values(text: &str) -> Result<HashMap<&'static str, Value<'_>>, FileError> {
    let mut values: HashMap<&'static str, Value<'_>> = HashMap::new();
    let mut section = String::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = text.strip_prefix('[') {
            section = heading(name, line)?;
            continue;
        }
        let value = setting(text, &section, line)?;
        let key = if value.key == "mutate_possibilities:gens" {
            "mutate_possibilities:avg_gens"
        } else {
            value.key
        };
        if let Some(first) = values.insert(key, value)
            && first.text != value.text
        {
            let [name, other] = [first.key, value.key];
            let [was, is] = [first.text, value.text].map(shown);
            let problem = format!("`{other}` is `{is}` here, and `{name}` is `{was}` in line {}", first.line);
            let help = match name == other {
                true => "set it once",
                false => "both are the fraction of the genes that a mutation changes: omit one of them",
            };
            return Err(FileError::at(line, problem, help));
        }
    }
    Ok(values)
}

/// The name of a section, after its opening bracket.
fn heading(text: &str, line: usize) -> Result<String, FileError> {
    let help = "write a section as `[creatures]`";
    let (name, rest) =
        text.split_once(']').ok_or_else(|| FileError::at(line, "unterminated name of a section", help))?;
    let rest = rest.trim_start();
    if !(rest.is_empty() || rest.starts_with(['#', ';'])) {
        return Err(FileError::at(line, format!("unexpected `{}` after the section", shown(rest)), help));
    }
    let name = name.trim().to_ascii_lowercase();
    let sections = ["creatures", "stop", "mutate_possibilities", "recombination"];
    if sections.contains(&name.as_str()) {
        return Ok(name);
    }
    Err(FileError::at(
        line,
        format!("unknown section `{}`", shown(&name)),
        suggestion(&name, &sections, "the sections"),
    ))
}

/// `key = value ;` with an optional comment.
fn setting<'a>(text: &'a str, section: &str, line: usize) -> Result<Value<'a>, FileError> {
    let help = "write a line as `max = 100 ;`";
    let Some((name, value)) = text.split_once('=') else {
        return Err(FileError::at(line, format!("`{}` is not an assignment", shown(text)), help));
    };
    let name = name.trim().to_ascii_lowercase();
    let full = if name.contains(':') { name.clone() } else { format!("{section}:{name}") };
    let Some(key) = KEYS.into_iter().find(|known| *known == full) else {
        // The same key in another section is more likely than another key.
        let help = match KEYS.iter().find(|key| key.split(':').nth(1) == Some(&name)) {
            Some(key) => format!("did you mean `{key}`? it belongs to another section"),
            None => suggestion(&full, &KEYS, "the keys"),
        };
        let name = full.strip_prefix(':').unwrap_or(&full);
        return Err(FileError::at(line, format!("unknown parameter `{}`", shown(name)), help));
    };
    let value = value.trim_start();
    let quoted = ['"', '\''].iter().find_map(|&mark| value.strip_prefix(mark)?.split_once(mark));
    let text = match quoted {
        Some((text, _)) => text.trim(),
        None => value.split([';', '#']).next().unwrap_or_default().trim(),
    };
    Ok(Value { key, text, line })
}

fn suggestion(wrong: &str, known: &[&str], what: &str) -> String {
    match closest(wrong, known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("{what}: {}", known.join(", ")),
    }
}

impl Value<'_> {
    fn wrong(&self, expected: &str) -> FileError {
        let problem = format!("`{}` is `{}`", self.key, shown(self.text));
        FileError::at(self.line, problem, format!("it must be {expected}"))
    }

    fn number(&self, range: RangeInclusive<f64>) -> Result<f64, FileError> {
        let number =
            self.text.parse().ok().filter(|number: &f64| number.is_finite() && range.contains(number));
        number.ok_or_else(|| match *range.end() > 1.0 {
            true => self.wrong("a number of at least 0"),
            false => self.wrong("a number from 0 to 1"),
        })
    }

    fn count(&self, least: u32) -> Result<u32, FileError> {
        let count = self.text.parse().ok().filter(|count| *count >= least);
        count.ok_or_else(|| self.wrong(&format!("an integer of at least {least}")))
    }

    fn random_selecting(&self) -> Result<RandomSelecting, FileError> {
        if let Ok(elites) = self.text.parse() {
            return Ok(RandomSelecting::Elites(elites));
        }
        let penalty = self.text.parse().ok().filter(|penalty: &f64| (0.0..1.0).contains(penalty));
        penalty.map(RandomSelecting::Penalty).ok_or_else(|| {
            self.wrong(
                "an integer (number of best schedules that survive), or a fraction below 1 (maximum random penalty)",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SchIni, FileError> {
        SchIni::read(text.as_bytes())
    }

    #[test]
    fn all_keys_are_read() {
        let text = "# of a person\n[creatures]\nmax\t= 80 ;\nstart_part=1;\nrandom_selecting= 0.1 ;\n\n[Stop] ; when\nMAX_CYCLES = \"12\"\n\
                    min_difference = 1e-4 # small\nidle_iterations = 32\n; next\n[mutate_possibilities]\navg = 0.5\nprocessor = 0.6\n\
                    priority = 0.2\ngens = 0.3 ;\nrecombination:avg_possibility = 0.7\n[recombination]\navg_points = 2 ;";
        let ini = read(text).unwrap();
        let expected = SchIni {
            population: Some(80),
            start_part: Some(1.0),
            random_selecting: Some(RandomSelecting::Penalty(0.1)),
            max_cycles: Some(12),
            min_difference: Some(1e-4),
            idle_iterations: Some(32),
            mutation: Some(0.5),
            mutation_processor: Some(0.6),
            mutation_priority: Some(0.2),
            mutation_genes: Some(0.3),
            recombination: Some(0.7),
            crossover_points: Some(2),
        };
        assert_eq!(ini, expected);
        assert_eq!(read("").unwrap(), SchIni::default());
    }

    #[test]
    fn parameters_of_both_programs_are_read() {
        let selecting = |value: &str| read(&format!("creatures:random_selecting = {value}"));
        assert_eq!(selecting("10").unwrap().random_selecting, Some(RandomSelecting::Elites(10)));
        assert_eq!(selecting("0.0 ;").unwrap().random_selecting, Some(RandomSelecting::Penalty(0.0)));
        assert!(["1.0", "-3", "nan", "", "ten"].iter().all(|value| selecting(value).is_err()));
        let genes = |text: &str| read(&format!("[mutate_possibilities]\n{text}"));
        assert_eq!(genes("gens = 0.2\navg_gens = 0.2").unwrap().mutation_genes, Some(0.2));
        let error = genes("gens = 0.2\n\navg_gens = 0.3").unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 4: `mutate_possibilities:avg_gens` is `0.3` here, and `mutate_possibilities:gens` is `0.2` in line 2"
        );
    }

    #[test]
    fn mistakes_have_lines_and_hints() {
        let error = |text: &str| {
            let error = read(text).unwrap_err();
            (error.line, error.problem, error.help.unwrap())
        };
        let (line, problem, help) = error("[stop]\n\nmax_cycle = 3");
        assert_eq!((line, problem.as_str()), (Some(3), "unknown parameter `stop:max_cycle`"));
        assert_eq!(help, "did you mean `stop:max_cycles`?");
        assert!(error("[stop]\navg = 1").2.contains("`mutate_possibilities:avg`"));
        assert!(
            error("[creature]\n").2.contains("`creatures`") && error("[x]\n").2.starts_with("the sections")
        );
        assert_eq!(error("max = 1").1, "unknown parameter `max`");
        assert_eq!(error("max = 1").2, "did you mean `creatures:max`? it belongs to another section");
        assert_eq!(error("[stop\n").1, "unterminated name of a section");
        assert_eq!(error("[stop] x\n").1, "unexpected `x` after the section");
        assert_eq!(error("stop:max_cycles").1, "`stop:max_cycles` is not an assignment");
        for wrong in [
            "creatures:max = 0",
            "creatures:max = 1.5",
            "creatures:max = 99999999999",
            "creatures:start_part = 0",
            "stop:min_difference = -1",
            "stop:min_difference = inf",
            "mutate_possibilities:avg = 1.1",
            "mutate_possibilities:processor = x",
            "recombination:avg_points = ;",
        ] {
            assert_eq!(error(wrong).0, Some(1), "{wrong}");
        }
        assert!(error("stop:max_cycles = 1\nstop:max_cycles = 2").2.contains("set it once"));
    }
}
