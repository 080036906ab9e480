//! The parameters of a stage with their defaults.

/// Declares the parameters of a stage. Each has the default behind it, `pub seed: u64 = 1`, or else that of its type.
#[macro_export]
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$of_field:meta])* pub $field:ident: $type:ty $(= $default:expr)?,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$of_field])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $crate::parameters!(@default $type $(, $default)?),)* }
            }
        }
    };
    (@default $type:ty) => {
        <$type>::default()
    };
    (@default $type:ty, $default:expr) => {
        $default
    };
}
