//! Colours and type, the same in all views.

/// Number of colours on the ramp for amounts.
pub(crate) const RAMP: usize = 12;

/// Number of colours for kinds.
pub(crate) const KINDS: usize = 7;

/// The style sheet of every view. All rules are confined to `svg.hopmap`, and equal in every view of a page.
pub(crate) fn style() -> String {
    // ColorBrewer YlGnBu, from pale to dark.
    const LIGHT: [&str; RAMP] = [
        "#d6efb3", "#bae4b5", "#90d4b9", "#6ac5be", "#46b8c3", "#2fa3c2", "#1d8cbe", "#206fb0", "#2353a3",
        "#253b97", "#192a7b", "#081d58",
    ];
    // Viridis without its darkest end, from dark to bright.
    const DARK: [&str; RAMP] = [
        "#472a79", "#414487", "#375a8c", "#2e6e8e", "#26828d", "#21968a", "#22a884", "#3dba74", "#64ca5d",
        "#95d740", "#cae126", "#fde725",
    ];
    // Okabe and Ito 2008; on dark ground blue and sky blue change places, and yellow is left out.
    const KINDS_LIGHT: [&str; KINDS] =
        ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a7a7a"];
    const KINDS_DARK: [&str; KINDS] =
        ["#56b4e9", "#ff8c42", "#2fc49a", "#e39bc2", "#f0b429", "#3a8fd0", "#a0a0a0"];
    let variables = |ramp: &[&str], kinds: &[&str]| -> String {
        let ramp = ramp.iter().enumerate().map(|(index, colour)| format!("--r{index}:{colour};"));
        let kinds = kinds.iter().enumerate().map(|(index, colour)| format!("--k{index}:{colour};"));
        ramp.chain(kinds).collect()
    };
    let classes: String = (0..RAMP)
        .map(|index| {
            format!(".hopmap .f{index}{{fill:var(--r{index})}}.hopmap .s{index}{{stroke:var(--r{index})}}")
        })
        .chain((0..KINDS).map(|index| {
            format!(".hopmap .fk{index}{{fill:var(--k{index})}}.hopmap .sk{index}{{stroke:var(--k{index})}}")
        }))
        .collect();
    format!(
        "svg.hopmap{{color-scheme:light dark;--i:var(--ink,#1b2430);--q:var(--soft,#586474);--l:var(--rule,#d9dfe6);\
         --b:var(--panel,#f4f6f9);{}max-width:100%;height:auto;\
         font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,sans-serif;font-size:12px}}\
         @media(prefers-color-scheme:dark){{svg.hopmap{{--i:var(--ink,#e6eaf0);--q:var(--soft,#9aa6b4);\
         --l:var(--rule,#333d49);--b:var(--panel,#1d242d);{}}}}}\
         .hopmap text{{fill:var(--i);font-variant-numeric:tabular-nums}}.hopmap .t{{font-size:15px;font-weight:600}}\
         .hopmap .q{{fill:var(--q)}}.hopmap .n{{font-size:11px}}.hopmap .w{{font-weight:600}}\
         .hopmap .m{{text-anchor:middle}}.hopmap .e{{text-anchor:end}}.hopmap .l{{stroke:var(--l);fill:none}}\
         .hopmap .a{{stroke:var(--q);fill:none}}.hopmap .b{{fill:var(--b);stroke:var(--l)}}\
         .hopmap .c{{fill:none;shape-rendering:crispEdges;stroke-width:1}}.hopmap .g{{fill:none;stroke-width:2;\
         stroke-linejoin:round;stroke-linecap:round}}{classes}",
        variables(&LIGHT, &KINDS_LIGHT),
        variables(&DARK, &KINDS_DARK),
    )
}

/// Index on the ramp of a share between 0 and 1.
pub(crate) fn ramp_index(share: f64) -> usize {
    ((share * RAMP as f64) as usize).min(RAMP - 1)
}
