use ow_model::{Answer, Binding, Call};

use crate::judge::forbidden;
use crate::{Facts, Refusal, Situation, Verdict, binding_of, check_binding, judge};

/// A call that policy has cleared.
///
/// Only [`authorize`] and [`authorize_answered`] make one: holding it *is* the permission, so no path can
/// run a tool without having asked.
#[derive(Debug, PartialEq)]
pub struct Authorized<C>(C);

impl<C> Authorized<C> {
    #[must_use]
    pub const fn get(&self) -> &C {
        &self.0
    }

    #[must_use]
    pub fn into_inner(self) -> C {
        self.0
    }
}

/// Clears a call that [`judge`] allows.
///
/// # Errors
///
/// The verdict, when it is not to allow.
#[expect(clippy::result_large_err, reason = "a verdict is made once a call and read at once")]
pub fn authorize(call: Call, facts: &Facts, situation: &Situation) -> Result<Authorized<Call>, Verdict> {
    match judge(&call, facts, situation) {
        Verdict::Allow { .. } => Ok(Authorized(call)),
        verdict @ (Verdict::Deny { .. } | Verdict::Ask { .. }) => Err(verdict),
    }
}

/// Clears a call that a person answered, right before it runs.
///
/// The answer settles layer 5 for this one call. Hard blocks, denies, protected paths, refused addresses,
/// plan mode and what was bound are judged again on `facts` as they are now. For an edited answer `call`
/// carries the edited arguments and `binding` is that of the edited call, taken when the answer came.
///
/// # Errors
///
/// Why the call may not run: see [`Refusal`].
pub fn authorize_answered(
    call: Call,
    facts: &Facts,
    binding: &Binding,
    answer: &Answer,
    situation: &Situation,
) -> Result<Authorized<Call>, Refusal> {
    match answer {
        Answer::Once | Answer::ForTask | Answer::AlwaysTool | Answer::AlwaysCommand => {}
        Answer::Edited { args } if *args == call.args => {}
        Answer::Edited { .. } => return Err(Refusal::OtherArguments),
        Answer::Deny { .. } | Answer::Text { .. } | Answer::Acknowledge => return Err(Refusal::NotAllowed),
    }
    if let Some((rule, why)) = forbidden(&call, facts, situation) {
        return Err(Refusal::Denied { rule, why });
    }
    check_binding(binding, &binding_of(facts)).map_err(Refusal::Changed)?;
    Ok(Authorized(call))
}
