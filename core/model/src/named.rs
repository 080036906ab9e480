//! Types whose values have names.

/// Declares an enum with the name of each of its values in tables, files and messages.
#[macro_export]
macro_rules! named_values {
    (
        $(#[$meta:meta])* $visibility:vis enum $type:ident {
            $($(#[$of_value:meta])* $value:ident = $name:literal,)+
        }
    ) => {
        $(#[$meta])*
        $visibility enum $type {
            $($(#[$of_value])* $value,)+
        }

        impl $type {
            /// All values.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];
            /// All values with their names.
            pub const NAMES: [(Self, &'static str); [$($name),+].len()] = [$((Self::$value, $name)),+];

            /// The name of the value.
            #[must_use]
            pub const fn name(self) -> &'static str {
                Self::NAMES[self as usize].1
            }

            /// The value of a name.
            #[must_use]
            pub fn of_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }
    };
}
