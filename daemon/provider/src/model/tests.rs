use super::*;

#[test]
fn the_shipped_table_is_whole() {
    let table = ModelTable::shipped();
    let entries: Vec<&ModelEntry> = table.entries().collect();
    assert!(entries.len() >= 30, "{}", entries.len());
    assert!(entries.iter().any(|entry| entry.name.contains("Inkling") && entry.verified));
    for entry in &entries {
        let (provider, _) = entry.name.split_once(':').expect("provider:model");
        assert!(PRESETS.iter().any(|preset| preset.name == provider), "{} is of no preset", entry.name);
        assert!(!entry.title.is_empty(), "{} has no title", entry.name);
        assert!(entry.window.is_none_or(|window| window >= 4096), "{}", entry.name);
        assert!(entry.tools, "{}: the table is of models for agents", entry.name);
        let first_party = matches!(provider, "openai" | "anthropic");
        assert!(!entry.pdf || first_party, "{} takes no PDF files", entry.name);
    }
    // As many as the file has: none hides another.
    assert_eq!(entries.len(), SHIPPED.matches("[[model]]").count());
}

#[test]
fn a_model_is_found_under_its_variants_and_its_providers_aliases() {
    let table = ModelTable::shipped();
    let name = |provider: &str, model: &str| table.entry(provider, model).map(|entry| entry.name.as_str());
    assert_eq!(name("anthropic", "claude-haiku-4-5-20251001"), Some("anthropic:claude-haiku-4-5"));
    assert_eq!(name("openai", "gpt-4o-2024-08-06"), Some("openai:gpt-4o"));
    assert_eq!(name("gemini", "gemini-2.5-pro"), Some("google:gemini-2.5-pro"));
    assert_eq!(name("kimi", "Kimi-K2.6"), Some("moonshot:kimi-k2.6"));
    assert_eq!(name("openrouter", "thinkingmachines/inkling:free"), Some("openrouter:thinkingmachines/inkling"));
    assert_eq!(name("mistral", "mistral-large-latest"), Some("mistral:mistral-large-latest"));
    assert_eq!(name("openai", "gpt-5-turbo"), None);
    assert_eq!(name("anthropic", "gpt-5"), None);
}

#[test]
fn a_model_that_is_not_in_the_table_has_what_its_family_has() {
    let table = ModelTable::shipped();
    let flags = |provider: &str, model: &str| {
        let found = table.capabilities(provider, model);
        assert!(!found.is_known && !found.verified, "{provider}:{model}");
        (found.window, found.vision, found.pdf, found.thinking)
    };
    assert_eq!(flags("openai", "gpt-5.9"), (400_000, true, true, Thinking::None));
    assert_eq!(flags("openai", "o3-pro"), (200_000, false, false, Thinking::None));
    assert_eq!(flags("anthropic", "claude-sonnet-5"), (200_000, true, true, Thinking::Adaptive));
    assert_eq!(flags("anthropic", "claude-opus-4-1-20250805"), (200_000, true, true, Thinking::Budget));
    assert_eq!(flags("anthropic", "claude-3-haiku-20240307"), (200_000, true, true, Thinking::None));
    assert_eq!(flags("google", "gemini-4-pro"), (1_048_576, true, false, Thinking::None));
    assert_eq!(flags("openrouter", "anthropic/claude-sonnet-5"), (200_000, true, false, Thinking::None));
    assert_eq!(flags("ollama", "somebody/anything:7b"), (128_000, false, false, Thinking::None));
}

#[test]
fn the_users_table_adds_and_replaces() {
    let mut table = ModelTable::shipped();
    let text = "[[model]]\nname = \"mine:small\"\nwindow = 8192\ntools = false\n\
                [[model]]\nname = \"openai:gpt-5\"\nwindow = 1000\nprice = { input = 1, output = 2.5 }\n";
    table.extend(text, "models.toml").expect("well-formed");
    let mine = table.capabilities("mine", "small");
    assert_eq!((mine.window, mine.tools, mine.is_known), (8192, false, true));
    let replaced = table.capabilities("openai", "gpt-5");
    assert_eq!((replaced.window, replaced.vision), (1000, false));
    assert_eq!(replaced.price, Some(Price { input: 1_000_000, cached: 1_000_000, output: 2_500_000 }));
}

#[test]
fn a_wrong_table_names_its_line() {
    let error = |text: &str| ModelTable::default().extend(text, "models.toml").expect_err(text).to_string();
    let typo = error("[[model]]\nname = \"a:b\"\nwindo = 1\n");
    assert!(typo.starts_with("models.toml:3: not a table of models: unknown field `windo`"), "{typo}");
    assert_eq!(
        error("[[model]]\nname = \"gpt\"\n"),
        "models.toml: `gpt` names no provider; write it as `provider:model`"
    );
    assert!(error("[[model]]\nname = \"a:b\"\nprice = { input = -1, output = 1 }\n").contains("between 0 and"));
}

#[test]
fn cost_counts_cached_tokens_at_their_own_price_and_rounds_up() {
    let price = Price { input: 3_000_000, cached: 300_000, output: 15_000_000 };
    let cost = |input, cached, output| price.cost(&Usage { input, cached, output });
    assert_eq!(cost(1_000_000, 0, 0), 3_000_000);
    assert_eq!(cost(1_000_000, 1_000_000, 0), 300_000);
    assert_eq!(cost(1000, 400, 100), 1800 + 120 + 1500);
    assert_eq!(cost(0, 0, 1), 15);
    assert_eq!(Price { input: 1, cached: 1, output: 1 }.cost(&Usage { input: 1, cached: 0, output: 0 }), 1);
    assert_eq!(cost(u64::MAX, 0, u64::MAX), u64::MAX);
}
