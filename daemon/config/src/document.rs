//! Reads a TOML document key by key, noting every fault with its place.
//!
//! Not serde: it stops at the first fault, and cannot say which key was meant.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use ow_model::{Span, SpanError};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::FileFault;
use crate::secret::looks_like_secret;
use crate::suggest::nearest;

const SHOWN_CHARACTERS: usize = 80;

/// A text with the faults found in it so far.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    file: Option<&'a Path>,
    text: &'a str,
    faults: RefCell<Vec<FileFault>>,
}

/// Where a value stands, for faults that are found later.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) key: String,
    pub(crate) span: Range<usize>,
}

/// A value with its place.
#[derive(Clone, Debug)]
pub(crate) struct Found<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

/// A table's key, and what its number makes: `allow` in `{ allow = 3 }`.
pub(crate) type Counted<T> = (&'static str, fn(u32) -> T);

/// A table of the document. What is never asked for is unknown, and reported by `finish`.
#[derive(Debug)]
pub(crate) struct Section<'d, 'a> {
    document: &'d Document<'a>,
    place: Place,
    table: &'d DeTable<'a>,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Document<'a> {
    pub(crate) const fn new(file: Option<&'a Path>, text: &'a str) -> Self {
        Self { file, text, faults: RefCell::new(vec![]) }
    }

    /// The document's root table; what TOML itself finds wrong is noted, and then there is none.
    pub(crate) fn parse(&self) -> Option<DeTable<'a>> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        if errors.is_empty() {
            return Some(table.into_inner());
        }
        // After a fault the parser guesses; what it finds on the same line is the same fault.
        let mut last_line = 0;
        for error in errors {
            let span = error.span().unwrap_or(0..0);
            let (line, column) = self.line_and_column(span.start);
            if line == last_line {
                continue;
            }
            last_line = line;
            self.faults.borrow_mut().push(FileFault {
                file: self.file.map(Path::to_path_buf),
                line,
                column,
                key: String::new(),
                value: None,
                message: format!("not TOML: {}", error.message().trim().replace('\n', ", ")),
                remedy: self.line_remedy(line),
            });
        }
        None
    }

    pub(crate) fn root<'d>(&'d self, table: &'d DeTable<'a>) -> Section<'d, 'a> {
        let place = Place { key: String::new(), span: 0..0 };
        Section { document: self, place, table, asked: RefCell::default() }
    }

    pub(crate) fn fault(&self, place: &Place, message: impl Into<String>, remedy: impl Into<String>) {
        let (line, column) = self.line_and_column(place.span.start);
        let value = (!place.span.is_empty()).then(|| self.shown(&place.span));
        self.push(place, line, column, value, message.into(), remedy.into());
    }

    /// Notes a fault of something that is not there, or not to be shown.
    pub(crate) fn fault_without_value(&self, place: &Place, message: impl Into<String>, remedy: impl Into<String>) {
        let (line, column) = self.line_and_column(place.span.start);
        self.push(place, line, column, None, message.into(), remedy.into());
    }

    /// Notes a fault of a value that must not be repeated.
    pub(crate) fn fault_redacted(&self, place: &Place, message: impl Into<String>, remedy: impl Into<String>) {
        let (line, column) = self.line_and_column(place.span.start);
        self.push(place, line, column, Some("[redacted]".into()), message.into(), remedy.into());
    }

    /// The faults in the order of the text.
    pub(crate) fn into_faults(self) -> Vec<FileFault> {
        let mut faults = self.faults.into_inner();
        faults.sort_by_key(|fault| (fault.line, fault.column));
        faults
    }

    pub(crate) fn has_faults(&self) -> bool {
        !self.faults.borrow().is_empty()
    }

    fn push(&self, place: &Place, line: usize, column: usize, value: Option<String>, message: String, remedy: String) {
        let file = self.file.map(Path::to_path_buf);
        self.faults.borrow_mut().push(FileFault { file, line, column, key: place.key.clone(), value, message, remedy });
    }

    fn shown(&self, span: &Range<usize>) -> String {
        let text = self.text.get(span.clone()).unwrap_or_default();
        if looks_like_secret(text) {
            return "[redacted]".into();
        }
        let mut shown: String =
            text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(SHOWN_CHARACTERS).collect();
        if text.chars().nth(SHOWN_CHARACTERS).is_some() {
            shown.push('…');
        }
        shown
    }

    fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (line, column)
    }

    fn line_remedy(&self, line: usize) -> String {
        let text = self.text.lines().nth(line - 1).unwrap_or_default().trim();
        let bare = text.split_once('=').is_some_and(|(_, value)| value.trim_start().starts_with(char::is_alphabetic));
        let hint = if bare { ": a text stands in quotes" } else { "" };
        if looks_like_secret(text) {
            return format!("correct the line{hint}");
        }
        let shown: String = text.chars().filter(|letter| !letter.is_control()).take(SHOWN_CHARACTERS).collect();
        format!("correct the line `{shown}`{hint}")
    }
}

impl<'d, 'a> Section<'d, 'a> {
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn document(&self) -> &'d Document<'a> {
        self.document
    }

