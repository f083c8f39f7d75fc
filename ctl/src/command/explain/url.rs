use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};

use ow_policy::url::{ExplainedUrl, Guard, Redirect, explain};

use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::output::Colour;

/// Whether owd would fetch a URL
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl explain url http://169.254.169.254/latest/
  owctl explain url https://a.example/ --dns a.example=93.184.215.14 \\
      --redirect https://a.example/ 302 http://10.0.0.1/

Without --dns names are resolved by this machine; with it, only as given. Nothing is fetched.")]
pub(crate) struct Url {
    #[arg(value_name = "URL", allow_hyphen_values = true)]
    text: String,
    /// What a name resolves to
    #[arg(long, value_name = "NAME=IP[,IP]", value_parser = answer)]
    dns: Vec<Answer>,
    /// How a server would answer at a URL
    #[arg(long, num_args = 3, value_names = ["URL", "STATUS", "LOCATION"], allow_hyphen_values = true)]
    redirect: Vec<String>,
    /// An entry of `http-allow`: `host:port` opens that one private address
    #[arg(long, value_name = "HOST")]
    http_allow: Vec<String>,
}

#[derive(Clone, Debug)]
struct Answer {
    name: String,
    addresses: Vec<IpAddr>,
}

fn answer(text: &str) -> Result<Answer, String> {
    let (name, addresses) = text.split_once('=').ok_or("write NAME=IP, or NAME=IP,IP")?;
    let addresses = addresses.split(',').filter(|address| !address.is_empty()).map(|address| {
        let bare = address.trim().trim_start_matches('[').trim_end_matches(']');
        bare.parse().map_err(|_| format!("`{address}` is not an IP address"))
    });
    Ok(Answer { name: plain(name), addresses: addresses.collect::<Result<_, _>>()? })
}

/// As the guard asks for names.
fn plain(name: &str) -> String {
    ow_policy::url::ascii_name(name.trim())
}

impl Url {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let redirects = self.redirects()?;
        let mut known: HashMap<&str, Vec<IpAddr>> = HashMap::new();
        for answer in &self.dns {
            known.entry(&answer.name).or_default().extend(&answer.addresses);
        }
        let mut resolve = |name: &str| {
            if self.dns.is_empty() { by_system(name) } else { known.get(name).cloned() }
        };
        let guard = Guard { allow: &self.http_allow, ..Guard::default() };
        let explained = explain(&self.text, &guard, &mut resolve, &redirects);
        context.out.give(&explained, |ExplainedUrl { blocked, why }| {
            let (colour, word) = if *blocked { (Colour::Red, "blocked") } else { (Colour::Green, "not blocked") };
            format!("{}: {}\n", context.out.paint.in_colour(colour, word), escape::line(why))
        });
        Ok(())
    }

    fn redirects(&self) -> Result<Vec<Redirect>, Failure> {
        let read = |parts: &[String]| {
            let [url, status, location] = parts else { unreachable!("clap takes three at a time") };
            let status = status.parse().map_err(|_| {
                Failure::usage(format!("`{status}` is not an HTTP status")).hint("write --redirect URL STATUS LOCATION")
            })?;
            Ok(Redirect { url: url.clone(), status, location: location.clone() })
        };
        self.redirect.chunks(3).map(read).collect()
    }
}

fn by_system(name: &str) -> Option<Vec<IpAddr>> {
    let found: Vec<IpAddr> = (name, 0).to_socket_addrs().ok()?.map(|address| address.ip()).collect();
    Some(found).filter(|found| !found.is_empty())
}
