use ow_model::{Fact, Finish, Position, Purpose, Reply, ReplyCall};

/// Which positions the calls of replies have: counted as the turn counts them, for the journal does not say it.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    next: u32,
    purpose: Option<Purpose>,
}

impl Positions {
    /// Those of a sub-agent that begins now: its calls have positions in the session as well.
    pub(crate) fn of_sub_agent(&self) -> Self {
        Self { next: self.next, purpose: None }
    }

    /// Whether the model call under way is for a summary, of which nothing enters the history.
    pub(crate) fn awaits_summary(&self) -> bool {
        self.purpose == Some(Purpose::Summary)
    }

    /// Takes in the session's next fact; returns the calls that it asks for.
    pub(crate) fn take<'fact>(&mut self, fact: &'fact Fact) -> Vec<(Position, &'fact ReplyCall)> {
        // A question of owd's own and a sub-agent's call take positions, too.
        if let Some(Position(position)) = fact.call() {
            self.next = self.next.max(position + 1);
        }
        match fact {
            Fact::Asked { purpose, .. } => self.purpose = Some(*purpose),
            Fact::BudgetReached { .. } => self.next += 1,
            Fact::Replied { reply, .. } => {
                let calls = asked_for(reply, self.purpose.take());
                let first = self.next;
                return (first..)
                    .zip(calls)
                    .map(|(position, call)| {
                        self.next = position + 1;
                        (Position(position), call)
                    })
                    .collect();
            }
            _ => {}
        }
        vec![]
    }
}

/// What a reply asks for that is heard. The last call is made without tools; what a model asks for in it is not run.
fn asked_for(reply: &Reply, purpose: Option<Purpose>) -> &[ReplyCall] {
    if matches!(purpose, Some(Purpose::Final | Purpose::Summary)) || reply.finish == Finish::Refusal {
        return &[];
    }
    &reply.calls[..reply.calls.len().min(Reply::MOST_CALLS)]
}
