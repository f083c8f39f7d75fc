//! The URL guard: the cases, other spellings of the same addresses, and properties.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ow_policy::url::{Guard, Redirect, ascii_name, explain, is_named, is_public, origin};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

#[derive(Deserialize)]
struct Cases {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    url: String,
    blocked: Value,
    why: String,
    #[serde(default)]
    dns: BTreeMap<String, Vec<IpAddr>>,
    #[serde(default)]
    dns_sequence: BTreeMap<String, Vec<Vec<IpAddr>>>,
    #[serde(default)]
    redirects: Vec<[String; 3]>,
}

#[test]
fn cases_hold() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/ssrf-urls.json"));
    let cases: Cases = serde_json::from_str(text).expect("the cases parse");
    let mut wrong = vec![];
    for case in cases.cases {
        let redirects: Vec<Redirect> = case
            .redirects
            .iter()
            .map(|[url, status, location]| Redirect {
                url: url.clone(),
                status: status.parse().expect("a status"),
                location: location.clone(),
            })
            .collect();
        let mut resolve = |name: &str| {
            let known = case.dns.iter().find(|(key, _)| key.trim_end_matches('.').eq_ignore_ascii_case(name));
            let first = case.dns_sequence.get(name).and_then(|answers| answers.first());
            known.map(|(_, addresses)| addresses.clone()).or_else(|| first.cloned())
        };
        let found = explain(&case.url, &Guard::default(), &mut resolve, &redirects);
        if let Value::Bool(blocked) = case.blocked
            && found.blocked != blocked
        {
            wrong.push(format!("{}: {} ({}): {found:?}", case.id, case.url, case.why));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_never_sent_hides_no_redirect() {
    let redirects = [Redirect { url: "http://r.example/".into(), status: 302, location: "http://127.0.0.1/".into() }];
    let mut public = |_: &str| Some(vec![IpAddr::from([93, 184, 215, 14])]);
    let found = explain("http://r.example/#f", &Guard::default(), &mut public, &redirects);
    assert!(found.blocked, "{found:?}");
    assert_eq!(ascii_name("B\u{fc}cher.example."), "xn--bcher-kva.example");
}

fn blocked(url: &str, guard: &Guard) -> Option<String> {
    let mut resolve = |name: &str| match name {
        "local.example" => Some(vec!["127.0.0.1".parse().expect("an address")]),
        "mapped.example" => Some(vec!["::ffff:10.0.0.1".parse().expect("an address")]),
        "localhost" => Some(vec!["127.0.0.1".parse().expect("an address"), "::1".parse().expect("an address")]),
        _ => Some(vec!["93.184.215.14".parse().expect("an address")]),
    };
    let found = explain(url, guard, &mut resolve, &[]);
    found.blocked.then_some(found.why)
}

#[test]
fn an_inner_address_is_refused_in_any_spelling() {
    for url in [
        "http://127.0.0.1./",
        "http://0177.1/",
        "http://0x7f.1/",
        "http://017700000001/",
        "http://127.0.1/",
        "http://０x7f000001/",
        "http://１２７.0.0.1/",
        "http://①②⑦.0.0.1/",
        "http://127。0。0。1/",
        "http://%31%32%37.0.0.1/",
        "http:127.0.0.1/",
        "http:///127.0.0.1/",
        "http://0/",
        "http://[::ffff:0:127.0.0.1]/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[64:ff9b:1::a00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
        "http://[2001:db8::1]/",
        "http://[fec0::1]/",
        "http://[fc00::1]/",
        "http://[100::1]/",
        "http://[2606:4700::5efe:7f00:1]/",
        "http://192.0.0.1/",
        "http://192.0.2.1/",
        "http://198.18.0.1/",
        "http://198.51.100.1/",
        "http://203.0.113.1/",
        "http://240.0.0.1/",
        "http://168.63.129.16/",
        "http://100.100.100.200/",
        "http://a.localhost/",
        "http://localhost.localdomain/",
        "http://foo.internal/",
        "http://printer.local/",
        "http://local.example/",
        "http://mapped.example/",
        "http://localhost@evil.example/",
        "http://user:pass@example.com/",
        "http://example.com\\@127.0.0.1/",
        "http://exa mple.com/",
        "http://example.com/\r\nX: y",
        "http://[fe80::1%25eth0]/",
        "http://",
        "http://.../",
        "//127.0.0.1/",
        "127.0.0.1",
        "gopher://example.com/",
        "javascript:1",
        "unix:///run/x.sock",
        "http://example.com:22/",
        "http://example.com:25/",
        "http://example.com:0/",
        "http://example.com:99999/",
    ] {
        assert!(blocked(url, &Guard::default()).is_some(), "{url}");
    }
    for url in [
        "https://example.com/",
        "http://example.com:8080/",
        "http://bücher.example/",
        "https://example.com./",
        "http://localhost.evil.example/",
        "http://[64:ff9b::5db8:d70e]/",
        "http://[::ffff:93.184.215.14]/",
    ] {
        assert_eq!(blocked(url, &Guard::default()), None, "{url}");
    }
}

#[test]
fn a_private_address_opens_by_host_and_port_alone_and_owds_own_never() {
    let allow: Vec<String> = [
        "10.0.0.5:8080",
        "localhost:11434",
        "local.example:8123",
        "[fd00::1]:80",
        "192.168.0.1",
        "*.internal:80",
        "127.0.0.1:7700",
    ]
    .map(String::from)
    .into();
    let own = ["127.0.0.1:7700".parse().expect("an address"), "0.0.0.0:7701".parse().expect("an address")];
    let guard = Guard { allow: &allow, own: &own, hosts: None };
    for url in
        ["http://10.0.0.5:8080/", "http://localhost:11434/api", "http://local.example:8123/", "http://[fd00::1]/"]
    {
        assert_eq!(blocked(url, &guard), None, "{url}");
    }
    for url in [
        "http://10.0.0.5/",
        "http://10.0.0.6:8080/",
        "http://localhost/",
        "http://192.168.0.1/",
        "http://x.internal/",
        "http://127.0.0.1:7700/",
        "http://localhost:7700/",
        "http://local.example:7700/",
        "http://[::1]:7701/",
        "http://10.9.9.9:7701/",
    ] {
        assert!(blocked(url, &guard).is_some(), "{url}");
    }
}

#[test]
fn a_refusal_says_no_more_than_was_written() {
    let why = blocked("http://local.example/", &Guard::default()).expect("blocked");
    assert!(!why.contains("127"), "{why}");
    let why = blocked("http://mapped.example/", &Guard::default()).expect("blocked");
    assert!(!why.contains("10.0"), "{why}");
}

#[test]
fn hosts_are_named_whole() {
    let list: Vec<String> =
        ["Example.com", "*.corp.example", "api.example:8443", "bücher.example"].map(String::from).into();
    let named = |url: &str| is_named(&Url::parse(url).expect("a URL"), &list);
    for url in [
        "https://example.com/",
        "https://EXAMPLE.com./x",
        "https://a.corp.example/",
        "https://a.b.corp.example/",
        "https://api.example:8443/",
        "https://xn--bcher-kva.example/",
        "http://example.com:8080/",
    ] {
        assert!(named(url), "{url}");
    }
    for url in [
        "https://evilexample.com/",
        "https://example.com.evil/",
        "https://corp.example/",
        "https://evilcorp.example/",
        "https://api.example/",
        "https://a.example.com/",
        "https://example.community/",
    ] {
        assert!(!named(url), "{url}");
    }
    assert_eq!(origin(&Url::parse("https://Example.com./x?y").expect("a URL")), "https://example.com:443");
}

#[test]
fn each_hop_is_judged_and_credentials_stay_with_their_origin() {
    let first = Url::parse("https://a.example/x").expect("a URL");
    let guard = Guard::default();
    let hop = |status, location: &str| guard.redirect(&first, &first, status, Some(location), 1);
    let next = hop(302, "/y").expect("allowed").expect("a hop");
    assert!(next.keeps_credentials);
    assert!(!hop(302, "https://b.example/").expect("allowed").expect("a hop").keeps_credentials);
    assert!(!hop(302, "https://a.example:8443/").expect("allowed").expect("a hop").keeps_credentials);
    for location in [
        "http://a.example/",
        "http://10.0.0.1/",
        "https://127.1/",
        "file:///etc/passwd",
        "https://u:p@a.example/",
        "//[::1]/",
    ] {
        assert!(hop(302, location).is_err(), "{location}");
    }
    assert_eq!(hop(304, "/y"), Ok(None));
    assert_eq!(guard.redirect(&first, &first, 302, None, 1), Ok(None));
    assert!(guard.redirect(&first, &first, 302, Some("/y"), 11).is_err());
    let hosts = vec!["b.example".to_owned()];
    let named = Guard { hosts: Some(&hosts), ..guard };
    assert!(named.redirect(&first, &first, 302, Some("https://b.example/"), 1).is_ok());
    assert!(named.redirect(&first, &first, 302, Some("https://c.example/"), 1).is_err());
    assert!(named.redirect(&first, &first, 302, Some("/y"), 1).is_ok());
}

#[test]
fn a_ring_of_redirects_ends() {
    let ring = [Redirect { url: "http://a.example/".into(), status: 302, location: "/".into() }];
    let found = explain(
        "http://a.example/",
        &Guard::default(),
        &mut |_| Some(vec!["93.184.215.14".parse().expect("an address")]),
        &ring,
    );
    assert!(found.blocked, "{found:?}");
}

proptest! {
    #[test]
    fn no_private_ipv4_address_passes_in_any_form(octets: [u8; 4], kind in 0_usize..8) {
        let inner = match kind {
            0 => Ipv4Addr::new(127, octets[1], octets[2], octets[3]),
            1 => Ipv4Addr::new(10, octets[1], octets[2], octets[3]),
            2 => Ipv4Addr::new(172, 16 + octets[1] % 16, octets[2], octets[3]),
            3 => Ipv4Addr::new(192, 168, octets[2], octets[3]),
            4 => Ipv4Addr::new(169, 254, octets[2], octets[3]),
            5 => Ipv4Addr::new(100, 64 + octets[1] % 64, octets[2], octets[3]),
            6 => Ipv4Addr::new(224 + octets[0] % 32, octets[1], octets[2], octets[3]),
            _ => Ipv4Addr::new(0, octets[1], octets[2], octets[3]),
        };
        prop_assert!(!is_public(IpAddr::V4(inner)));
        let [a, b, c, d] = inner.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let forms = [
            format!("http://{inner}/"),
            format!("http://{}/", u32::from(inner)),
            format!("http://0x{:x}/", u32::from(inner)),
            format!("http://0{a:o}.0{b:o}.0{c:o}.0{d:o}/"),
            format!("http://{a}.{}/", u32::from_be_bytes([0, b, c, d])),
            format!("http://[::ffff:{inner}]/"),
            format!("http://[::{high:x}:{low:x}]/"),
            format!("http://[64:ff9b::{high:x}:{low:x}]/"),
            format!("http://[2002:{high:x}:{low:x}::1]/"),
        ];
        for form in forms {
            prop_assert!(Guard::default().parse(&form).is_err(), "{}", form);
        }
        let named = Url::parse("http://name.example/").expect("a URL");
        let public = IpAddr::V4(Ipv4Addr::new(93, 184, 215, 14));
        prop_assert!(Guard::default().check_addresses(&named, &[public, IpAddr::V4(inner)]).is_err());
    }

    #[test]
    fn only_global_unicast_ipv6_passes(parts: [u16; 8]) {
        let address = Ipv6Addr::from(parts);
        if is_public(IpAddr::V6(address)) {
            let carries = address.to_ipv4_mapped().is_some() || parts[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
            prop_assert!(parts[0] & 0xe000 == 0x2000 || carries);
        }
    }
}
