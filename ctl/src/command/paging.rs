use ow_protocol::{Page, PageQuery};

/// Which part of a list is shown.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Paging {
    /// At most so many, up to 500
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=500))]
    limit: u16,
    /// Begin after this cursor, which the page before gave
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

impl Paging {
    pub(crate) fn query(&self) -> PageQuery {
        PageQuery { after: self.after.clone(), limit: Some(self.limit.into()), ..PageQuery::default() }
    }
}

/// The line below a page that is not the last.
pub(crate) fn more<T>(page: &Page<T>) -> String {
    match &page.next {
        Some(next) => format!("\nmore: add --after {}\n", crate::escape::line(next)),
        None => String::new(),
    }
}
