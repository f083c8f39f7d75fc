//! Asking the person's hooks, and telling them.

use std::sync::Arc;

use ow_model::{Call, CallResult, Fact, HookEvent, HookReport, HookSaid, Position};
use ow_store::StoreError;

use super::workspace::Brought;
use super::{Session, Turn};
use crate::hooks::Hooks;
use crate::{Occasion, Say, Stop};

impl<T: Turn> Session<T> {
    /// Asks the hooks about a call that policy, and a person where it was asked, let through, by the look at its
    /// workspaces by which it was judged. What they said is on record. [`Say::Stopped`]: the run must be left.
    pub(crate) async fn ask_hooks(&mut self, call: &Call, brought: &Brought, stop: &Stop) -> Say {
        if let Some(fault) = &brought.fault
            && !self.only_reads(call)
        {
            // What it forbids is not known.
            return Say::Deny { why: format!("workspace: {fault}") };
        }
        self.tell_of_untrusted(brought).await;
        let concern = |hooks: &Hooks| hooks.concern(HookEvent::PreToolUse, Some(&call.tool));
        if !concern(&self.engine.hooks()) && !concern(&brought.hooks) {
            return Say::Pass;
        }
        let occasion = Occasion::before(call, &self.run.id.to_string(), self.place.cwd.clone());
        self.heed(&occasion, &brought.hooks, Some(call.position), stop).await
    }

    /// Tells the hooks what became of a call. Its end is durable before they hear of it. One that only read changed
    /// nothing of what the workspaces brought when it was judged; none: it did more.
    pub(crate) async fn tell_hooks(
        &mut self,
        call: &Call,
        result: &CallResult,
        brought: Option<&Brought>,
        stop: &Stop,
    ) -> Result<(), StoreError> {
        let anew;
        let brought = if let Some(brought) = brought {
            brought
        } else {
            anew = self.workspaces().await;
            &anew
        };
        let concern = |hooks: &Hooks| hooks.concern(HookEvent::PostToolUse, Some(&call.tool));
        if concern(&self.engine.hooks()) || concern(&brought.hooks) {
            self.commit(stop).await?;
            let occasion = Occasion::after(call, result, &self.run.id.to_string(), self.place.cwd.clone());
            self.heed(&occasion, &brought.hooks, Some(call.position), stop).await;
        }
        Ok(())
    }

    /// Tells the hooks that the session begins or ends, or that a chat's turn does. What is pending is durable before.
    pub(crate) async fn tell_hooks_of(&mut self, event: HookEvent, stop: &Stop) -> Result<(), StoreError> {
        let brought = self.workspaces().await;
        if self.engine.hooks().concern(event, None) || brought.hooks.concern(event, None) {
            self.commit(stop).await?;
            let occasion = Occasion::of_session(event, &self.run.id.to_string(), self.place.cwd.clone());
            // Of a cancelled run they hear as well: what bounds them is their own time.
            self.heed(&occasion, &brought.hooks, None, &Stop::new()).await;
        }
        Ok(())
    }

    /// The person's own hooks come first: what they refuse, a workspace's are not asked about.
    async fn heed(&mut self, occasion: &Occasion, brought: &Hooks, position: Option<Position>, stop: &Stop) -> Say {
        let (own, helpers) = (self.engine.hooks(), Arc::clone(&self.engine.helpers));
        let (mut reports, mut say) = own.heed(occasion, &helpers, stop.token()).await;
        if matches!(say, Say::Pass | Say::Ask { .. }) {
            let (more, said) = brought.heed(occasion, &helpers, stop.token()).await;
            reports.extend(more);
            if !matches!(said, Say::Pass) {
                say = said;
            }
        }
        let secrets = Arc::clone(&self.engine.standing().secrets);
        let redactor = secrets.redactor();
        let clean = |text: String| redactor.redact(&text).into_owned();
        for HookReport { event, command, said, exit, took_ms } in reports {
            let said = match said {
                HookSaid::Pass => HookSaid::Pass,
                HookSaid::Deny { why } => HookSaid::Deny { why: clean(why) },
                HookSaid::Ask { why } => HookSaid::Ask { why: clean(why) },
                HookSaid::Warn { why } => HookSaid::Warn { why: clean(why) },
            };
            self.record(Fact::Hooked { position, report: HookReport { event, command, said, exit, took_ms } });
        }
        match say {
            Say::Deny { why } => Say::Deny { why: clean(why) },
            Say::Ask { why } => Say::Ask { why: clean(why) },
            say @ (Say::Pass | Say::Stopped) => say,
        }
    }
}
