//! Finds libotf2 through pkg-config.

/// What to do when libotf2 cannot be found.
struct Missing(pkg_config::Error);

/// `cargo` shows the `Debug` form of what `main` returns.
impl std::fmt::Debug for Missing {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reason = self.0.to_string();
        let reason = reason.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no reason given");
        writeln!(text, "libotf2, which reads OTF2 traces, was not found.\n")?;
        writeln!(text, "  On Debian and Ubuntu: apt install libopen-trace-format2-dev pkg-config")?;
        writeln!(
            text,
            "  Elsewhere: install OTF2 3.0 or newer and let PKG_CONFIG_PATH name the folder of otf2.pc"
        )?;
        writeln!(text, "  Without OTF2: leave out the feature libotf2\n")?;
        write!(text, "  pkg-config: {reason}")
    }
}

fn main() -> Result<(), Missing> {
    println!("cargo::rerun-if-changed=build.rs");
    pkg_config::Config::new().atleast_version("3.0").probe("otf2").map(drop).map_err(Missing)
}
