//! Colours of names that several pictures of a page show.

use crate::chart::{GREY, MOST_COLOURS};

/// Colours of the baselines, the same in every picture.
pub(crate) const LINEAR: usize = 4;
pub(crate) const RANDOM: usize = 5;
const BASELINES: [(&str, usize); 2] = [("linear", LINEAR), ("random", RANDOM)];

/// A colour for every name, the same in all pictures of a page.
///
/// The baselines `linear` and `random` have their own colours. The other names get what is left, in their order; names beyond that are
/// grey.
#[derive(Debug, Clone, Default)]
pub struct Palette {
    /// The names of the colours.
    names: [Option<String>; MOST_COLOURS],
}

/// The colour of a baseline.
pub(crate) fn baseline(name: &str) -> Option<usize> {
    BASELINES.iter().find(|(baseline, _)| *baseline == name).map(|(_, colour)| *colour)
}

impl Palette {
    /// A palette for names, the most important one first.
    pub fn new<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Self {
        let mut palette = Self::default();
        for (name, colour) in names.clone().filter_map(|name| Some((name, baseline(name)?))) {
            palette.names[colour] = Some(name.to_owned());
        }
        for name in names.filter(|name| baseline(name).is_none()) {
            let is_new = palette.of(name) == GREY;
            if let Some(free) = palette.names.iter_mut().find(|colour| colour.is_none()).filter(|_| is_new) {
                *free = Some(name.to_owned());
            }
        }
        palette
    }

    /// The colour of a name.
    pub(crate) fn of(&self, name: &str) -> usize {
        self.names.iter().position(|other| other.as_deref() == Some(name)).unwrap_or(GREY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baselines_keep_their_colours_and_names_beyond_the_colours_are_grey() {
        let palette = Palette::new(["annealing", "linear", "tabu", "annealing"].into_iter());
        assert_eq!(["annealing", "tabu", "linear", "genetic"].map(|name| palette.of(name)), [0, 1, 4, GREY]);
        let names: Vec<String> = (0..10).map(|index| format!("mapper {index}")).collect();
        let palette = Palette::new(names.iter().map(String::as_str));
        let colours: Vec<usize> = names.iter().map(|name| palette.of(name)).collect();
        assert_eq!(colours, [0, 1, 2, 3, 4, 5, GREY, GREY, GREY, GREY]);
    }
}
