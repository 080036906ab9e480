//! Which file of a crate imports which, read off the text: `use` lines and qualified paths, followed through re-exports to the
//! file that defines the name.
//!
//! Neither `mod x;` nor a re-export is an import: a file that only hands names on imports nothing. Of a top-level module a re-export
//! is one, and so is a path through another that hands a name on. Code under `#[cfg(test)]` does
//! not count. What the text does not say is not seen: methods, fields, and items that a macro makes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::tokens::{Token, tokens};

/// The files of a crate, and what they take from each other.
pub(crate) struct Imports {
    project: PathBuf,
    modules: Vec<Module>,
    /// Names that the first file takes from the second.
    taken: Taken,
    /// The same of top-level modules.
    between: Taken,
    /// The modules that define a macro.
    macros: BTreeMap<String, BTreeSet<usize>>,
}

type Taken = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// A module of the crate, in a file of its own or not.
#[derive(Default)]
struct Module {
    file: PathBuf,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Functions, types, constants and macros defined here.
    items: BTreeSet<String>,
    /// What `use` lines bring into scope: the name here, and the path.
    aliases: Vec<Alias>,
    /// Paths whose names are all brought into scope.
    globs: Vec<Vec<String>>,
    /// Paths in code: more than one word, or one that may come from a glob.
    paths: BTreeSet<Vec<String>>,
}

struct Alias {
    name: String,
    path: Vec<String>,
    is_reexport: bool,
}

/// What a path refers to.
enum Target {
    Module(usize),
    /// A name, and the module that defines it.
    Item(usize, String),
}

/// Names that were looked for already: module, name, and whether it is the last of its path.
type Seen = BTreeSet<(usize, String, bool)>;

/// Files that import each other, directly or through others.
pub(crate) struct Cycle {
    files: Vec<String>,
    /// From, to, and the names that the one takes from the other.
    ties: Vec<(String, String, BTreeSet<String>)>,
}

impl Imports {
    /// Reads a crate from its root file on; files are named as seen from the project.
    pub(crate) fn of(root: &Path, project: &Path) -> Self {
        let mut imports = Self {
            project: project.to_owned(),
            modules: Vec::new(),
            taken: Taken::new(),
            between: Taken::new(),
            macros: BTreeMap::new(),
        };
        imports.file(root, root.parent().unwrap(), None);
        for module in 0..imports.modules.len() {
            imports.follow(module);
        }
        imports
    }

    /// The top-level modules in place of the files.
    pub(crate) fn of_modules(self) -> Self {
        Self { taken: self.between, between: Taken::new(), ..self }
    }

    /// Every group of files that import each other.
    pub(crate) fn cycles(&self) -> Vec<Cycle> {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            self.taken.keys().map(|file| (file.as_str(), self.reached(file))).collect();
        let mut left: BTreeSet<&str> =
            reached.iter().filter(|(file, reached)| reached.contains(*file)).map(|(file, _)| *file).collect();
        let mut cycles = Vec::new();
        while let Some(first) = left.first().copied() {
            let is_in = |file: &str| reached[first].contains(file) && reached[file].contains(first);
            let files: Vec<String> =
                left.iter().filter(|file| is_in(file)).map(|&file| file.to_owned()).collect();
            left.retain(|file| !is_in(file));
            let ties = files.iter().flat_map(|from| {
                let inside = self.taken[from].iter().filter(|(to, _)| files.contains(to));
                inside.map(|(to, names)| (from.clone(), to.clone(), names.clone()))
            });
            cycles.push(Cycle { ties: ties.collect(), files });
        }
        cycles
    }

    /// Names that other files take from the first file of the crate, which only hands them on.
    pub(crate) fn facades(&self) -> Vec<String> {
        let root = &self.modules[0];
        let mut found = Vec::new();
        for this in self.modules.iter().filter(|this| this.file != root.file) {
            for path in this.aliases.iter().map(|alias| &alias.path).chain(&this.paths) {
                if let [first, name, ..] = &path[..]
                    && (first == "crate" || (first == "super" && this.parent == Some(0)))
                    && !root.children.contains_key(name)
                    && root.aliases.iter().any(|alias| alias.name == *name)
                {
                    found.push(format!("{}: {}\n", this.file.display(), path.join("::")));
                }
            }
        }
        found
    }

