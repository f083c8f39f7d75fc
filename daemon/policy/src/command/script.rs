use std::path::{Path, PathBuf};

use brush_parser::ast::{
    AndOr, AndOrList, Command, CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, ExtendedTestExpr,
    IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, Pipeline, Program, RedirectList, SeparatorOperator,
    SimpleCommand, SubshellCommand,
};
use brush_parser::{Parser, ParserOptions};

use super::word::{Places, Word, literal, split};
use crate::path::lexical;

/// Longer lines are not read: a script belongs into a file.
const LENGTH_LIMIT: usize = 16 * 1024;
/// The parser recurses, so what nests deeper than any honest line is not given to it.
const NESTING_LIMIT: usize = 20;
/// How deep a shell inside a shell is followed.
const DEPTH_LIMIT: u32 = 6;

/// A command line taken apart: every command that it may run, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) lines: Vec<Line>,
    /// The first thing by which it is more than literal commands in order; none: it is just that.
    pub(crate) dynamic: Option<String>,
}

/// One pipeline, with how it is joined to the one before.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) joint: Joint,
    pub(crate) stages: Vec<Stage>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Joint {
    Then,
    And,
    Or,
}

/// One stage of a pipeline: a single command, or all commands of a compound.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stage {
    pub(crate) parts: Vec<Part>,
}

/// One simple command.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) words: Vec<Word>,
    /// The files that redirections write and read.
    pub(crate) writes: Vec<String>,
    pub(crate) reads: Vec<String>,
    /// What is fed to its standard input as text.
    pub(crate) fed: Vec<String>,
    /// What its substitutions run.
    pub(crate) inner: Vec<Script>,
    /// Where it runs, as far as `cd` in the line tells.
    pub(crate) cwd: Option<PathBuf>,
}

impl Part {
    pub(crate) fn texts(&self) -> Vec<String> {
        self.words.iter().map(|word| word.text.clone()).collect()
    }
}

impl Script {
    /// Reads shell text. What cannot be read becomes rough parts, so that it can still be refused.
    pub(crate) fn read(text: &str, home: &Path, cwd: Option<&Path>) -> Self {
        Self::read_at(text, home, cwd, 0)
    }

    fn read_at(text: &str, home: &Path, cwd: Option<&Path>, depth: u32) -> Self {
        let text = text.trim_matches([' ', '\t', '\n']);
        match parse(text) {
            Ok(_) if depth > DEPTH_LIMIT => Self::rough(text, home, cwd, "it nests too deep"),
            Ok(program) => {
                let mut reader = Reader { home, cwd: cwd.map(Path::to_owned), depth, script: Self::default() };
                reader.program(&program);
                let mut script = reader.script;
                if script.dynamic.is_none()
                    && text.chars().any(|letter| letter.is_control() && !"\t\n".contains(letter))
                {
                    script.dynamic = Some("it holds a control character".into());
                }
                script
            }
            Err(why) => Self::rough(text, home, cwd, why),
        }
    }

    /// A command that is given as its argv.
    pub(crate) fn of_argv(argv: &[String], cwd: Option<&Path>) -> Self {
        let part = Part {
            words: argv.iter().map(|text| Word::exact(text)).collect(),
            writes: vec![],
            reads: vec![],
            fed: vec![],
            inner: vec![],
            cwd: cwd.map(Path::to_owned),
        };
        let empty = argv.first().is_none_or(|program| program.trim().is_empty());
        Self {
            lines: vec![Line { joint: Joint::Then, stages: vec![Stage { parts: vec![part] }] }],
            dynamic: empty.then(|| "it names no program".into()),
        }
    }

