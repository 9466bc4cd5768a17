//! Embedder by formula: a shift-invariant profile written as text.
//!
//! `psi` is an expression in `u = t_j - x` and in any further numeric parameters of the
//! specification, such as `sigma`. The module [`syntax`] defines the notation. A parameter that the
//! formula does not mention, a name that no parameter defines, and a value that is not finite
//! somewhere on the range of `u` are errors.

mod syntax;

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use exmex::{Express, FlatEx};
use syntax::Functions;

use super::{
    EmbedderError,
    kind::{Family, Kind},
    registry::{BOUNDARY, DIMENSION, DefaultValue, Parameter, Rule, SCALING, Values},
    shifted::{Boundary, Profile, Shifted},
};

pub(super) const KIND: Kind = Kind {
    name: "formula",
    label: "Formula",
    symbol: "Formula",
    latex: r"\psi_j(x) = \psi(t_j - x)",
    example: &[("psi", DefaultValue::Text("1 / (1 + (u/0.03)^2)"))],
    parameters: &[
        DIMENSION,
        Parameter::required(
            "psi",
            Rule::Text { longest: MAX_LENGTH },
            "the profile as an expression in u = t - x and numeric parameters",
        ),
        Parameter::optional("label", Rule::Text { longest: 100 }, "name in tables and legends"),
        Parameter::optional("latex", Rule::Text { longest: 1000 }, "the profile as LaTeX"),
        BOUNDARY,
        SCALING,
    ],
    takes_extra_numbers: true,
    check: |values| if is_accepted(&key(values)?) { Ok(()) } else { compile(values).map(|_| ()) },
    family: Family::Shifted,
    color: Some([0.44, 0.09, 172.0]),
    method_names: &["formula"],
    ..Kind::built_by(|values, _| Shifted::build(compile(values)?, values))
};

/// Maximum length of a formula in characters; it bounds the recursion depth of the parser.
const MAX_LENGTH: usize = 500;

/// The variable of the profile.
const DISPLACEMENT: &str = "u";

struct Formula {
    expression: FlatEx<f64, Functions>,
    /// Values of the variables in the order that the expression expects; that of `u` is a placeholder.
    variables: Vec<f64>,
    /// Index of `u` among the variables.
    displacement: usize,
}

impl Profile for Formula {
    fn evaluate(&self, u: &mut [f64]) {
        let mut variables = self.variables.clone();
        for value in u {
            variables[self.displacement] = *value;
            // An error cannot occur, because the number of variables is right by construction.
            *value = self.expression.eval(&variables).unwrap_or(f64::NAN);
        }
    }
}

/// Parses the formula, binds its variables and evaluates it over the whole range of `u`.
fn compile(values: &Values) -> Result<Formula, EmbedderError> {
    let text = values.text("psi")?;
    let fault = |reason: String| {
        EmbedderError::new(Some("psi"), format!("embedder 'formula': psi = {text:?} {reason}"))
    };
    let rewritten = syntax::rewrite(&text).map_err(&fault)?;
    let expression = FlatEx::<f64, Functions>::parse(&rewritten)
        .map_err(|error| fault(format!("cannot be read: {}", error.msg())))?;

    let extras = values.extra_numbers();
    let names = expression.var_names().to_vec();
    let mut variables = Vec::with_capacity(names.len());
    for name in &names {
        match extras.get(name.as_str()) {
            _ if name == DISPLACEMENT => variables.push(0.0),
            Some(value) => variables.push(*value),
            None => {
                return Err(fault(format!(
                    "uses '{name}', which is neither u nor a function nor a parameter; add a line '{name}: <number>' or correct the name"
                )));
            }
        }
    }
    for name in extras.keys() {
        let reason = if *name == DISPLACEMENT {
            "'u' is the distance t - x and cannot be set".to_owned()
        } else if !names.iter().any(|used| used == name) {
            format!("the parameter '{name}' does not occur in psi = {text:?}; remove it or use it")
        } else {
            continue;
        };
        return Err(EmbedderError::conflict(KIND.name, name, &reason));
    }
    let displacement = names.iter().position(|name| name == DISPLACEMENT).ok_or_else(|| {
        fault("does not contain u, so all positions have the same features".to_owned())
    })?;
    let formula = Formula { expression, variables, displacement };
    let key = key(values)?;
    if !is_accepted(&key) {
        probe(&formula, range(values)?).map_err(fault)?;
        accepted().insert(key);
    }
    Ok(formula)
}

/// The largest |u|.
fn range(values: &Values) -> Result<f64, EmbedderError> {
    Ok(if Boundary::from_values(values)? == Boundary::Periodic { 0.5 } else { 1.0 })
}

/// Keys of the formulas that [`compile`] has accepted; experiment files repeat formulas thousands of times.
static ACCEPTED: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

fn accepted() -> MutexGuard<'static, HashSet<String>> {
    ACCEPTED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_accepted(key: &str) -> bool {
    accepted().contains(key)
}

/// Everything that determines whether a formula is accepted, as text.
fn key(values: &Values) -> Result<String, EmbedderError> {
    Ok(format!("{:?} {:?} {}", values.text("psi")?, values.extra_numbers(), range(values)?))
}

/// Evaluates the profile on a grid of [-range, range] that contains 0. It must be finite and not constant.
fn probe(formula: &Formula, range: f64) -> Result<(), String> {
    const STEPS: i32 = 1000;
    let grid: Vec<f64> =
        (-STEPS..=STEPS).map(|i| range * (f64::from(i) / f64::from(STEPS))).collect();
    let mut profile = grid.clone();
    formula.evaluate(&mut profile);
    match grid.iter().zip(&profile).find(|(_, value)| !value.is_finite()) {
        Some((u, value)) => Err(format!(
            "is {value} at u = {u}; it must be finite for every u from {} to {range}",
            -range
        )),
        None if profile.iter().all(|value| *value == profile[0]) => {
            // Adding 0 turns -0 into 0.
            let value = profile[0] + 0.0;
            Err(format!("is {value} for every u, so all positions have the same features"))
        }
        None => Ok(()),
    }
}
