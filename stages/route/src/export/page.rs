//! Routes as a page of their own: the network, the busiest links, the metrics.

use std::fmt::Write;

use hopmap_views::{Routed, route_loads, routes};

const STYLE: &str = "\
:root { color-scheme: light dark; --paper: #fdfdfc; --panel: #f3f3f0; --ink: #1c1e21; --soft: #62676e; --rule: #d9d9d4; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181b; --panel: #202327; --ink: #e7e8ea; --soft: #9aa0a8; --rule: #363a40; }
}
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, \"Segoe UI\", Roboto, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 2rem 1.5rem 4rem; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
figure { margin: 0 0 2.4rem; }
svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .9rem; }
td { padding: .25rem 1.2rem .25rem 0; border-bottom: 1px solid var(--rule); }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
";

/// The page, without scripts and without anything from elsewhere.
pub(super) fn write(routed: &Routed<'_>) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Routes – hopmap</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<figure>{}</figure>\n<figure>{}</figure>\n{}</main>\n</body>\n</html>\n",
        routes(routed),
        route_loads(routed),
        metrics(routed)
    )
}

fn metrics(routed: &Routed<'_>) -> String {
    if routed.routes.metrics.is_empty() {
        return String::new();
    }
    // Writing to a string does not fail.
    let mut html = String::from("<h2>Metrics</h2>\n<table><tbody>\n");
    for (name, value) in &routed.routes.metrics {
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td class=\"number\">{value}</td></tr>",
            escape(&name.replace('_', " "))
        );
    }
    html.push_str("</tbody></table>\n");
    html
}

/// Text as HTML shows it.
fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    text.replace(|letter: char| letter.is_control(), " ")
}