    /// Cuts text at everything that might end a command.
    fn rough(text: &str, home: &Path, cwd: Option<&Path>, why: &str) -> Self {
        let lines = text
            .split([';', '&', '|', '\n', '\r', '(', ')', '`', '{', '}', '<'])
            .map(|piece| piece.replace(['"', '\'', '\\', '$'], ""))
            .filter(|piece| !piece.trim().is_empty())
            .map(|piece| {
                let words = piece
                    .split_whitespace()
                    .map(|word| {
                        let text = match word.strip_prefix('~').or_else(|| word.strip_prefix("HOME")) {
                            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                                format!("{}{rest}", home.display())
                            }
                            _ => word.to_owned(),
                        };
                        Word { text, literal: false, nested: vec![] }
                    })
                    .collect();
                let part = Part {
                    words,
                    writes: vec![],
                    reads: vec![],
                    fed: vec![],
                    inner: vec![],
                    cwd: cwd.map(Path::to_owned),
                };
                Line { joint: Joint::Then, stages: vec![Stage { parts: vec![part] }] }
            })
            .collect();
        Self { lines, dynamic: Some(why.into()) }
    }

    /// All parts, those inside substitutions too.
    pub(crate) fn parts(&self) -> Vec<&Part> {
        let mut all = vec![];
        self.collect(&mut all);
        all
    }

    fn collect<'a>(&'a self, all: &mut Vec<&'a Part>) {
        for part in self.lines.iter().flat_map(|line| &line.stages).flat_map(|stage| &stage.parts) {
            all.push(part);
            part.inner.iter().for_each(|script| script.collect(all));
        }
    }

    /// The argv of each literal command; none where anything is more than literal.
    pub(crate) fn literal(&self) -> Option<Vec<Vec<String>>> {
        if self.dynamic.is_some() {
            return None;
        }
        Some(self.parts().into_iter().map(Part::texts).collect())
    }

    /// Its text with every word quoted; none where anything is more than literal.
    pub(crate) fn written_back(&self) -> Option<String> {
        self.literal()?;
        let mut text = String::new();
        for (index, line) in self.lines.iter().enumerate() {
            text.push_str(match line.joint {
                Joint::Then if index == 0 => "",
                Joint::Then => "; ",
                Joint::And => " && ",
                Joint::Or => " || ",
            });
            let stages: Vec<String> = line
                .stages
                .iter()
                .map(|stage| {
                    let words: Vec<String> =
                        stage.parts.iter().flat_map(|part| &part.words).map(|word| quoted(&word.text)).collect();
                    words.join(" ")
                })
                .collect();
            text.push_str(&stages.join(" | "));
        }
        Some(text)
    }

    /// One line of text for patterns: words as the shell would pass them, one blank between.
    pub(crate) fn plain(&self) -> String {
        let mut text = String::new();
        for (index, line) in self.lines.iter().enumerate() {
            text.push_str(match line.joint {
                Joint::Then if index == 0 => "",
                Joint::Then => "; ",
                Joint::And => " && ",
                Joint::Or => " || ",
            });
            let stages: Vec<String> = line
                .stages
                .iter()
                .map(|stage| stage.parts.iter().map(|part| part.texts().join(" ")).collect::<Vec<_>>().join("; "))
                .collect();
            text.push_str(&stages.join(" | "));
        }
        text
    }
}

/// The argv of a line that both readings take for one literal simple command.
pub(crate) fn simple(line: &str) -> Option<Vec<String>> {
    let line = line.trim_matches([' ', '\t', '\n']);
    let own: Vec<String> = split(line)?.iter().map(|raw| literal(raw)).collect::<Option<_>>()?;
    let script = Script::read(line, Path::new("/"), None);
    let parsed = script.literal()?;
    (parsed.len() == 1 && parsed[0] == own && !own.first()?.is_empty()).then_some(own)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn parse(text: &str) -> Result<Program, &'static str> {
    if text.is_empty() {
        return Err("it is empty");
    }
    if text.len() > LENGTH_LIMIT {
        return Err("it is too long to be read; put it into a script file");
    }
    if nests_too_deep(text) {
        return Err("it nests too deep");
    }
    // A fault of the parser must not become a fault of owd, and never a yes.
    let parsed = std::panic::catch_unwind(|| Parser::new(text.as_bytes(), &ParserOptions::default()).parse_program());
    match parsed {
        Ok(Ok(program)) if program.complete_commands.is_empty() => Err("it is empty"),
        Ok(Ok(program)) => Ok(program),
        Ok(Err(_)) | Err(_) => Err("it cannot be parsed"),
    }
}

