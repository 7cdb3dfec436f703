//! `jari plan`: what a sale asks of people and of the system, on paper.
//!
//! The line is a fluid: people come along a curve and go at the pace; whoever waits asks as often as their rank is
//! told. What the model says of waits and polls is held against a crowd by a test.

mod arguments;
mod line;
mod load;
mod model;
mod prices;
pub(crate) mod table;

pub(crate) use arguments::PlanArguments;

use serde::Serialize;

use crate::Ending;
use crate::output::Output;

#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    plan: &'a model::Plan,
    assumed: &'a arguments::Assumed,
    prices: &'static str,
}

pub(crate) fn run(arguments: &PlanArguments, output: &mut Output) -> anyhow::Result<Ending> {
    let plan = model::plan(arguments);
    if arguments.json {
        output.json(&Printed { plan: &plan, assumed: &arguments.assumed, prices: prices::AS_OF })?;
    } else {
        output.text(table::shown(&plan, arguments))?;
    }
    Ok(Ending::Fine)
}
