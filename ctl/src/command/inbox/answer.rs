use ow_protocol::{AnswerRequest, QuestionView};

use super::view;
use crate::context::Context;
use crate::failure::Failure;
use crate::reference::Reference;

/// Answer a question
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl inbox answer 7k2 'the second one, please'
  owctl inbox answer 7k2 2                       option 2
  owctl inbox answer 7k2 2 'not on Fridays'      two questions, an answer each")]
pub(crate) struct Answer {
    /// The item's id, a unique beginning of it, or its token `[ow:…]`
    item: Reference,
    /// The answer: a text, or an option's number or label; of several questions one answer each
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
}

impl Answer {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let item = context.with_daemon(async |owd| {
            let mut id = self.item.as_str().to_owned();
            let mut text = self.text.join(" ");
            if self.text.len() > 1 {
                let item = owd.item(&id).await?;
                if item.questions.len() > 1 {
                    text = together(&item.questions, &self.text)?;
                    id = item.id;
                }
            }
            Ok(owd.answer_item(&id, &AnswerRequest::Answer { text }).await?)
        })?;
        context.out.give(&item, |item| view::answered(item, context.clock(), context.out.paint));
        Ok(())
    }
}

/// The answers to several questions as one text: each behind its question.
pub(crate) fn together(questions: &[QuestionView], answers: &[String]) -> Result<String, Failure> {
    if questions.len() != answers.len() {
        return Err(Failure::usage(format!("{} questions and {} answers", questions.len(), answers.len()))
            .hint("give one answer for each question, in their order; quote those of several words"));
    }
    let lines = questions.iter().zip(answers).map(|(question, answer)| {
        let about = question.header.as_deref().unwrap_or(&question.text);
        format!("{}: {}", about.trim_end_matches([':', '?']), chosen(question, answer))
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// What an answer to this question says: the option that it stands for, else itself. Several, where that is allowed, are
/// parted by commas.
pub(crate) fn chosen(question: &QuestionView, answer: &str) -> String {
    let one = |text: &str| {
        let text = text.trim();
        let label = question.options.iter().find(|option| option.eq_ignore_ascii_case(text));
        let number = || text.parse::<usize>().ok().and_then(|number| question.options.get(number.checked_sub(1)?));
        label.or_else(number).map(String::as_str)
    };
    if let Some(option) = one(answer) {
        return option.to_owned();
    }
    let several: Option<Vec<&str>> = answer.split(',').map(one).collect();
    match several {
        Some(options) if question.multi => options.join(", "),
        _ => answer.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(header: Option<&str>, multi: bool) -> QuestionView {
        let options = vec!["Red".into(), "Green".into()];
        QuestionView { header: header.map(Into::into), text: "Which colour?".into(), options, multi }
    }

    #[test]
    fn each_answer_stands_behind_its_question() {
        let questions = [question(Some("Colour"), false), question(None, true)];
        let text = together(&questions, &["2".into(), "1, green".into()]).expect("two for two");
        assert_eq!(text, "Colour: Green\nWhich colour: Red, Green");
        assert!(together(&questions, &["2".into()]).is_err());
        assert_eq!(chosen(&questions[0], "1, 2"), "1, 2", "only one may be chosen");
        assert_eq!(chosen(&questions[0], "none of them"), "none of them");
    }
}
