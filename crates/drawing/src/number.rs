//! Numbers as text, always in one form: a point before decimals, no trailing zeros, no grouping.

/// Formats a coordinate of a picture: one decimal at most.
pub(crate) fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Formats a number with this many significant digits at most, without an exponent.
pub(crate) fn plain(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { "-".to_owned() };
    }
    let decimals = digits - 1 - value.abs().log10().floor() as i32;
    let text = format!("{value:.*}", decimals.clamp(0, 12) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Formats a number without a unit. Very large and very small ones have a power of ten.
pub(crate) fn short(value: f64, digits: i32) -> String {
    if value == 0.0 || (1e-3..1e6).contains(&value.abs()) || !value.is_finite() {
        return plain(value, digits);
    }
    let mut power = value.abs().log10().floor() as i32;
    let mut mantissa = plain(value / 10_f64.powi(power), digits);
    if mantissa.trim_start_matches('-') == "10" {
        power += 1;
        mantissa = mantissa.replace("10", "1");
    }
    let power = format!("10{}", superscript(power));
    match mantissa.as_str() {
        "1" => power,
        "-1" => format!("-{power}"),
        _ => format!("{mantissa}\u{b7}{power}"),
    }
}

fn superscript(number: i32) -> String {
    let raised = |character| match character {
        '-' => '\u{207b}',
        '1' => '\u{b9}',
        '2' => '\u{b2}',
        '3' => '\u{b3}',
        digit => char::from_u32(0x2070 + digit as u32 - '0' as u32).unwrap_or(digit),
    };
    number.to_string().chars().map(raised).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_form() {
        assert_eq!(
            [0.0, 12.0, 0.125, 1234.5678, 1e-4].map(|value| plain(value, 4)),
            ["0", "12", "0.125", "1235", "0.0001"]
        );
        assert_eq!(
            [1e-4, 2.5e-6, 1e6, -3e7, 999_999_999.9].map(|value| short(value, 4)),
            [
                "10\u{207b}\u{2074}",
                "2.5\u{b7}10\u{207b}\u{2076}",
                "10\u{2076}",
                "-3\u{b7}10\u{2077}",
                "10\u{2079}"
            ]
        );
        assert_eq!([-0.01, 3.0, 3.1259].map(coordinate), ["0", "3", "3.1"]);
    }
}