    /// All files that a file imports, directly or through others.
    fn reached<'a>(&'a self, file: &'a str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut open = vec![file];
        while let Some(file) = open.pop() {
            for next in self.taken.get(file).into_iter().flat_map(BTreeMap::keys) {
                if found.insert(next.as_str()) {
                    open.push(next);
                }
            }
        }
        found
    }

    /// Reads a file and the files of its modules; those are below `folder`.
    fn file(&mut self, file: &Path, folder: &Path, parent: Option<usize>) -> usize {
        let text =
            std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let module = self.module(file, parent);
        self.body(module, &tokens(&text), folder);
        module
    }

    fn module(&mut self, file: &Path, parent: Option<usize>) -> usize {
        self.modules.push(Module { file: file.to_owned(), parent, ..Module::default() });
        self.modules.len() - 1
    }

    /// Reads the contents of a module.
    fn body(&mut self, module: usize, code: &[Token], folder: &Path) {
        let (mut at, mut depth, mut path_of_module) = (0, 0_usize, None);
        while at < code.len() {
            let word = code[at].word();
            match &code[at] {
                Token::Mark('#') => {
                    let end = attribute_end(code, at);
                    let attribute = &code[at..end];
                    at = end;
                    if is_for_tests(attribute) {
                        at = item_end(code, at);
                    } else if attribute.get(2).is_some_and(|first| first.word() == "path") {
                        path_of_module = attribute.iter().find_map(Token::text);
                    }
                    for text in attribute.iter().filter_map(Token::text).filter(|text| text.contains("::")) {
                        self.paths(module, &tokens(text));
                    }
                    continue;
                }
                Token::Mark('{' | '(' | '[') => depth += 1,
                Token::Mark('}' | ')' | ']') => depth = depth.saturating_sub(1),
                _ => {}
            }
            match word {
                "use" => {
                    let end =
                        (at..code.len()).find(|&end| code[end] == Token::Mark(';')).unwrap_or(code.len());
                    let before = code[..at].last();
                    let is_reexport = before.is_some_and(|before| {
                        before.word() == "pub" || (*before == Token::Mark(')') && is_visibility(&code[..at]))
                    });
                    self.uses(module, &code[at + 1..end], &mut Vec::new(), is_reexport);
                    at = end;
                }
                "mod" if depth == 0 => {
                    let name = code[at + 1].word().to_owned();
                    let inner = folder.join(&name);
                    let child = if code.get(at + 2) == Some(&Token::Mark('{')) {
                        let end = closing(code, at + 2);
                        let child = self.module(&self.modules[module].file.clone(), Some(module));
                        self.body(child, &code[at + 3..end], &inner);
                        at = end;
                        child
                    } else {
                        at += 2;
                        let beside = self.modules[module].file.parent().unwrap().to_owned();
                        let places = match path_of_module.take() {
                            Some(path) => vec![beside.join(path)],
                            None => vec![inner.with_extension("rs"), inner.join("mod.rs")],
                        };
                        let file = places.iter().find(|place| place.is_file());
                        let file =
                            file.unwrap_or_else(|| panic!("no file of {name} in {}", folder.display()));
                        self.file(file, &inner, Some(module))
                    };
                    self.modules[module].children.insert(name, child);
                }
                "macro_rules" => {
                    let name = code.get(at + 2).map_or("", Token::word).to_owned();
                    self.modules[module].items.insert(name.clone());
                    self.macros.entry(name).or_default().insert(module);
                    at += 2;
                }
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" if depth == 0 => {
                    let modifiers = ["mut", "fn", "unsafe", "async", "extern"];
                    let name = code[at + 1..].iter().find(|token| !modifiers.contains(&token.word()));
                    self.modules[module].items.insert(name.map_or("", Token::word).to_owned());
                }
                "" => {}
                _ => {
                    let end = path_end(code, at);
                    let before = at.checked_sub(1).map(|before| &code[before]);
                    if before != Some(&Token::Mark('.')) && before != Some(&Token::Path) {
                        self.paths(module, &code[at..(end + 1).min(code.len())]);
                    }
                    at = end - 1;
                }
            }
            at += 1;
        }
    }

    /// Remembers the path at the beginning of some code.
    fn paths(&mut self, module: usize, code: &[Token]) {
        let end = path_end(code, 0);
        let path: Vec<String> =
            code[..end].iter().map(Token::word).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let is_name = path.len() > 1
            || path[0].starts_with(char::is_uppercase)
            || code.get(end).is_some_and(|after| matches!(after, Token::Mark('(' | '!' | '{')));
        if is_name {
            self.modules[module].paths.insert(path);
        }
    }

    /// Reads the tree of a `use` line.
    fn uses(&mut self, module: usize, code: &[Token], before: &mut Vec<String>, is_reexport: bool) {
        let length = before.len();
        let mut at = 0;
        while at < code.len() {
            match &code[at] {
                Token::Mark('{') => {
                    let end = closing(code, at);
                    for part in parts(&code[at + 1..end]) {
                        self.uses(module, part, before, is_reexport);
                    }
                    before.truncate(length);
                    return;
                }
                Token::Mark('*') => {
                    self.modules[module].globs.push(std::mem::take(before));
                    return;
                }
                Token::Word(word) if word == "as" => break,
                Token::Word(word) => before.push(word.clone()),
                _ => {}
            }
            at += 1;
        }
        let mut path = before.clone();
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        let renamed = code.get(at + 1).map(Token::word);
        if let Some(name) = renamed.or(path.last().map(String::as_str)).map(str::to_owned) {
            self.modules[module].aliases.push(Alias { name, path, is_reexport });
        }
        before.truncate(length);
    }

    /// Enters what a module takes from other files.
    fn follow(&mut self, module: usize) {
        let this = &self.modules[module];
        let aliases = this.aliases.iter().map(|alias| (&alias.path, !alias.is_reexport));
        let mut found = Vec::new();
        for (path, is_import) in aliases.chain(this.paths.iter().map(|path| (path, true))) {
            match self.resolve(module, path, &mut Seen::new()) {
                Some(Target::Item(owner, name)) => found.push((owner, name, is_import)),
                Some(Target::Module(owner)) => found.push((owner, path[path.len() - 1].clone(), false)),
                None => {}
            }
            if let [first, name, ..] = &path[..]
                && let Some(&part) = self.modules[0].children.get(name).filter(|_| first == "crate")
            {
                found.push((part, name.clone(), false));
            }
        }
        for path in this.paths.iter().filter(|path| path.len() == 1) {
            let owners = self.macros.get(&path[0]).filter(|owners| owners.len() == 1);
            found.extend(owners.into_iter().flatten().map(|&owner| (owner, path[0].clone(), true)));
        }
        let shown = |file: &Path| file.strip_prefix(&self.project).unwrap_or(file).display().to_string();
        let part = |file: &str| {
            file.trim_start_matches("src/").split(['/', '.']).next().unwrap_or_default().to_owned()
        };
        let file = shown(&this.file);
        for (owner, name, is_import) in found {
            let other = shown(&self.modules[owner].file);
            enter(&mut self.between, part(&file), part(&other), &name);
            if is_import {
                enter(&mut self.taken, file.clone(), other, &name);
            }
        }
    }

    /// What a path refers to, seen from a module; nothing if it belongs to another crate.
    fn resolve(&self, module: usize, path: &[String], seen: &mut Seen) -> Option<Target> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(module),
            "super" => Target::Module(self.modules[module].parent?),
            name => self.named(module, name, rest.is_empty(), seen)?,
        };
        while let (Target::Module(inner), Some((next, after))) = (&at, rest.split_first()) {
            at = match next.as_str() {
                "super" => Target::Module(self.modules[*inner].parent?),
                // What is not found there is made by a macro.
                name => self
                    .named(*inner, name, after.is_empty(), seen)
                    .unwrap_or_else(|| Target::Item(*inner, name.to_owned())),
            };
            rest = after;
        }
        Some(at)
    }

    /// What a name refers to in a module. A module and an item may have the same name: before `::` it is the module.
    fn named(&self, module: usize, name: &str, is_last: bool, seen: &mut Seen) -> Option<Target> {
        let this = &self.modules[module];
        let child = this.children.get(name).map(|&child| Target::Module(child));
        if child.is_some() && !is_last {
            return child;
        }
        // Before `::` no function is meant.
        if this.items.contains(name) && (is_last || name.starts_with(char::is_uppercase)) {
            return Some(Target::Item(module, name.to_owned()));
        }
        // Re-exports in a cycle lead nowhere.
        if !seen.insert((module, name.to_owned(), is_last)) {
            return child;
        }
        for alias in this.aliases.iter().filter(|alias| alias.name == name) {
            if let Some(target) = self.resolve(module, &alias.path, seen) {
                return Some(target);
            }
        }
        for glob in &this.globs {
            if let Some(Target::Module(inner)) = self.resolve(module, glob, seen)
                && let Some(target) = self.named(inner, name, is_last, seen)
            {
                return Some(target);
            }
        }
        child
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} import each other:", self.files.len())?;
        for (from, to, names) in &self.ties {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            writeln!(f, "  {from} → {to}: {}", names.join(", "))?;
        }
        Ok(())
    }
}

