//! The documentation: generated pages are those of the code, the summary lists every page, and links lead somewhere.

use std::path::{Path, PathBuf};

use crate::markdown::{anchors, links, pages_below};
use crate::sandbox::{Sandbox, project};

/// How a generated page begins, behind its title.
const MARK: &str = "<!-- Generated: ";

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below a folder, with its path from there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => {
                let name = PathBuf::from(path.file_name().unwrap());
                found.extend(files(&path).into_iter().map(|file| name.join(file)));
            }
            false => found.push(path.file_name().unwrap().into()),
        }
    }
    found
}

#[test]
fn generated_pages_are_those_of_the_code() {
    let sandbox = Sandbox::new();
    sandbox.stdout(&["docs", "reference"]);
    let (written, kept) = (sandbox.path().join("reference"), project().join("docs/reference"));
    let pages = files(&written);
    assert!(pages.len() > 30, "{pages:?}");
    for page in &pages {
        let (now, there) = (read(&written.join(page)), read(&kept.join(page)));
        let differs = now.lines().zip(there.lines()).find(|(now, there)| now != there);
        assert!(now == there, "{}: {differs:?}; `make reference` writes it", page.display());
    }
    for page in files(&kept).iter().filter(|page| !pages.contains(page)) {
        assert!(!read(&kept.join(page)).contains(MARK), "nothing writes {} any more", page.display());
    }
}

#[test]
fn every_stage_and_command_has_its_heading() {
    let sandbox = Sandbox::new();
    let stages: serde_json::Value = serde_json::from_str(&sandbox.stdout(&["stages", "--json"])).unwrap();
    let text: String = pages_below("docs/reference").iter().map(|page| read(page)).collect();
    for stage in stages.as_array().unwrap() {
        let kind = stage["kind"].as_str().unwrap();
        assert!(text.contains(&format!("\n## {kind}\n")), "{kind}");
    }
    for command in ["init", "run", "query", "topology refresh", "checkpoint prune", "man"] {
        assert!(text.contains(&format!("\n## hopmap {command}\n")), "{command}");
    }
}

#[test]
fn the_summary_lists_every_page_once() {
    let folder = project().join("docs");
    let summary = read(&folder.join("SUMMARY.md"));
    let mut listed: Vec<PathBuf> =
        links(&summary).into_iter().map(|(_, target)| folder.join(target)).collect();
    let mut pages = pages_below("docs");
    pages.retain(|page| !page.ends_with("SUMMARY.md"));
    listed.sort();
    pages.sort();
    assert_eq!(listed, pages);
}

#[test]
fn every_link_leads_somewhere() {
    let roots = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    let pages = roots.iter().map(|name| project().join(name)).chain(pages_below("docs"));
    let (mut broken, mut followed) = (Vec::new(), 0);
    for page in pages {
        let text = read(&page);
        for (line, target) in links(&text) {
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let there = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            let is_there = there.exists()
                && (anchor.is_empty() || anchors(&read(&there)).iter().any(|other| other == anchor));
            if !is_there {
                broken.push(format!("{}:{line}: {target}", page.display()));
            }
            followed += 1;
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(followed > 300, "{followed}");
}

#[test]
fn pages_at_the_root_stay_short() {
    for (name, most) in [("README.md", 130), ("ARCHITECTURE.md", 120)] {
        let text = read(&project().join(name));
        let lines = text.lines().count();
        assert!(lines <= most, "{name} has {lines} lines");
        let is_long = |line: &&str| line.chars().count() > 120 && !line.starts_with(['|', '!']);
        assert_eq!(text.lines().find(is_long), None, "{name}");
    }
}
