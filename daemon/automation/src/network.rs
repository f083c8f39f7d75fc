//! Whether there is a network: a default route that is up. Asked only when a run that needs one waits.

/// Whether anything beyond this machine could be reached. What cannot be read is taken as yes: a run that then
/// finds nothing fails as unreachable, while one held back for ever would fail nobody and tell nobody.
pub(crate) fn is_up() -> bool {
    if !cfg!(target_os = "linux") {
        return true;
    }
    let ipv4 = std::fs::read_to_string("/proc/net/route").map(|table| has_ipv4_default(&table));
    if let Ok(true) = ipv4 {
        return true;
    }
    let ipv6 = std::fs::read_to_string("/proc/net/ipv6_route").map(|table| has_ipv6_default(&table));
    matches!((ipv4, ipv6), (_, Ok(true)) | (Err(_), Err(_)))
}

const UP: u32 = 0x1;
const REJECT: u32 = 0x200;

fn usable(flags: &str) -> bool {
    u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & UP != 0 && flags & REJECT == 0)
}

/// Fields: interface, destination, gateway, flags, references, use, metric, mask.
fn has_ipv4_default(table: &str) -> bool {
    table.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        matches!(fields[..], [_, "00000000", _, flags, _, _, _, "00000000", ..] if usable(flags))
    })
}

/// Fields: destination, its prefix length, source, its prefix length, next hop, metric, references, use, flags,
/// interface. The kernel keeps an unreachable default on `lo` where there is no other.
fn has_ipv6_default(table: &str) -> bool {
    const ANY: &str = "00000000000000000000000000000000";
    table.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        matches!(fields[..], [ANY, "00", _, _, _, _, _, _, flags, interface] if interface != "lo" && usable(flags))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

    #[test]
    fn a_default_route_that_is_up_is_a_network() {
        let local = "eth0\t0000A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n";
        let default = "eth0\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n";
        let rejecting = "*\t00000000\t00000000\t0201\t0\t0\t100\t00000000\t0\t0\t0\n";
        let half = "tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n";
        for (table, up) in [("", false), (local, false), (default, true), (rejecting, false), (half, false)] {
            assert_eq!(has_ipv4_default(&format!("{HEAD}{table}")), up, "{table}");
        }
        assert!(has_ipv4_default(&format!("{HEAD}{local}{default}")));
    }

    #[test]
    fn an_unreachable_ipv6_default_is_none() {
        let any = "00000000000000000000000000000000 00 00000000000000000000000000000000 00";
        let hop = "fe800000000000000000000000000001";
        let none = "00000000000000000000000000000000";
        for (line, up) in [
            (format!("{any} {none} ffffffff 00000001 00000000 00200200       lo"), false),
            (format!("{any} {hop} 00000400 00000001 00000000 00000003     eth0"), true),
            (format!("{any} {hop} 00000400 00000001 00000000 00000002     eth0"), false),
        ] {
            assert_eq!(has_ipv6_default(&line), up, "{line}");
        }
    }
}
