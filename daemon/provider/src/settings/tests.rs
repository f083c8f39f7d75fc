use super::*;
use crate::PRESETS;

fn change(name: &str, base_url: Option<&str>, key: Option<&str>) -> Result<ProviderSettings, SettingsError> {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    ProviderOverride { name: name.into(), base_url: owned(base_url), key: owned(key), ..ProviderOverride::default() }
        .settings()
}

#[test]
fn every_preset_can_be_called() {
    assert_eq!(PRESETS.len(), 18);
    for preset in PRESETS {
        let settings = preset.settings();
        assert_eq!(checked(preset.name, preset.base_url).as_deref(), Ok(preset.base_url), "{}", preset.name);
        assert_eq!(settings.check_key(), Ok(()), "{}", preset.name);
        assert_eq!(settings.uses_tls(), !preset.is_local, "{}", preset.name);
        let names = PRESETS.iter().flat_map(|other| other.aliases.iter().copied().chain([other.name]));
        assert_eq!(names.filter(|name| *name == preset.name).count(), 1, "{} is ambiguous", preset.name);
    }
}

#[test]
fn a_vendors_key_goes_to_no_other_host() {
    let moved = change("openai", Some("http://127.0.0.1:9000/v1"), None).expect("another base URL alone is fine");
    assert_eq!((moved.key, moved.needs_key), (None, false));
    let error = change("gateway", Some("https://gateway.example/v1"), Some("OPENAI_API_KEY")).expect_err("foreign");
    assert_eq!(
        error.to_string(),
        "provider `gateway`: `OPENAI_API_KEY` is the key of `openai` and goes to no other host than `api.openai.com`; \
         store the key for `https://gateway.example/v1` under a name of its own: owctl secret set gateway_key"
    );
    assert!(change("openai", Some("https://gateway.example/v1"), Some("openai_api_key")).is_err());
    assert!(change("gateway", Some("http://api.openai.com/v1"), Some("openai-api-key")).is_err(), "without TLS");
    assert!(change("other", Some("https://api.openai.com/v1"), Some("OPENAI_API_KEY")).is_ok(), "its own host");
    assert!(change("gateway", Some("https://gateway.example/v1"), Some("gateway_key")).is_ok());
}

#[test]
fn a_wrong_provider_is_named_with_its_remedy() {
    let text = |name: &str, url: Option<&str>| change(name, url, None).expect_err(name).to_string();
    assert_eq!(
        text("mine", None),
        "provider `mine` needs a `base-url`, as in `http://127.0.0.1:8000/v1`: it is none of the known ones"
    );
    assert_eq!(
        text("mine", Some("ftp://x/v1")),
        "provider `mine`: `ftp://x/v1` is not a URL of http or https without user, query and fragment"
    );
    assert!(!text("mine", Some("https://host/v1?key=sk-secret")).contains("secret"));
    assert!(text("My Own", Some("http://x/v1")).contains("lower-case"));
}

#[test]
fn a_base_url_may_end_in_a_slash() {
    let settings = change("mine", Some("http://localhost:8000/v1/"), None).expect("a provider");
    assert_eq!(settings.endpoint(), "http://localhost:8000/v1/chat/completions");
}
