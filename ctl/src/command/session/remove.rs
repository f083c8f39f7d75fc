use crate::context::Context;
use crate::failure::Failure;
use crate::reference::Reference;

/// End a chat for good; its records go as retention says
#[derive(Debug, clap::Args)]
pub(crate) struct Remove {
    /// The session's id, or a unique beginning of it
    session: Reference,
}

impl Remove {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let id = context.with_daemon(async |owd| {
            let id = owd.session(self.session.as_str()).await?.id;
            owd.remove_session(&id).await?;
            Ok(id)
        })?;
        context.out.give(&serde_json::json!({ "removed": id }), |_| format!("removed: {}", crate::escape::line(&id)));
        Ok(())
    }
}