fn enter(taken: &mut Taken, from: String, to: String, name: &str) {
    if from != to {
        taken.entry(to.clone()).or_default();
        taken.entry(from).or_default().entry(to).or_default().insert(name.to_owned());
    }
}

/// Where a path that begins here ends.
fn path_end(code: &[Token], begin: usize) -> usize {
    let mut end = begin + 1;
    while code.get(end) == Some(&Token::Path) && code.get(end + 1).is_some_and(|next| !next.word().is_empty())
    {
        end += 2;
    }
    end
}

/// Where the bracket closes that opens here.
fn closing(code: &[Token], begin: usize) -> usize {
    let mut depth = 0;
    for (place, token) in code.iter().enumerate().skip(begin) {
        match token {
            Token::Mark('{' | '(' | '[') => depth += 1,
            Token::Mark('}' | ')' | ']') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return place;
        }
    }
    code.len()
}

/// The first token after an attribute.
fn attribute_end(code: &[Token], begin: usize) -> usize {
    let bracket = begin + 1 + usize::from(code.get(begin + 1) == Some(&Token::Mark('!')));
    match code.get(bracket) {
        Some(Token::Mark('[')) => (closing(code, bracket) + 1).min(code.len()),
        _ => begin + 1,
    }
}

fn is_for_tests(attribute: &[Token]) -> bool {
    let words: Vec<&str> = attribute.iter().map(Token::word).filter(|word| !word.is_empty()).collect();
    words.contains(&"cfg") && words.contains(&"test") && !words.contains(&"not")
}

