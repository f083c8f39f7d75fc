use std::time::Duration;

use crate::settings::{Echo, ProviderSettings, StreamLimits};
use crate::wire::{LimitField, Wire};

/// A provider that needs no more configuration than a key, or than to run on this machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Preset {
    pub name: &'static str,
    /// Other names that mean the same.
    pub aliases: &'static [&'static str],
    /// For people.
    pub title: &'static str,
    pub base_url: &'static str,
    pub wire: Wire,
    /// The name of its key, as an environment variable's.
    pub key: Option<&'static str>,
    /// It runs on this machine: a key is not needed, and an answer may be long in coming.
    pub is_local: bool,
    echo: Echo,
}

/// Every preset, in the order in which they are listed.
pub const PRESETS: &[Preset] = &[
    Preset::vendor("openai", "OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    Preset {
        wire: Wire::Anthropic,
        ..Preset::vendor("anthropic", "Anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY")
    },
    Preset {
        aliases: &["gemini"],
        ..Preset::vendor(
            "google",
            "Google Gemini",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "GEMINI_API_KEY",
        )
    },
    Preset {
        echo: Echo::ReasoningContent,
        ..Preset::vendor("deepseek", "DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY")
    },
    Preset {
        aliases: &["kimi"],
        echo: Echo::ReasoningContent,
        ..Preset::vendor("moonshot", "Moonshot Kimi", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY")
    },
    Preset::vendor(
        "qwen",
        "Alibaba Qwen",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
    ),
    Preset {
        aliases: &["zai"],
        echo: Echo::ReasoningContent,
        ..Preset::vendor("glm", "Z.AI GLM", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY")
    },
    Preset {
        echo: Echo::ThinkTags,
        ..Preset::vendor("minimax", "MiniMax", "https://api.minimax.io/v1", "MINIMAX_API_KEY")
    },
    Preset::vendor("mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    Preset::vendor("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY"),
    Preset::vendor("together", "Together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    Preset::vendor("fireworks", "Fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    Preset::vendor("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    Preset::vendor("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    Preset::local("ollama", "Ollama", "http://127.0.0.1:11434/v1", None),
    Preset::local("vllm", "vLLM", "http://127.0.0.1:8000/v1", Some("VLLM_API_KEY")),
    Preset {
        aliases: &["llamacpp"],
        ..Preset::local("llama.cpp", "llama.cpp", "http://127.0.0.1:8080/v1", Some("LLAMA_API_KEY"))
    },
    Preset { aliases: &["lm-studio"], ..Preset::local("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1", None) },
];

/// A machine without a graphics card reads a long prompt for minutes before its first word.
const LOCAL_SILENCE: Duration = Duration::from_mins(15);

impl Preset {
    const fn vendor(name: &'static str, title: &'static str, base_url: &'static str, key: &'static str) -> Self {
        Self {
            name,
            aliases: &[],
            title,
            base_url,
            wire: Wire::OpenAi,
            key: Some(key),
            is_local: false,
            echo: Echo::Nothing,
        }
    }

    const fn local(name: &'static str, title: &'static str, base_url: &'static str, key: Option<&'static str>) -> Self {
        Self { name, aliases: &[], title, base_url, wire: Wire::OpenAi, key, is_local: true, echo: Echo::Nothing }
    }

    /// By name or alias.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name || preset.aliases.contains(&name))
    }

    #[must_use]
    pub fn settings(&self) -> ProviderSettings {
        let mut limits = StreamLimits::default();
        if self.is_local {
            limits.silence = LOCAL_SILENCE;
        }
        ProviderSettings {
            name: self.name.into(),
            base_url: self.base_url.into(),
            wire: self.wire,
            key: self.key.map(str::to_owned),
            needs_key: !self.is_local && self.key.is_some(),
            limits,
            echo: self.echo,
            short_ids: self.name == "mistral",
            limit_field: if self.name == "openai" { LimitField::MaxCompletionTokens } else { LimitField::MaxTokens },
            // Mistral tells the figures unasked and refuses the option.
            stream_options: self.name != "mistral",
            is_local: self.is_local,
        }
    }
}
