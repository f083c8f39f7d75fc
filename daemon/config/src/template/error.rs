use thiserror::Error;

const SHOWN_CHARACTERS: usize = 120;

/// Why a template could not be parsed or rendered.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("template `{template}`: {fault}")]
pub struct TemplateError {
    /// The text as written, shortened.
    pub template: String,
    pub fault: TemplateFault,
}

#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum TemplateFault {
    #[error("`{{{{` without its `}}}}`")]
    Unclosed,
    #[error("`{{%` begins a statement; only expressions in `{{{{ … }}}}` are known")]
    Statement,
    #[error("`{{{{-` and `-}}}}` are not known")]
    Trim,
    #[error("`{expression}` is no expression: {reason}")]
    Syntax { expression: String, reason: String },
    #[error("unknown name `{name}`")]
    UnknownName { name: String },
    #[error("unknown {kind} `{name}`")]
    Unknown { kind: &'static str, name: String },
    #[error("`{name}(…)`: nothing can be called")]
    Call { name: String },
    #[error("a key cannot be a template")]
    Key,
    #[error("`{expression}` is undefined")]
    Undefined { expression: String },
    #[error("`{expression}`: {reason}")]
    Evaluation { expression: String, reason: String },
    #[error("more than {limit} bytes of output")]
    Output { limit: usize },
    #[error("`{expression}` takes more work than a template may")]
    Work { expression: String },
    #[error("`{expression}` is a text, and neither true nor false")]
    NotBoolean { expression: String },
}

impl TemplateError {
    pub(crate) fn new(template: &str, fault: TemplateFault) -> Self {
        Self { template: shortened(template), fault }
    }

    /// What the author of the template can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match &self.fault {
            TemplateFault::Unclosed => "close it with `}}`, or write `{{ \"{{\" }}` for the two braces themselves".into(),
            TemplateFault::Statement => {
                "use an expression, as `{{ a if b else c }}`, or the step's `if`; for the text itself write `{{ \"{%\" }}`".into()
            }
            TemplateFault::Trim => "leave the `-` out; use the filter `trim` for a value".into(),
            TemplateFault::Syntax { .. } => {
                "write an expression, as `{{ steps.disks.stdout | trim }}`; for literal braces write `{{ \"{{\" }}`".into()
            }
            TemplateFault::UnknownName { name } => {
                match crate::suggest::nearest(name, super::ROOTS) {
                    Some(root) => format!("did you mean `{root}`?"),
                    None => "begin with `task`, `slot`, `run`, `event` or `steps`; put a text in quotes".into(),
                }
            }
            TemplateFault::Unknown { kind, name } => {
                let known = if *kind == "filter" { super::expression::FILTERS } else { super::expression::TESTS };
                match crate::suggest::nearest(name, known.iter().copied()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("use one of {}", known.join(", ")),
                }
            }
            TemplateFault::Call { .. } => "use a filter, as `{{ event.path | upper }}`".into(),
            TemplateFault::Key => "write the key out; only values can be templates".into(),
            TemplateFault::Undefined { .. } => {
                "check the name, or give a fallback, as `{{ event.note | default(\"\") }}`".into()
            }
            TemplateFault::Evaluation { .. } => "correct the expression for the value it was given".into(),
            TemplateFault::Output { .. } => "pass the name of a file instead of its content".into(),
            TemplateFault::Work { .. } => "leave the work to a tool, and use its result".into(),
            TemplateFault::NotBoolean { .. } => "compare it, as `steps.disks.stdout != \"\"`".into(),
        }
    }
}

pub(crate) fn shortened(text: &str) -> String {
    let mut shown: String =
        text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(SHOWN_CHARACTERS).collect();
    if text.chars().nth(SHOWN_CHARACTERS).is_some() {
        shown.push('…');
    }
    shown
}
