//! Syntax of formulas, and their translation for the expression parser.
//!
//! The parser binds a leading minus tighter than a power and reads `-u^2` as `(-u)^2`. It evaluates
//! `2^3^2` from the left and has no exponents in numbers. All three silently differ from mathematical
//! notation. In formulas, `-u^2` means `-(u^2)` and `1e-3` is a number. Ambiguous notation requires
//! parentheses: `a^b^c`, `a * -b` and `sin u` are errors that suggest what to write instead.

use exmex::{FloatOpsFactory, MakeOperators, Operator};

/// The functions and constants of formulas. The table in FORMAT.md lists all.
#[derive(Clone, Debug)]
pub(super) struct Functions;

impl MakeOperators<f64> for Functions {
    fn make<'a>() -> Vec<Operator<'a, f64>> {
        let mut all = FloatOpsFactory::<f64>::make();
        // At 0, that of the library is 1.
        all.retain(|operator| operator.repr() != "signum");
        all.extend([
            Operator::make_unary("sign", sign),
            Operator::make_unary("signum", sign),
            Operator::make_unary("step", |x| {
                if x.is_nan() { x } else { f64::from(u8::from(x >= 0.0)) }
            }),
            Operator::make_unary("sinc", sinc),
            Operator::make_constant("pi", std::f64::consts::PI),
        ]);
        all
    }
}

fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

/// sin(πx)/(πx).
fn sinc(x: f64) -> f64 {
    let x = std::f64::consts::PI * x;
    if x == 0.0 { 1.0 } else { x.sin() / x }
}

/// Translates a formula, or returns an error that suggests what to write instead.
pub(super) fn rewrite(text: &str) -> Result<String, String> {
    let operators = Functions::make();
    let is_function = |name: &str| {
        operators
            .iter()
            .any(|operator| operator.repr() == name && (operator.has_unary() || operator.has_bin()))
    };
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len() + 16);
    // Per open parenthesis: whether the current term already contains a power.
    let mut powers = vec![false];
    let mut previous = Token::Start;
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        if c.is_whitespace() {
            i += 1;
            continue;
        }
        if let Token::Function(name) = &previous
            && c != '('
        {
            return Err(format!(
                "cannot be read: the argument of {name} needs parentheses, as in {name}(u)"
            ));
        }
        if c.is_ascii_digit() || c == '.' {
            let (number, length) = number(&chars[i..])?;
            require_operator(&previous, &number)?;
            out.push_str(&number);
            previous = Token::Operand;
            i += length;
        } else if c.is_alphabetic() || c == '_' {
            let length =
                chars[i..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').count();
            let name: String = chars[i..i + length].iter().collect();
            require_operator(&previous, &name)?;
            out.push_str(&name);
            previous = if is_function(&name) { Token::Function(name) } else { Token::Operand };
            i += length;
        } else {
            previous = punctuation(c, previous, &mut powers, &mut out)?;
            i += 1;
        }
        // Keeps adjacent names and numbers apart.
        out.push(' ');
    }
    match previous {
        Token::Start => Err("is empty".to_owned()),
        Token::Operand if powers.len() > 1 => Err("lacks a closing parenthesis".to_owned()),
        Token::Operand => Ok(out),
        _ => Err("ends before it is complete".to_owned()),
    }
}

/// The token before the current position.
enum Token {
    /// The beginning, an opening parenthesis or a comma.
    Start,
    /// A number, a name or a closing parenthesis.
    Operand,
    /// The name of a function.
    Function(String),
    /// `+ - * / ^`.
    Operator(char),
}

/// Returns an error for two operands in a row, which lack a multiplication sign.
fn require_operator(previous: &Token, operand: &str) -> Result<(), String> {
    match previous {
        Token::Operand => Err(format!(
            "cannot be read: an operator is missing before '{operand}'; a product is written with *"
        )),
        _ => Ok(()),
    }
}

fn set_power(powers: &mut [bool], value: bool) {
    if let Some(last) = powers.last_mut() {
        *last = value;
    }
}

fn punctuation(
    c: char,
    previous: Token,
    powers: &mut Vec<bool>,
    out: &mut String,
) -> Result<Token, String> {
    let is_inside_power = powers.last().copied().unwrap_or(false);
    match (c, previous) {
        ('(', Token::Operand) => require_operator(&Token::Operand, "(").map(|()| Token::Start),
        ('(', _) => {
            powers.push(false);
            out.push('(');
            Ok(Token::Start)
        }
        (')' | ',', Token::Operand) if powers.len() > 1 => {
            if c == ')' {
                powers.pop();
            } else {
                set_power(powers, false);
            }
            out.push(c);
            Ok(if c == ')' { Token::Operand } else { Token::Start })
        }
        (')' | ',', Token::Operand) => Err(format!("has a '{c}' outside of parentheses")),
        ('+' | '-' | '*' | '/' | '^', Token::Operand) => {
            if c == '^' && is_inside_power {
                return Err("has a power of a power; write a^(b^c) or (a^b)^c".to_owned());
            }
            set_power(powers, c == '^');
            out.push(c);
            Ok(Token::Operator(c))
        }
        ('-', Token::Start) => {
            out.push_str("0-");
            Ok(Token::Operator('-'))
        }
        ('+', Token::Start) => Ok(Token::Start),
        ('+' | '-', Token::Operator(before)) => {
            Err(format!("has a sign after an operator; write {before}({c}...) with parentheses"))
        }
        ('+' | '-' | '*' | '/' | '^' | ')' | ',', _) => {
            Err(format!("cannot be read: an operand is missing before '{c}'"))
        }
        _ => Err(format!(
            "has the character '{c}'; allowed are names, numbers, + - * / ^ , and parentheses"
        )),
    }
}

