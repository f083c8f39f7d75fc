use std::borrow::Cow;

use crate::colour::{Ground, Paint, colour, ground};

/// What a style says that matters for whether text is seen.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Style {
    pub(crate) hidden: bool,
    /// Whether `display` takes it away; the last word holds.
    pub(crate) display_none: Option<bool>,
    /// Size of the letters is nothing; a size below ends it.
    pub(crate) no_size: Option<bool>,
    pub(crate) colour: Option<Paint>,
    pub(crate) background: Option<Ground>,
    pub(crate) struck: bool,
    /// A border was taken away, as by the indent of a mail program.
    pub(crate) borderless: bool,
}

/// Reads declarations, as in a `style` attribute.
pub(crate) fn declarations(text: &str) -> Style {
    let mut style = Style::default();
    let mut no_height = false;
    let mut cut = false;
    let mut off = false;
    for declaration in without_comments(text).split(';') {
        let Some((name, value)) = declaration.split_once(':') else { continue };
        let value = value.trim().trim_end_matches("!important").trim().to_ascii_lowercase();
        let zero = is_zero(&value);
        match name.trim().to_ascii_lowercase().as_str() {
            "display" => style.display_none = Some(value == "none"),
            "visibility" => style.hidden |= value == "hidden" || value == "collapse",
            "mso-hide" => style.hidden |= value == "all",
            "opacity" => style.hidden |= value.parse::<f32>().is_ok_and(|opacity| opacity <= 0.05),
            "font-size" => style.no_size = Some(tiny(&value)),
            "font" => {
                if let Some(size) =
                    value.split_whitespace().find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()))
                {
                    style.no_size = Some(tiny(size.split('/').next().unwrap_or(size)));
                }
            }
            "height" | "max-height" | "width" | "max-width" | "line-height" => no_height |= zero,
            "overflow" | "overflow-x" | "overflow-y" => cut |= value == "hidden",
            "text-indent" | "left" | "top" | "margin-left" | "margin-top" | "right" => off |= far_off(&value),
            "clip" | "clip-path" => {
                style.hidden |= value.contains("rect(0") || value.contains("inset(50%") || value.contains("inset(100%");
            }
            "filter" => style.hidden |= value.replace(' ', "").contains("opacity(0)"),
            "transform" => style.hidden |= value.contains("scale(0)"),
            "color" => style.colour = colour(&value).or(style.colour),
            "background-color" | "background" | "background-image" => {
                style.background = ground(&value).or(style.background);
            }
            "text-decoration" | "text-decoration-line" => style.struck |= value.contains("line-through"),
            "border" | "border-left" => style.borderless |= value.starts_with("none") || zero,
            _ => {}
        }
    }
    style.hidden |= (no_height && cut) || off;
    style
}

/// One rule of a `<style>` element that hides or shows, with the plain selector it is for.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    selector: Selector,
    pub(crate) style: Style,
}

#[derive(Clone, Debug)]
enum Selector {
    Class(String),
    Id(String),
    Tag(String),
    Any,
}

impl Rule {
    pub(crate) fn fits(&self, tag: &str, class: &str, id: &str) -> bool {
        match &self.selector {
            Selector::Class(name) => class.split_whitespace().any(|one| one.eq_ignore_ascii_case(name)),
            Selector::Id(name) => id.eq_ignore_ascii_case(name),
            Selector::Tag(name) => tag.eq_ignore_ascii_case(name),
            Selector::Any => true,
        }
    }
}

/// Reads a style sheet: rules with a selector of one class, id or tag. What stands in an `@` block (a small screen, a
/// printer) may or may not hold, and is left out.
pub(crate) fn sheet(text: &str) -> Vec<Rule> {
    const MOST: usize = 500;
    let mut rules = vec![];
    let text = without_comments(text);
    let mut rest = &text[..];
    while let Some(open) = rest.find('{') {
        let selectors =
            rest[..open].rsplit(['}', ';']).next().unwrap_or_default().trim().trim_start_matches("<!--").trim();
        let after = &rest[open + 1..];
        if selectors.starts_with('@') {
            rest = &after[block_end(after)..];
            continue;
        }
        let close = after.find('}').unwrap_or(after.len());
        let style = declarations(&after[..close]);
        for selector in selectors.split(',') {
            let selector = selector.trim();
            let (tag, name) = selector.split_at(selector.find(['.', '#']).unwrap_or(selector.len()));
            let plain = |name: &str| {
                !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "-_".contains(letter))
            };
            let selector = match name.split_at_checked(1) {
                Some((".", class)) if plain(class) => Selector::Class(class.to_owned()),
                Some(("#", id)) if plain(id) => Selector::Id(id.to_owned()),
                None if tag == "*" => Selector::Any,
                None if plain(tag) => Selector::Tag(tag.to_owned()),
                _ => continue,
            };
            if style != Style::default() && rules.len() < MOST {
                rules.push(Rule { selector, style });
            }
        }
        rest = &after[close..];
    }
    rules
}

fn without_comments(text: &str) -> Cow<'_, str> {
    if !text.contains("/*") {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        plain.push_str(before);
        plain.push(' ');
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Where a block that may hold blocks ends.
fn block_end(text: &str) -> usize {
    let mut depth = 1;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

fn number(value: &str) -> Option<f32> {
    value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == '%').parse().ok()
}

fn is_zero(value: &str) -> bool {
    number(value) == Some(0.0)
}

/// No letter can be read at this size.
fn tiny(value: &str) -> bool {
    let Some(size) = number(value) else { return false };
    if value.ends_with("em") {
        size <= 0.1
    } else if value.ends_with('%') {
        size <= 10.0
    } else {
        size <= 2.0
    }
}

fn far_off(value: &str) -> bool {
    number(value).is_some_and(|size| size.abs() >= 900.0 && (size < 0.0 || !value.ends_with('%')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_told_from_what_only_looks_like_it() {
        for hides in [
            "display:none",
            "DISPLAY : None !important",
            "visibility:hidden",
            "opacity:0",
            "max-height:0;overflow:hidden",
            "text-indent:-9999px",
            "mso-hide:all",
        ] {
            let style = declarations(hides);
            assert!(style.hidden || style.display_none == Some(true), "{hides}");
        }
        for shows in [
            "display:block",
            "display:none;display:block",
            "/* display:none */",
            "font-size:0.9em",
            "opacity:0.9",
            "max-height:0",
            "line-height:0",
            "margin-left:40px",
            "color:red",
        ] {
            let style = declarations(shows);
            assert!(!style.hidden && style.display_none != Some(true) && style.no_size != Some(true), "{shows}");
        }
        assert_eq!(declarations("font-size:0px").no_size, Some(true));
        assert_eq!(declarations("font:0/0 a").no_size, Some(true));
    }

    #[test]
    fn a_sheet_gives_its_plain_rules() {
        let rules = sheet(
            "p{margin:0} /* .a{display:none} */ .pre, #x{display:none} @media print { p { display:none } } b.k{font-size:0}",
        );
        let hidden = |tag: &str, class: &str, id: &str| {
            rules.iter().any(|rule| rule.fits(tag, class, id) && rule.style.display_none == Some(true))
        };
        assert!(hidden("div", "a pre", "") && hidden("div", "", "x") && !hidden("p", "", ""));
        assert!(!hidden("p", "a", ""), "a comment is no rule");
    }
}
