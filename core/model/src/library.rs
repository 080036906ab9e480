//! Libraries that a build may lack.

use miette::Diagnostic;

/// A library of others that hopmap is built with where it is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Library {
    /// What people call it.
    pub name: &'static str,
    /// What to install before building with it, if anything.
    pub install: Option<&'static str>,
    /// Whether this build has it.
    pub is_built: bool,
}

impl Library {
    /// Refuses what a build without the library cannot do, in words before its name: "`trace/generate` writes archives
    /// with".
    pub const fn require(&'static self, what: &'static str) -> Result<(), NotBuilt> {
        if self.is_built { Ok(()) } else { Err(self.missing(what)) }
    }

    /// That this build lacks it.
    #[must_use]
    pub const fn missing(&'static self, what: &'static str) -> NotBuilt {
        NotBuilt { what, library: self }
    }

    /// How to get it.
    #[must_use]
    pub fn hint(&self) -> String {
        let install = self.install.map(|packages| format!("install {packages} and ")).unwrap_or_default();
        format!("{install}build with `make install FEATURES=full`")
    }
}

/// A stage, or a value of a parameter, that needs a library which this build lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("{what} {}, which this build does not have", library.name)]
#[diagnostic(help("{}", library.hint()))]
pub struct NotBuilt {
    what: &'static str,
    library: &'static Library,
}

impl NotBuilt {
    /// The library.
    #[must_use]
    pub fn library(&self) -> &'static Library {
        self.library
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_how_to_get_it() {
        const THERE: Library = Library { name: "libx", install: None, is_built: true };
        const ABSENT: Library =
            Library { install: Some("libx (Debian: libx-dev)"), is_built: false, ..THERE };
        assert_eq!(THERE.require("`x` counts with"), Ok(()));
        let error = ABSENT.require("`x` counts with").unwrap_err();
        assert_eq!(error.to_string(), "`x` counts with libx, which this build does not have");
        let help = error.help().unwrap().to_string();
        assert_eq!(help, "install libx (Debian: libx-dev) and build with `make install FEATURES=full`");
        assert_eq!(THERE.hint(), "build with `make install FEATURES=full`");
    }
}
