//! States that are restored when they are needed.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A state from which what to store follows.
pub trait Save {
    /// What is stored.
    type Saved: Clone + Serialize + DeserializeOwned;

    /// The state in stored form.
    fn save(&self) -> Self::Saved;
}

/// A state in memory, or in stored form. What is read is in stored form, and so is a copy, which takes less memory.
#[derive(Debug)]
pub enum Resumable<T: Save> {
    /// In memory.
    Live(T),
    /// In stored form.
    Saved(T::Saved),
}

impl<T: Save> Resumable<T> {
    /// The state in memory; `None` before it is restored.
    pub fn live(&mut self) -> Option<&mut T> {
        match self {
            Self::Live(state) => Some(state),
            Self::Saved(_) => None,
        }
    }

    /// Restores the state, if it is in stored form.
    ///
    /// # Errors
    /// If it cannot be restored.
    pub fn restore<E>(&mut self, restore: impl FnOnce(&T::Saved) -> Result<T, E>) -> Result<(), E> {
        if let Self::Saved(saved) = self {
            *self = Self::Live(restore(saved)?);
        }
        Ok(())
    }

    fn saved(&self) -> Cow<'_, T::Saved> {
        match self {
            Self::Live(state) => Cow::Owned(state.save()),
            Self::Saved(saved) => Cow::Borrowed(saved),
        }
    }
}

impl<T: Save> Clone for Resumable<T> {
    fn clone(&self) -> Self {
        Self::Saved(self.saved().into_owned())
    }
}

impl<T: Save> Serialize for Resumable<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.saved().serialize(serializer)
    }
}

impl<'de, T: Save> Deserialize<'de> for Resumable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::Saved::deserialize(deserializer).map(Self::Saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text, of which the length is stored.
    impl Save for String {
        type Saved = usize;

        fn save(&self) -> usize {
            self.len()
        }
    }

    #[test]
    fn copies_and_what_is_read_are_restored() {
        let mut state = Resumable::Live("abc".to_owned());
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!((text.as_str(), state.live().unwrap().as_str()), ("3", "abc"));
        for mut other in [state.clone(), serde_json::from_str(&text).unwrap()] {
            assert!(other.live().is_none());
            assert_eq!(other.restore(|_| Err("not yet")), Err("not yet"));
            other.restore(|length| Ok::<_, &str>("x".repeat(*length))).unwrap();
            assert_eq!(other.live().unwrap(), "xxx");
            assert_eq!(serde_json::to_string(&other).unwrap(), text);
        }
    }
}
