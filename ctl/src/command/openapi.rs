use crate::context::Context;
use crate::failure::Failure;

/// The OpenAPI document of the control API, as the running owd has it
#[derive(Debug, clap::Args)]
pub(crate) struct OpenApi {}

impl OpenApi {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        let document = context.with_daemon(async |owd| Ok(owd.openapi().await?))?;
        context.out.json(&document);
        Ok(())
    }
}
