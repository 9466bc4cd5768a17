//! Parameter counts by arithmetic from the architecture (`lff` Tables 3–5).

use anyhow::{Result, bail};
use posenc_experiments::record::Value;
use posenc_math::lff::parameters::{table3, table4, table5, table5_on_public_code};

use super::{Model, ParameterCount};
use posenc_harness::protocol::{Context, Emit, Protocol};

impl Protocol for ParameterCount {
    fn run(&self, context: &Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
        let rows = match self.model {
            Model::Reformer => table3(),
            Model::Detr => table4(),
            Model::WidgetCaptioning => table5(),
            Model::PublicWidgetCaptioning => table5_on_public_code(),
        };
        let method = &context.job.variant.id;
        let Some(row) = rows.iter().find(|r| r.method == method) else {
            let names: Vec<_> = rows.iter().map(|r| r.method).collect();
            bail!("no method `{method}` in this table; allowed: {}", names.join(", "));
        };
        let mut values = vec![
            Value::new("params", row.total as f64 / 1e6).unit("M"),
            Value::new("params_rounded", row.rounded).unit("M"),
            Value::new("matches", f64::from(u8::from(row.matches))),
        ];
        for module in &row.modules {
            values.push(Value::new("module_params", module.count() as f64).signal(format!(
                "{} = {}",
                module.name,
                module.formula()
            )));
        }
        emit(0, values.into())
    }
}
