//! A queue of vertices by gain, of which any gain can change.

const ABSENT: u32 = u32::MAX;

/// Vertices by gain, greatest first; of equals the one that was put in or changed last.
#[derive(Default)]
pub(crate) struct Heap {
    /// Gain, when it was set, vertex; a binary heap.
    entries: Vec<(i64, u32, u32)>,
    /// Where the entry of a vertex is.
    places: Vec<u32>,
    clock: u32,
}

impl Heap {
    /// Empties it for vertices below a number.
    pub(crate) fn reset(&mut self, vertices: usize) {
        self.clear();
        if self.places.len() < vertices {
            self.places.resize(vertices, ABSENT);
        }
    }

    /// Empties it.
    pub(crate) fn clear(&mut self) {
        for &(_, _, vertex) in &self.entries {
            self.places[vertex as usize] = ABSENT;
        }
        self.entries.clear();
        self.clock = 0;
    }

    /// The gain and the vertex that comes first.
    #[inline]
    pub(crate) fn first(&self) -> Option<(i64, u32)> {
        self.entries.first().map(|&(gain, _, vertex)| (gain, vertex))
    }

    /// Puts a vertex in or changes its gain.
    pub(crate) fn set(&mut self, vertex: u32, gain: i64) {
        self.clock += 1;
        let entry = (gain, self.clock, vertex);
        match self.places[vertex as usize] {
            ABSENT => {
                self.entries.push(entry);
                self.rise(self.entries.len() - 1);
            }
            place => {
                let place = place as usize;
                let rises = entry > self.entries[place];
                self.entries[place] = entry;
                if rises { self.rise(place) } else { self.sink(place) }
            }
        }
    }

    /// Takes a vertex out, if it is in.
    pub(crate) fn remove(&mut self, vertex: u32) {
        let place = self.places[vertex as usize];
        if place == ABSENT {
            return;
        }
        self.places[vertex as usize] = ABSENT;
        let Some(last) = self.entries.pop() else { return };
        let place = place as usize;
        if place < self.entries.len() {
            let rises = last > self.entries[place];
            self.entries[place] = last;
            if rises { self.rise(place) } else { self.sink(place) }
        }
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.entries[place];
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.entries[parent] >= entry {
                break;
            }
            self.entries[place] = self.entries[parent];
            self.places[self.entries[place].2 as usize] = place as u32;
            place = parent;
        }
        self.entries[place] = entry;
        self.places[entry.2 as usize] = place as u32;
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.entries[place];
        loop {
            let mut child = 2 * place + 1;
            if child + 1 < self.entries.len() && self.entries[child + 1] > self.entries[child] {
                child += 1;
            }
            if child >= self.entries.len() || self.entries[child] <= entry {
                break;
            }
            self.entries[place] = self.entries[child];
            self.places[self.entries[place].2 as usize] = place as u32;
            place = child;
        }
        self.entries[place] = entry;
        self.places[entry.2 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_gain_comes_first_and_the_latest_of_equals() {
        let mut heap = Heap::default();
        heap.reset(6);
        for (vertex, gain) in [(0, 3), (1, 7), (2, -4), (3, 7), (4, 0)] {
            heap.set(vertex, gain);
        }
        assert_eq!(heap.first(), Some((7, 3)));
        heap.set(2, 9);
        heap.set(3, -9);
        heap.remove(0);
        let mut order = Vec::new();
        while let Some((_, vertex)) = heap.first() {
            order.push(vertex);
            heap.remove(vertex);
        }
        assert_eq!(order, [2, 1, 4, 3]);
    }
}