/// A number at the start of `chars` as a plain decimal, and the number of characters read.
fn number(chars: &[char]) -> Result<(String, usize), String> {
    let digits = |from: usize| chars[from..].iter().take_while(|c| c.is_ascii_digit()).count();
    let mut length = digits(0);
    if chars.get(length) == Some(&'.') {
        length += 1;
        length += digits(length);
    }
    if matches!(chars.get(length), Some('e' | 'E')) {
        let sign = usize::from(matches!(chars.get(length + 1), Some('+' | '-')));
        let exponent = digits((length + 1 + sign).min(chars.len()));
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    let text: String = chars[..length].iter().collect();
    match text.parse::<f64>() {
        // `{}` prints a number without an exponent, with enough digits to parse back to the same double.
        Ok(value) if value.is_finite() => Ok((format!("{value}"), length)),
        _ => Err(format!("has the number '{text}', which is not a finite number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tolerance::{Tolerance, assert_close};
    use exmex::{Express, FlatEx};

    #[track_caller]
    fn check(text: &str, u: f64, expected: f64) {
        let rewritten = rewrite(text).unwrap();
        let expression = FlatEx::<f64, Functions>::parse(&rewritten).unwrap();
        let variables = vec![u; expression.var_names().len()];
        assert_close(expression.eval(&variables).unwrap(), expected, Tolerance::relative(1e-15));
    }

    #[track_caller]
    fn check_refused(text: &str, message: &str) {
        let error = rewrite(text).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }

    #[test]
    fn a_leading_minus_binds_weaker_than_a_power() {
        check("-u^2", 3.0, -9.0);
        check("exp(-u^2/2)", 2.0, (-2.0_f64).exp());
        check("max(1, -u^2)", 3.0, 1.0);
        check("(-u)^2", 3.0, 9.0);
    }

    #[test]
    fn numbers_may_have_exponents() {
        check("1e-3*u", 2.0, 0.002);
        check("2.5E+2 + .5", 0.0, 250.5);
        check("1e-300 * u", 4.0, 4e-300);
        check("2*e", 0.0, 2.0 * std::f64::consts::E);
    }

    #[test]
    fn precedence_is_that_of_mathematics() {
        check("10-3-2", 0.0, 5.0);
        check("6/2*3", 0.0, 9.0);
        check("2*u^2", 3.0, 18.0);
        check("u^2*u^2", 2.0, 16.0);
        check("+u - -1".replace("- -", "-").as_str(), 2.0, 1.0);
    }

    /// Catches functions with another value at 0, and a condition that selects the wrong side.
    #[test]
    fn own_functions_have_their_values() {
        check("2*pi", 0.0, std::f64::consts::TAU);
        check("sinc(u)", 0.0, 1.0);
        check("sinc(u)", 0.5, 2.0 / std::f64::consts::PI);
        check("sign(u)", 0.0, 0.0);
        check("sign(u)", -2.0, -1.0);
        for (u, expected) in [(-0.3, 2.0), (0.0, 3.0), (0.3, 3.0)] {
            check("2 + (3-2)*step(u)", u, expected);
        }
    }

    /// Catches a function or constant that FORMAT.md does not list.
    #[test]
    fn functions_and_constants_are_documented() {
        let format = include_str!("../../../../../FORMAT.md");
        let (_, section) = format.split_once("### Formulas").unwrap();
        for operator in Functions::make() {
            let name = operator.repr();
            assert!(section.contains(&format!("`{name}")), "`{name}`");
        }
    }

    #[test]
    fn ambiguous_text_is_rejected_with_a_suggestion() {
        check_refused("2^3^2", "power of a power");
        check_refused("u * -2", "*(-...)");
        check_refused("sin u", "sin(u)");
        check_refused("2u", "before 'u'");
        check_refused("2(u)", "before '('");
        check_refused("(u", "closing parenthesis");
        check_refused("u)", "outside of parentheses");
        check_refused("u *", "before it is complete");
        check_refused("* u", "an operand is missing before '*'");
        check_refused("u % 2", "'%'");
        check_refused("", "empty");
        check_refused("()", "an operand is missing before ')'");
        check_refused("1e999", "not a finite number");
    }
}
