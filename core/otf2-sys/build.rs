//! Finds libotf2 through pkg-config.

/// libotf2 was not found.
struct Missing(pkg_config::Error);

/// `cargo` shows the `Debug` form of what `main` returns.
impl std::fmt::Debug for Missing {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reason = self.0.to_string();
        let reason = reason.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("unknown reason");
        writeln!(text, "libotf2, which reads OTF2 traces, was not found.\n")?;
        writeln!(text, "  On Debian and Ubuntu: apt install libopen-trace-format2-dev pkg-config")?;
        writeln!(
            text,
            "  Elsewhere: install OTF2 3.0 or newer and set PKG_CONFIG_PATH to the folder of otf2.pc"
        )?;
        writeln!(text, "  Without OTF2: omit the feature libotf2\n")?;
        write!(text, "  pkg-config: {reason}")
    }
}

fn main() -> Result<(), Missing> {
    println!("cargo::rerun-if-changed=build.rs");
    pkg_config::Config::new().atleast_version("3.0").probe("otf2").map(drop).map_err(Missing)
}