/// The first token after the item that begins here, which may be an element of a list.
fn item_end(code: &[Token], begin: usize) -> usize {
    let mut at = begin;
    while code.get(at) == Some(&Token::Mark('#')) {
        at = attribute_end(code, at);
    }
    let items = [
        "pub",
        "mod",
        "use",
        "fn",
        "struct",
        "enum",
        "impl",
        "trait",
        "const",
        "static",
        "type",
        "macro_rules",
    ];
    let is_item = code.get(at).is_some_and(|token| items.contains(&token.word()));
    while at < code.len() {
        match code[at] {
            Token::Mark(';') => return at + 1,
            Token::Mark(',') if !is_item => return at + 1,
            Token::Mark('{') => {
                let end = closing(code, at) + 1;
                if is_item || code.get(end) != Some(&Token::Mark(',')) {
                    return end;
                }
                at = end;
            }
            Token::Mark('(' | '[') => at = closing(code, at) + 1,
            Token::Mark('}' | ')' | ']') => return at,
            _ => at += 1,
        }
    }
    at
}

/// Whether code ends with `pub(…)`.
fn is_visibility(code: &[Token]) -> bool {
    let begin = code.iter().rposition(|token| *token == Token::Mark('('));
    begin.and_then(|begin| begin.checked_sub(1)).is_some_and(|before| code[before].word() == "pub")
}

/// The parts of a list, at its commas.
fn parts(code: &[Token]) -> Vec<&[Token]> {
    let (mut parts, mut begin, mut at) = (Vec::new(), 0, 0);
    while at < code.len() {
        match code[at] {
            Token::Mark('{') => at = closing(code, at),
            Token::Mark(',') => {
                parts.push(&code[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(&code[begin.min(code.len())..]);
    parts.retain(|part| !part.is_empty());
    parts
}

#[test]
fn a_cycle_is_found_through_re_exports_and_qualified_paths() {
    let project = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = project.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    write("lib.rs", "mod one;\nmod two;\npub use two::{Two, inner as deep};\n#[cfg(test)]\nmod absent;\n");
    write("one.rs", "use crate::{Two, deep};\n// use crate::three;\npub(crate) struct One(Two);\n");
    write(
        "two.rs",
        "pub(crate) mod inner;\npub struct Two;\n#[cfg(test)]\nmod tests { use super::inner::leaf; }\n",
    );
    write(
        "two/inner.rs",
        "fn leaf<'a>(x: &'a str) -> String { format!(\"{}\", crate::one::One::name('x')) }\n",
    );
    let imports = || Imports::of(&project.path().join("lib.rs"), project.path());
    assert!(imports().cycles().is_empty());
    let file = project.path().join("one.rs").display().to_string();
    assert_eq!(imports().facades(), ["Two", "deep"].map(|name| format!("{file}: crate::{name}\n")));
    // A module is more than its first file.
    assert_eq!(
        imports().of_modules().cycles()[0].to_string(),
        "2 import each other:\n  one → two: Two, deep\n  two → one: One, one\n"
    );
    write("two.rs", "pub(crate) mod inner;\npub struct Two;\nfn two() { inner::leaf(\"\"); }\n");
    let found = imports().cycles();
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].to_string(),
        "3 import each other:\n  one.rs → two.rs: Two\n  two.rs → two/inner.rs: leaf\n  two/inner.rs → one.rs: One\n"
    );
}