fn nests_too_deep(text: &str) -> bool {
    let (mut depth, mut deepest, mut marks) = (0_usize, 0, 0_usize);
    for letter in text.chars() {
        match letter {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            '`' => marks += 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    let openers = text
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| matches!(*word, "if" | "while" | "until" | "for" | "case" | "select" | "coproc" | "time"))
        .count();
    deepest > NESTING_LIMIT || marks > 4 * NESTING_LIMIT || openers > NESTING_LIMIT
}

struct Reader<'a> {
    home: &'a Path,
    cwd: Option<PathBuf>,
    depth: u32,
    script: Script,
}

impl Reader<'_> {
    fn dynamic(&mut self, why: impl Into<String>) {
        if self.script.dynamic.is_none() {
            self.script.dynamic = Some(why.into());
        }
    }

    fn program(&mut self, program: &Program) {
        for list in &program.complete_commands {
            self.list(list);
        }
    }

    fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            if matches!(item.1, SeparatorOperator::Async) {
                self.dynamic("it starts a command in the background (`&`)");
            }
            self.and_or(&item.0);
        }
    }

    fn and_or(&mut self, list: &AndOrList) {
        self.pipeline(&list.first, Joint::Then);
        for next in &list.additional {
            match next {
                AndOr::And(pipeline) => self.pipeline(pipeline, Joint::And),
                AndOr::Or(pipeline) => self.pipeline(pipeline, Joint::Or),
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, joint: Joint) {
        if pipeline.bang {
            self.dynamic("it negates a command (`!`)");
        }
        if pipeline.timed.is_some() {
            self.dynamic("it times a command (`time`)");
        }
        let before = self.cwd.clone();
        let alone = pipeline.seq.len() == 1;
        let mut stages = vec![];
        for command in &pipeline.seq {
            let mut stage = Stage::default();
            self.command(command, &mut stage);
            stages.push(stage);
            if !alone {
                // Each stage runs in a shell of its own.
                self.cwd.clone_from(&before);
            }
        }
        self.script.lines.push(Line { joint, stages });
    }

    fn command(&mut self, command: &Command, stage: &mut Stage) {
        match command {
            Command::Simple(simple) => self.simple(simple, stage),
            Command::Compound(compound, redirects) => {
                self.dynamic("it is more than simple commands");
                self.compound(compound, stage);
                self.redirected(redirects.as_ref(), stage);
            }
            Command::Function(function) => {
                self.dynamic("it defines a function");
                self.compound(&function.body.0, stage);
                self.redirected(function.body.1.as_ref(), stage);
            }
            Command::ExtendedTest(test, redirects) => {
                self.dynamic("it is more than simple commands");
                let mut words = vec![];
                test_words(&test.expr, &mut words);
                let words: Vec<Word> =
                    std::iter::once(Word::exact("[[")).chain(words.iter().map(|word| self.word(word))).collect();
                let inner = self.inner_of(&words);
                stage.parts.push(Part { inner, ..self.part(words) });
                self.redirected(redirects.as_ref(), stage);
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand, stage: &mut Stage) {
        match compound {
            CompoundCommand::Arithmetic(arithmetic) => self.loose(&arithmetic.expr.value, stage),
            CompoundCommand::ArithmeticForClause(clause) => {
                for expression in [&clause.initializer, &clause.condition, &clause.updater].into_iter().flatten() {
                    self.loose(&expression.value, stage);
                }
                self.body(&clause.body.list, stage);
            }
            CompoundCommand::BraceGroup(group) => self.body(&group.list, stage),
            CompoundCommand::Subshell(subshell) => {
                let before = self.cwd.clone();
                self.body(&subshell.list, stage);
                self.cwd = before;
            }
            CompoundCommand::ForClause(clause) => {
                for value in clause.values.iter().flatten() {
                    self.loose(&value.value, stage);
                }
                self.body(&clause.body.list, stage);
            }
            CompoundCommand::CaseClause(clause) => {
                self.loose(&clause.value.value, stage);
                for case in &clause.cases {
                    case.patterns.iter().for_each(|pattern| self.loose(&pattern.value, stage));
                    if let Some(list) = &case.cmd {
                        self.body(list, stage);
                    }
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.body(&clause.condition, stage);
                self.body(&clause.then, stage);
                for otherwise in clause.elses.iter().flatten() {
                    if let Some(condition) = &otherwise.condition {
                        self.body(condition, stage);
                    }
                    self.body(&otherwise.body, stage);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.body(&clause.0, stage);
                self.body(&clause.1.list, stage);
            }
            CompoundCommand::Coprocess(coprocess) => self.command(&coprocess.body, stage),
        }
    }

    /// The commands of a list inside a compound; its own pipelines are judged as lines of their own too.
    fn body(&mut self, list: &CompoundList, stage: &mut Stage) {
        let outer = std::mem::take(&mut self.script.lines);
        self.list(list);
        let inner = std::mem::replace(&mut self.script.lines, outer);
        stage.parts.extend(inner.iter().flat_map(|line| &line.stages).flat_map(|stage| stage.parts.clone()));
        self.script.lines.extend(inner.into_iter().filter(|line| line.stages.len() > 1));
    }

    /// A word outside of any command, which matters for its substitutions alone.
    fn loose(&mut self, raw: &str, stage: &mut Stage) {
        let word = self.word(raw);
        if !word.nested.is_empty() {
            let inner = self.inner_of(std::slice::from_ref(&word));
            stage.parts.push(Part { inner, ..self.part(vec![Word::exact(":"), word]) });
        }
    }

    fn redirected(&mut self, redirects: Option<&RedirectList>, stage: &mut Stage) {
        let Some(redirects) = redirects else { return };
        let mut part = self.part(vec![Word::exact(":")]);
        for redirect in &redirects.0 {
            self.redirect(redirect, &mut part);
        }
        // What is fed to a group is fed to every command in it.
        for inside in &mut stage.parts {
            inside.fed.extend(part.fed.iter().cloned());
            inside.inner.extend(part.inner.iter().cloned());
        }
        stage.parts.push(part);
    }

    fn simple(&mut self, simple: &SimpleCommand, stage: &mut Stage) {
        let mut part = self.part(vec![]);
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(item, &mut part, Side::Before);
        }
        match &simple.word_or_name {
            Some(word) => {
                let word = self.word(&word.value);
                if word.text.is_empty() {
                    self.dynamic("it names no program");
                }
                self.push(word, &mut part);
            }
            None => self.dynamic("it names no program"),
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, &mut part, Side::After);
        }
        self.change_directory(&part);
        stage.parts.push(part);
    }

    fn item(&mut self, item: &CommandPrefixOrSuffixItem, part: &mut Part, side: Side) {
        match item {
            CommandPrefixOrSuffixItem::Word(word) => {
                let word = self.word(&word.value);
                self.push(word, part);
            }
            CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                let word = self.word(&word.value);
                match side {
                    Side::Before => {
                        self.dynamic("it sets a variable for the command");
                        part.inner.extend(self.inner_of(std::slice::from_ref(&word)));
                    }
                    Side::After => self.push(word, part),
                }
            }
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect, part),
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                self.process(subshell, part);
                part.words.push(Word { text: super::word::UNKNOWN.into(), literal: false, nested: vec![] });
            }
        }
    }

    fn push(&mut self, word: Word, part: &mut Part) {
        if !word.literal {
            self.dynamic(if word.nested.is_empty() {
                "it holds an expansion (a variable, a pattern, braces or a tilde)"
            } else {
                "it holds a substitution"
            });
        }
        part.inner.extend(self.inner_of(std::slice::from_ref(&word)));
        part.words.extend(word.fields());
    }

    fn redirect(&mut self, redirect: &IoRedirect, part: &mut Part) {
        self.dynamic("it redirects input or output");
        match redirect {
            IoRedirect::File(_, kind, target) => match target {
                IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => {
                    let word = self.word(&word.value);
                    part.inner.extend(self.inner_of(std::slice::from_ref(&word)));
                    match kind {
                        IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput => part.reads.push(word.text),
                        IoFileRedirectKind::Write
                        | IoFileRedirectKind::Append
                        | IoFileRedirectKind::ReadAndWrite
                        | IoFileRedirectKind::Clobber
                        | IoFileRedirectKind::DuplicateOutput => part.writes.push(word.text),
                    }
                }
                IoFileRedirectTarget::Fd(_) => {}
                IoFileRedirectTarget::ProcessSubstitution(_, subshell) => self.process(subshell, part),
            },
            IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion {
                    let word = self.word(&format!("\"{}\"", document.doc.value.replace('"', "\\\"")));
                    part.inner.extend(self.inner_of(std::slice::from_ref(&word)));
                }
                part.fed.push(document.doc.value.clone());
            }
            IoRedirect::HereString(_, word) => {
                let word = self.word(&word.value);
                part.inner.extend(self.inner_of(std::slice::from_ref(&word)));
                part.fed.push(word.text);
            }
            IoRedirect::OutputAndError(word, _) => {
                let word = self.word(&word.value);
                part.inner.extend(self.inner_of(std::slice::from_ref(&word)));
                part.writes.push(word.text);
            }
        }
    }

    fn process(&mut self, subshell: &SubshellCommand, part: &mut Part) {
        self.dynamic("it holds a process substitution");
        let mut reader =
            Reader { home: self.home, cwd: self.cwd.clone(), depth: self.depth + 1, script: Script::default() };
        reader.list(&subshell.list);
        part.inner.push(reader.script);
    }

    fn inner_of(&self, words: &[Word]) -> Vec<Script> {
        words
            .iter()
            .flat_map(|word| &word.nested)
            .map(|source| Script::read_at(source, self.home, self.cwd.as_deref(), self.depth + 1))
            .collect()
    }

    fn word(&self, raw: &str) -> Word {
        Word::read(raw, Places { home: self.home, cwd: self.cwd.as_deref() })
    }

    fn part(&self, words: Vec<Word>) -> Part {
        Part { words, writes: vec![], reads: vec![], fed: vec![], inner: vec![], cwd: self.cwd.clone() }
    }

    fn change_directory(&mut self, part: &Part) {
        let texts = part.texts();
        let Some((program, arguments)) = texts.split_first() else { return };
        if !matches!(program.as_str(), "cd" | "pushd" | "popd") {
            return;
        }
        let target = arguments.iter().find(|argument| !argument.starts_with('-') || argument.as_str() == "-");
        self.cwd = match target.map(String::as_str) {
            None => Some(self.home.to_owned()),
            Some(target) if target == "-" || target.contains(super::word::UNKNOWN) => None,
            Some(target) if Path::new(target).is_absolute() => Some(lexical(Path::new(target))),
            Some(target) => self.cwd.as_ref().map(|cwd| lexical(&cwd.join(target))),
        };
    }
}

#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

fn test_words(test: &ExtendedTestExpr, words: &mut Vec<String>) {
    match test {
        ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
            test_words(left, words);
            test_words(right, words);
        }
        ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => test_words(inner, words),
        ExtendedTestExpr::UnaryTest(_, word) => words.push(word.value.clone()),
        ExtendedTestExpr::BinaryTest(_, left, right) => words.extend([left.value.clone(), right.value.clone()]),
    }
}
