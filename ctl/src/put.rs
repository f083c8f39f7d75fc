/// Appends formatted text to a `String`: `put!(text, "{name}\n")`.
macro_rules! put {
    ($text:expr, $($part:tt)*) => {
        std::fmt::Write::write_fmt(&mut $text, format_args!($($part)*)).expect("writing to a String does not fail")
    };
}
