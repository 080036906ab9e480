//! The regions that a location is in.

/// The regions that a location is in, from the outside in, each with what is known of it.
///
/// As in [`CallStack`](crate::call_stack::CallStack): leaving a region closes those entered inside it and never left, and
/// leaving one that is not open changes nothing.
#[derive(Debug)]
pub(super) struct OpenRegions<T> {
    stack: Vec<(u32, T)>,
    /// How often each place is on the stack.
    times: Vec<u32>,
}

impl<T> OpenRegions<T> {
    pub(super) fn new() -> Self {
        Self { stack: Vec::new(), times: Vec::new() }
    }

    /// Enters the region of a place.
    pub(super) fn enter(&mut self, place: u32, known: T) {
        if self.times.len() <= place as usize {
            self.times.resize(place as usize + 1, 0);
        }
        self.times[place as usize] += 1;
        self.stack.push((place, known));
    }

    /// Leaves the region of a place; tells what is known of every region that this closes, from the inside out.
    pub(super) fn leave(&mut self, place: u32, mut closed: impl FnMut(T)) {
        if self.times.get(place as usize).is_none_or(|times| *times == 0) {
            return;
        }
        while let Some((innermost, known)) = self.stack.pop() {
            self.times[innermost as usize] -= 1;
            closed(known);
            if innermost == place {
                break;
            }
        }
    }

    /// What is known of the region entered last.
    pub(super) fn innermost(&self) -> Option<&T> {
        self.stack.last().map(|(_, known)| known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_closes_what_is_inside_and_nothing_else() {
        let mut open = OpenRegions::new();
        for (place, name) in [(3, "a"), (5, "b"), (3, "c"), (4, "d")] {
            open.enter(place, name);
        }
        let mut closed = Vec::new();
        for place in [9, 5, 5, 3] {
            open.leave(place, |name| closed.push(name));
        }
        assert_eq!(closed, ["d", "c", "b", "a"]);
        assert_eq!(open.innermost(), None);
    }

    /// With a search through the stack this would take hours.
    #[test]
    fn leaving_what_is_not_open_takes_no_search() {
        let mut open = OpenRegions::new();
        (0..300_000).for_each(|_| open.enter(1, ()));
        (0..300_000).for_each(|_| open.leave(2, |()| ()));
        assert_eq!(open.stack.len(), 300_000);
    }
}