    pub(crate) fn value(&self, key: &'static str) -> Option<&'d Spanned<DeValue<'a>>> {
        self.asked.borrow_mut().insert(key);
        self.table.get(key)
    }

    pub(crate) fn place_of(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Place {
        Place { key: self.path(key), span: value.span() }
    }

    /// The keys of a table whose keys are names, in the order of the alphabet.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'d str, &'d Spanned<DeValue<'a>>)> {
        self.table.iter().map(|(key, value)| (key.get_ref().as_ref(), value))
    }

    pub(crate) fn text(&self, key: &'static str) -> Option<Found<String>> {
        let value = self.value(key)?;
        self.text_in(key, value, &TEXT)
    }

    fn text_in(&self, key: &str, value: &Spanned<DeValue<'_>>, wanted: &Wanted<'_>) -> Option<Found<String>> {
        let place = self.place_of(key, value);
        let DeValue::String(text) = value.get_ref() else {
            self.wrong_type(&place, value.get_ref(), wanted);
            return None;
        };
        Some(Found { value: text.to_string(), place })
    }

    /// A text that `read` understands; its error is the fault's message.
    pub(crate) fn read<T, E: std::fmt::Display>(
        &self,
        key: &'static str,
        remedy: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<Found<T>> {
        let Found { value, place } = self.text(key)?;
        match read(&value) {
            Ok(value) => Some(Found { value, place }),
            Err(error) => {
                self.document.fault(&place, error.to_string(), remedy);
                None
            }
        }
    }

    /// A span of time; 0 too.
    pub(crate) fn span(&self, key: &'static str) -> Option<Span> {
        let value = self.value(key)?;
        let found = self.text_in(key, value, &DURATION)?;
        match found.value.parse() {
            Ok(span) => return Some(span),
            Err(SpanError::Form { .. }) => {
                let remedy = "write a number and a unit, as in `90s`, `15m`, `6h`, `2d` or `1h 30m`";
                self.document.fault(&found.place, "not a duration", remedy);
            }
            Err(SpanError::TooLong { .. }) => {
                self.document.fault(&found.place, "too long a duration", "write a shorter one");
            }
        }
        None
    }

    /// A span of time within bounds.
    pub(crate) fn span_in(&self, key: &'static str, bounds: RangeInclusive<Span>) -> Option<Span> {
        let span = self.span(key)?;
        if bounds.contains(&span) {
            return Some(span);
        }
        let place = self.place_of(key, self.value(key).expect("its span was read from it"));
        let message = format!("not between {} and {}", bounds.start(), bounds.end());
        self.document.fault(&place, message, "choose a duration within these bounds");
        None
    }

    /// A whole number within bounds.
    pub(crate) fn count(&self, key: &'static str, bounds: RangeInclusive<u32>) -> Option<u32> {
        let value = self.value(key)?;
        self.count_in(key, value, bounds)
    }

    pub(crate) fn count_in(&self, key: &str, value: &Spanned<DeValue<'_>>, bounds: RangeInclusive<u32>) -> Option<u32> {
        let place = self.place_of(key, value);
        let DeValue::Integer(integer) = value.get_ref() else {
            self.wrong_type(&place, value.get_ref(), &Wanted("a whole number", "write it in digits, without quotes"));
            return None;
        };
        match i64::from_str_radix(integer.as_str(), integer.radix()).ok().and_then(|number| u32::try_from(number).ok())
        {
            Some(number) if bounds.contains(&number) => Some(number),
            _ => {
                let message = format!("not between {} and {}", bounds.start(), bounds.end());
                self.document.fault(&place, message, "choose a number within these bounds");
                None
            }
        }
    }

    /// One of a closed set of words.
    pub(crate) fn choice<T: Copy>(&self, key: &'static str, choices: &[(&str, T)]) -> Option<T> {
        self.choice_or_counted(key, choices, &[])
    }

    /// One of a closed set of words, or of a closed set of tables with one number: `{ allow = 3 }`.
    pub(crate) fn choice_or_counted<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&str, T)],
        counted: &[Counted<T>],
    ) -> Option<T> {
        let value = self.value(key)?;
        self.choice_or_counted_in(key, value, words, counted)
    }

    /// One of a closed set of words, as the value of a key that is a name.
    pub(crate) fn choice_in<T: Copy>(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        choices: &[(&str, T)],
    ) -> Option<T> {
        self.choice_or_counted_in(key, value, choices, &[])
    }

    fn choice_or_counted_in<T: Copy>(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        words: &[(&str, T)],
        counted: &[Counted<T>],
    ) -> Option<T> {
        let place = self.place_of(key, value);
        let mut forms: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        forms.extend(counted.iter().map(|(word, _)| format!("{{ {word} = N }}")));
        let forms = forms.join(", ");
        match value.get_ref() {
            DeValue::String(text) => {
                if let Some((_, choice)) = words.iter().find(|(word, _)| word == text) {
                    return Some(*choice);
                }
                let meant = nearest(text, words.iter().map(|(word, _)| *word));
                let remedy =
                    meant.map_or_else(|| format!("write one of {forms}"), |word| format!("did you mean \"{word}\"?"));
                self.document.fault(&place, "not one of the known values", remedy);
                None
            }
            DeValue::Table(table) if !counted.is_empty() => {
                let section =
                    Section { document: self.document, place: place.clone(), table, asked: RefCell::default() };
                let mut chosen = None;
                for (word, make) in counted {
                    if let Some(number) = section.value(word) {
                        let number = section.count_in(word, number, 1..=1_000_000)?;
                        chosen = Some(make(number));
                    }
                }
                if chosen.is_none() || table.len() != 1 {
                    self.document.fault(&place, "not one of the known values", format!("write one of {forms}"));
                    return None;
                }
                chosen
            }
            other => {
                self.wrong_type(&place, other, &Wanted(&format!("one of {forms}"), "write one of these"));
                None
            }
        }
    }

    /// A switch.
    pub(crate) fn flag(&self, key: &'static str) -> Option<Found<bool>> {
        let value = self.value(key)?;
        let place = self.place_of(key, value);
        let DeValue::Boolean(flag) = value.get_ref() else {
            self.wrong_type(&place, value.get_ref(), &Wanted("true or false", "write it without quotes"));
            return None;
        };
        Some(Found { value: *flag, place })
    }

    /// A list of texts; a wrong element is noted and left out.
    pub(crate) fn texts(&self, key: &'static str) -> Option<Vec<Found<String>>> {
        let value = self.value(key)?;
        let place = self.place_of(key, value);
        let DeValue::Array(array) = value.get_ref() else {
            self.wrong_type(&place, value.get_ref(), &Wanted("a list of texts", "write it as `[\"one\", \"two\"]`"));
            return None;
        };
        Some(array.iter().filter_map(|element| self.text_in(key, element, &TEXT)).collect())
    }

    /// A list of whole numbers that fit 32 bits; a wrong element is noted and left out.
    pub(crate) fn counts(&self, key: &'static str) -> Option<Vec<u32>> {
        let value = self.value(key)?;
        let place = self.place_of(key, value);
        let DeValue::Array(array) = value.get_ref() else {
            self.wrong_type(&place, value.get_ref(), &Wanted("a list of numbers", "write it as `[1000, 1001]`"));
            return None;
        };
        Some(array.iter().filter_map(|element| self.count_in(key, element, 0..=u32::MAX - 1)).collect())
    }

    /// A table.
    pub(crate) fn section(&self, key: &'static str) -> Option<Section<'d, 'a>> {
        let value = self.value(key)?;
        self.section_in(key, value)
    }

    pub(crate) fn section_in(&self, key: &str, value: &'d Spanned<DeValue<'a>>) -> Option<Section<'d, 'a>> {
        let place = self.place_of(key, value);
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_type(&place, value.get_ref(), &Wanted("a table", &format!("write it as `{key} = {{ … }}`")));
            return None;
        };
        Some(Section { document: self.document, place, table, asked: RefCell::default() })
    }

    /// A list of tables, `[[key]]`, in their order.
    pub(crate) fn sections(&self, key: &'static str) -> Vec<Section<'d, 'a>> {
        let Some(value) = self.value(key) else { return vec![] };
        let place = self.place_of(key, value);
        let DeValue::Array(array) = value.get_ref() else {
            self.wrong_type(
                &place,
                value.get_ref(),
                &Wanted("a list of tables", &format!("write `[[{key}]]` above each")),
            );
            return vec![];
        };
        let numbered = array.iter().enumerate();
        numbered.filter_map(|(index, element)| self.section_in(&format!("{key}[{}]", index + 1), element)).collect()
    }

    /// Notes every key that was never asked for.
    pub(crate) fn finish(&self) {
        let asked = self.asked.borrow();
        for key in self.table.keys() {
            if asked.contains(key.get_ref().as_ref()) {
                continue;
            }
            let place = Place { key: self.path(key.get_ref()), span: key.span() };
            let known = || asked.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
            let remedy = nearest(key.get_ref(), asked.iter().copied()).map_or_else(
                || format!("remove it, or use one of {}", known()),
                |meant| format!("did you mean `{meant}`?"),
            );
            self.document.fault_without_value(&place, "unknown key", remedy);
        }
    }

    pub(crate) fn path(&self, key: &str) -> String {
        if self.place.key.is_empty() { key.into() } else { format!("{}.{key}", self.place.key) }
    }

    pub(crate) fn wrong_type(&self, place: &Place, found: &DeValue<'_>, wanted: &Wanted<'_>) {
        let Wanted(what, remedy) = wanted;
        self.document.fault(place, format!("expected {what}, found {}", kind(found)), *remedy);
    }
}

/// What belongs in a place, and how to write it.
pub(crate) struct Wanted<'w>(pub(crate) &'w str, pub(crate) &'w str);

const TEXT: Wanted<'_> = Wanted("a text", "put it in quotes");
const DURATION: Wanted<'_> = Wanted("a duration", "write it as `\"90s\"` or `\"1h 30m\"`, in quotes");

/// What a TOML value is, with its article.
const fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
