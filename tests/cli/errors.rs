//! The codes of errors: every error of the sources has one, none twice, and `docs/reference/errors.md` lists them all.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::architecture::sources;
use crate::sandbox::project;
use crate::tokens::{Token, tokens};

/// `make reference` sets it to have the page written.
const WRITE: &str = "HOPMAP_WRITE_ERRORS";

/// An error of the sources.
#[derive(Debug, Default)]
struct Listed {
    /// The type, or the variant.
    name: String,
    code: Option<String>,
    message: String,
    help: Option<String>,
}

/// Codes that no type derives.
const OTHERS: [(&str, &str); 4] = [
    (
        "command::arguments",
        "The arguments of a command are wrong: an option is unknown, or a value is missing or invalid.",
    ),
    (
        "pipeline::invalid",
        "The text of a pipeline file, of `-p` or of an option is wrong; the message says where.",
    ),
    ("query::sql", "The SQL of a query is wrong; the message says where."),
    (
        "query::version",
        "hopmap and hopmap-query have different versions: install both from the same sources.",
    ),
];

/// The text of a group such as `(…)` that begins at a place.
fn group(tokens: &[Token], begin: usize) -> &[Token] {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(begin) {
        match token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &tokens[begin + 1..at];
        }
    }
    panic!("a bracket is never closed")
}

/// What is in `name(…)`.
fn inside<'a>(tokens: &'a [Token], name: &str) -> Option<&'a [Token]> {
    let is_it = |pair: &[Token]| pair[0].word() == name && pair[1] == Token::Mark('(');
    tokens.windows(2).position(is_it).map(|at| group(tokens, at + 1))
}

/// The attributes from a place on, and the place behind them.
fn attributes(tokens: &[Token], mut at: usize) -> (Vec<&[Token]>, usize) {
    let mut found = Vec::new();
    while tokens[at] == Token::Mark('#') {
        found.push(group(tokens, at + 1));
        at += found[found.len() - 1].len() + 3;
    }
    (found, at)
}

/// A text with its values in braces: `"{} has {0}", path.display()` becomes `{path} has {…}`.
fn template(tokens: &[Token]) -> Option<String> {
    let (at, text) = tokens.iter().enumerate().find_map(|(at, token)| Some((at, token.text()?)))?;
    let mut values =
        tokens[at + 1..].split(|token| *token == Token::Mark(',')).filter(|value| !value.is_empty());
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, (inside, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        let name = inside.split(':').next().unwrap_or_default();
        let name = match name.is_empty() {
            true => {
                let is_name = |word: &&str| !["", "shell_word"].contains(word);
                values.next().and_then(|value| value.iter().map(Token::word).find(is_name))
            }
            false => Some(name),
        };
        let name = name.filter(|name| !name.starts_with(|first: char| first.is_ascii_digit()));
        write!(shown, "{before}{{{}}}", name.unwrap_or("…")).unwrap();
        rest = after;
    }
    Some((shown + rest).split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The error that attributes describe; none if another type has all that there is to say.
fn listed(name: &str, attributes: &[&[Token]]) -> Option<Listed> {
    let of = |name: &'static str| attributes.iter().filter(move |attribute| attribute[0].word() == name);
    let mut both = of("error").chain(of("diagnostic"));
    if both.any(|attribute| attribute[2..].iter().any(|token| token.word() == "transparent")) {
        return None;
    }
    let mut listed = Listed { name: name.to_owned(), ..Listed::default() };
    for attribute in of("error") {
        listed.message = template(attribute).unwrap_or_default();
    }
    for attribute in of("diagnostic") {
        let code = inside(attribute, "code");
        let text =
            |token: &Token| if *token == Token::Path { "::".to_owned() } else { token.word().to_owned() };
        listed.code = listed.code.or(code.map(|code| code.iter().map(text).collect()));
        listed.help = listed.help.or(inside(attribute, "help").and_then(template));
    }
    Some(listed)
}

/// All types of a file that derive `Diagnostic`, an enum by its variants.
fn errors_of(tokens: &[Token]) -> Vec<Listed> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let derives = tokens[at] == Token::Mark('#')
            && tokens.get(at + 2).is_some_and(|word| word.word() == "derive")
            && group(tokens, at + 1).iter().any(|word| word.word() == "Diagnostic");
        if !derives {
            continue;
        }
        let (own, item) = attributes(tokens, at);
        let is_kind = |token: &Token| matches!(token.word(), "enum" | "struct");
        let kind = item + tokens[item..].iter().position(is_kind).unwrap();
        if tokens[kind].word() == "struct" {
            found.extend(listed(tokens[kind + 1].word(), &own));
            continue;
        }
        let body = kind + tokens[kind..].iter().position(|token| *token == Token::Mark('{')).unwrap();
        let (variants, mut next) = (group(tokens, body), 0);
        while next < variants.len() {
            let (its, name) = attributes(variants, next);
            found.extend(listed(variants[name].word(), &its));
            next = name + 1;
            if let Some(Token::Mark('(' | '{')) = variants.get(next) {
                next += group(variants, next).len() + 2;
            }
            next += 1;
        }
    }
    found
}

