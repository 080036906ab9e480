//! The words of identifiers, as `CONTRIBUTING.md` lists them.

use std::path::PathBuf;

use crate::architecture::{in_src, is_test_module, sources};
use crate::sandbox::project;
use crate::tokens::{Token, tokens};

/// Terms of the field with a word that by itself is none.
const TERMS: [&str; 3] = ["one_way", "two_way", "both_ways"];

/// A word that no type, function, field or constant has; with a capital letter, that no type and variant has.
struct Refused {
    word: String,
    /// What to say in its place.
    better: String,
}

/// The bold words in the last column of the list.
fn refused() -> Vec<Refused> {
    let page = std::fs::read_to_string(project().join("CONTRIBUTING.md")).unwrap();
    let (_, words) = page.split_once("## Words").unwrap();
    let rows = words.split("\n## ").next().unwrap().lines().filter(|line| line.starts_with("| "));
    let row = |row: &str| {
        let columns: Vec<String> = row.split('|').map(|column| column.trim().to_owned()).collect();
        let bold = columns[3].split("**").skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        bold.into_iter().map(move |word| Refused { word, better: format!("{}: {}", columns[1], columns[2]) })
    };
    rows.flat_map(row).collect()
}

/// The names that a text defines: types, functions, constants and modules, fields and variants.
fn definitions(text: &str) -> Vec<String> {
    const DEFINE: [&str; 9] = ["struct", "enum", "union", "trait", "type", "fn", "const", "static", "mod"];
    let tokens = tokens(text);
    let mut found = Vec::new();
    for (index, pair) in tokens.windows(2).enumerate() {
        if DEFINE.contains(&pair[0].word()) && !pair[1].word().is_empty() {
            found.push(pair[1].word().to_owned());
            if ["struct", "enum"].contains(&pair[0].word()) {
                found.extend(members(&tokens[index..]));
            }
        }
    }
    found
}

/// Fields and variants of the type that begins here, if it has a body in braces.
fn members(tokens: &[Token]) -> Vec<String> {
    let ends = |token: &Token| matches!(token, Token::Mark('{' | ';'));
    let Some(begin) = tokens.iter().position(ends).filter(|&begin| tokens[begin] == Token::Mark('{')) else {
        return Vec::new();
    };
    let is_enum = tokens[0].word() == "enum";
    let mut depth = 0;
    let mut found = Vec::new();
    for three in tokens[begin..].windows(3) {
        match three[0] {
            Token::Mark('{' | '(' | '[') => depth += 1,
            Token::Mark('}' | ')' | ']') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        let is_variant = is_enum && depth == 1 && matches!(three[0], Token::Mark('{' | ',' | ']'));
        if !three[1].word().is_empty() && (is_variant || three[2] == Token::Mark(':')) {
            found.push(three[1].word().to_owned());
        }
    }
    found
}

/// The words of a name, in small letters: `InTheWay` and `in_the_way` have the same.
fn words(name: &str) -> Vec<String> {
    let mut snake = String::new();
    for (index, letter) in name.char_indices() {
        let is_new = letter.is_uppercase() && name[..index].ends_with(|last: char| last.is_lowercase());
        snake.extend(is_new.then_some('_'));
        snake.extend(letter.to_lowercase());
    }
    let snake = TERMS.into_iter().fold(snake, |snake, term| snake.replace(term, ""));
    snake.split('_').map(|word| word.strip_suffix('s').unwrap_or(word).to_owned()).collect()
}

/// Whether a name is one of types and variants, and not that of a constant.
fn is_type(name: &str) -> bool {
    name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase)
}

#[test]
fn names_have_the_words_of_the_list() {
    let refused = refused();
    assert!(refused.len() >= 5, "CONTRIBUTING.md lists {} bold words", refused.len());
    let product = |(path, text): (PathBuf, String)| {
        let is_product = in_src(&path) && !path.ends_with("tests.rs") && !is_test_module(&path);
        is_product.then(|| (path, text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned()))
    };
    let mut wrong = String::new();
    for (path, text) in sources().into_iter().filter_map(product) {
        for name in definitions(&text) {
            let has = |Refused { word, .. }: &&Refused| {
                let is_in_kind = !word.starts_with(char::is_uppercase) || is_type(&name);
                is_in_kind && words(&name).contains(&word.to_lowercase())
            };
            for Refused { word, better } in refused.iter().filter(has) {
                let path = path.display();
                wrong.push_str(&format!("{path}: `{name}` has the word {word}; the list has {better}\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn names_of_all_kinds_are_found() {
    let text = "struct OneWay { a_way: Vec<(u32, Way)>, #[serde(default)] pub(crate) b: [u8; 2] }
        enum Circle { OnWay, #[x] Other(Foo), Third { field: u8 } } struct Tuple(u32); fn two<T: Copy>(argument: T) {}";
    let found = definitions(text);
    let expected = ["OneWay", "a_way", "b", "Circle", "OnWay", "Other", "Third", "field", "Tuple", "two"];
    assert_eq!(found, expected);
    assert_eq!(words("OnWays"), ["on", "way"]);
    assert_eq!(words("both_ways"), [""]);
}
