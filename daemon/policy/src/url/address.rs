use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use ipnet::{Ipv4Net, Ipv6Net};

/// Not globally reachable, by the IANA special-purpose registry; and Azure's host, which only looks public.
const PRIVATE_V4: &[&str] = &[
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "168.63.129.16/32",
];

/// What of `2000::/3` is not globally reachable. Outside of it nothing is, save the translations below.
const PRIVATE_V6: &[&str] = &["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

static V4: LazyLock<Vec<Ipv4Net>> =
    LazyLock::new(|| PRIVATE_V4.iter().map(|net| net.parse().expect("the table holds networks")).collect());
static V6: LazyLock<Vec<Ipv6Net>> =
    LazyLock::new(|| PRIVATE_V6.iter().map(|net| net.parse().expect("the table holds networks")).collect());

/// Whether an address is one of the public internet.
///
/// An IPv6 address that carries an IPv4 address (mapped, NAT64, ISATAP) is judged by what it carries; 6to4
/// and Teredo never pass.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !V4.iter().any(|net| net.contains(&address))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let [.., high, low] = parts;
    let carried = Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match parts {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => is_public_v4(carried),
        [first, _, _, _, interface, 0x5efe, ..] if interface & 0xfdff == 0 => {
            first & 0xe000 == 0x2000 && is_public_v4(carried)
        }
        [first, ..] => first & 0xe000 == 0x2000 && !V6.iter().any(|net| net.contains(&address)),
    }
}