/// All errors by their codes.
fn errors() -> BTreeMap<String, Listed> {
    let mut errors = BTreeMap::new();
    for (path, text) in sources() {
        for listed in errors_of(&tokens(&text)) {
            let code = listed.code.clone();
            let code = code.unwrap_or_else(|| panic!("{}: `{}` has no code", path.display(), listed.name));
            let other = errors.insert(code.clone(), listed);
            assert!(other.is_none(), "{}: {code} is there twice", path.display());
        }
    }
    errors
}

fn page(errors: &BTreeMap<String, Listed>) -> String {
    let mut page = "# Error codes\n\n\
        <!-- Written by `make reference` from the sources. Change the sources instead. -->\n\n\
        An error begins with its code: `error[trace::damaged]: …`. With `--json`, the field `code` has it. \
        Codes are stable; messages may change. Names in braces are values.\n"
        .to_owned();
    let mut all: BTreeMap<&str, String> = errors
        .iter()
        .map(|(code, Listed { message, help, .. })| {
            let help = help.as_ref().map(|help| format!("\nHelp: {}\n", escaped(help)));
            (code.as_str(), format!("{}\n{}", escaped(message), help.unwrap_or_default()))
        })
        .collect();
    all.extend(OTHERS.map(|(code, text)| (code, format!("{text}\n"))));
    let mut area = "";
    for (code, text) in &all {
        let (own, _) = code.split_once("::").unwrap();
        if own != area {
            write!(page, "\n## {own}\n").unwrap();
            area = own;
        }
        write!(page, "\n### {code}\n\n{text}").unwrap();
    }
    page
}

/// A text that Markdown shows unchanged; text in backquotes stays.
fn escaped(text: &str) -> String {
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => part.replace('<', "\\<").replace('*', "\\*").replace('[', "\\["),
        _ => part.to_owned(),
    };
    text.split('`').enumerate().map(part).collect::<Vec<_>>().join("`")
}

#[test]
fn every_error_has_a_code_of_its_own_and_the_page_lists_them() {
    let errors = errors();
    assert!(errors.len() > 200, "{}", errors.len());
    let (page, kept) = (page(&errors), project().join("docs/reference/errors.md"));
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&kept, &page).unwrap();
    }
    let there = std::fs::read_to_string(&kept).unwrap_or_default();
    let differs = page.lines().zip(there.lines()).find(|(now, there)| now != there);
    assert!(page == there, "{differs:?}; `make reference` writes the page");
}

#[test]
fn errors_are_read_off_the_sources() {
    let text = r#"
        /// It.
        #[derive(Debug, thiserror::Error, Diagnostic)]
        pub enum E {
            #[error(transparent)]
            #[diagnostic(transparent)]
            Other(#[from] F),
            #[error("{} has \"{n:?}\" of {0}", path.display())]
            #[diagnostic(code(a::damaged), help("copy {}", place))]
            Damaged { path: PathBuf, n: u8 },
            #[error("no")]
            Gone,
        }
        #[derive(Diagnostic)]
        #[error("{problem}")]
        #[diagnostic(code(a::invalid))]
        struct F { #[help] help: Option<String> }
    "#;
    let found: Vec<String> = errors_of(&tokens(text))
        .into_iter()
        .map(|Listed { name, code, message, help }| format!("{name} {code:?} {message} {help:?}"))
        .collect();
    assert_eq!(
        found,
        [
            r#"Damaged Some("a::damaged") {path} has "{n}" of {…} Some("copy {place}")"#,
            "Gone None no None",
            r#"F Some("a::invalid") {problem} None"#,
        ]
    );
}
