//! A plan for people: 80 columns.

use super::arguments::PlanArguments;
use super::model::{Cost, Plan, Way};
use super::prices;
use crate::output::{Side, Table, number, span, text};

/// Rounded, with its digits grouped.
pub(crate) fn whole(value: f64) -> String {
    // Figures of a plan are far below 2^53 and not negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = value.max(0.0).round() as u64;
    number(whole)
}

fn time(seconds: f64) -> String {
    // A plan lasts days at most.
    #[allow(clippy::cast_possible_truncation)]
    let ms = (seconds * 1_000.0) as i64;
    span(ms)
}

pub(crate) fn shown(plan: &Plan, arguments: &PlanArguments) -> String {
    let mut page = text(&people(plan, arguments));
    for part in [ways(plan), bills(plan), assumptions(arguments)] {
        page.push('\n');
        page.push_str(&part);
    }
    page.push('\n');
    for warning in &plan.warnings {
        page.extend(["warning: ", warning, "\n"]);
    }
    page + prices::AS_OF + "\n"
}

fn people(plan: &Plan, arguments: &PlanArguments) -> Vec<String> {
    let wait = &plan.wait_seconds;
    let row = |what: &str, line: String| format!("  {what:<10}  {line}");
    let waits: Vec<String> = plan
        .waits
        .iter()
        .map(|wait| format!("{}% {}", wait.arrival, wait.seconds.map_or_else(|| "never".to_owned(), time)))
        .collect();
    let mut lines = vec![
        format!(
            "{} people within {}, {} places, {} let in a second",
            number(arguments.users.into()),
            time(arguments.arrive.0.as_secs_f64()),
            number(arguments.seats.into()),
            whole(plan.per_second),
        ),
        String::new(),
        row("let in", format!("{}, the last after {}", whole(plan.let_in), time(plan.last_in_seconds))),
        row(
            "wait",
            format!(
                "p50 {}, p90 {}, p99 {}, max {}",
                time(wait.p50),
                time(wait.p90),
                time(wait.p99),
                time(wait.max)
            ),
        ),
    ];
    // By when people come.
    for (at, waits) in waits.chunks(4).enumerate() {
        lines.push(row(if at == 0 { "by arrival" } else { "" }, waits.join(", ")));
    }
    lines.extend([
        row(
            "peaks",
            format!(
                "{} waiting, {} inside, {} joins/s, {} bookings/s",
                whole(plan.peak_waiting),
                whole(plan.peak_inside),
                whole(plan.peak_joins_per_second),
                whole(plan.peak_bookings_per_second)
            ),
        ),
        row("Redis", format!("{} MB, {}", whole(plan.redis.memory_mb), plan.redis.node)),
        row(
            "behind it",
            format!(
                "{} facts/s, {} SQS messages/s, {} rows/s in PostgreSQL",
                whole(plan.facts_per_second),
                whole(plan.queue_messages_per_second),
                whole(plan.rows_per_second)
            ),
        ),
    ]);
    lines
}

fn ways(plan: &Plan) -> String {
    let mut table = Table::new([
        ("AT THE PEAK", Side::Left),
        ("POLLING", Side::Right),
        ("PROGRESS", Side::Right),
        ("PUSH", Side::Right),
    ]);
    let mut row = |what: &str, value: &dyn Fn(&Way) -> String| {
        let cells: Vec<String> = plan.ways.iter().map(value).collect();
        if let [polling, progress, push] = cells.as_slice() {
            table.row([what.to_owned(), polling.clone(), progress.clone(), push.clone()]);
        }
    };
    row("API Gateway requests/s", &|way| whole(way.peak_requests_per_second));
    row("  of them polls/s", &|way| whole(way.peak_polls_per_second));
    row("edge readings/s", &|way| whole(way.peak_edge_per_second));
    row("open sockets", &|way| whole(way.peak_sockets));
    row("messages/s", &|way| whole(way.peak_messages_per_second));
    row("Lambda environments", &|way| whole(way.environments));
    row("  of the busiest function", &|way| whole(way.busiest_environments));
    row("  to be warm beforehand", &|way| whole(way.must_be_warm));
    row("Redis' core busy", &|way| format!("{:.0} %", way.redis_cpu * 100.0));
    row("polls of the whole sale", &|way| whole(way.polls));
    table.text()
}

fn usd(usd: f64) -> String {
    let cents = format!("{usd:.2}");
    let (dollars, cents) = cents.split_once('.').unwrap_or((&cents, "00"));
    format!("{}.{cents}", dollars.parse().map_or_else(|_| dollars.to_owned(), number))
}

fn bills(plan: &Plan) -> String {
    let mut table = Table::new([
        ("USD OF THE SALE", Side::Left),
        ("POLLING", Side::Right),
        ("PROGRESS", Side::Right),
        ("PUSH", Side::Right),
    ]);
    let lines = plan.ways.first().map_or(0, |way| way.sale.len());
    for at in 0..lines {
        let cells: Vec<&Cost> = plan.ways.iter().filter_map(|way| way.sale.get(at)).collect();
        if let [polling, progress, push] = cells.as_slice() {
            table.row([polling.what.to_owned(), usd(polling.usd), usd(progress.usd), usd(push.usd)]);
        }
    }
    if let [polling, progress, push] = plan.ways.as_slice() {
        table.row(["together".to_owned(), usd(polling.sale_usd), usd(progress.sale_usd), usd(push.sale_usd)]);
    }
    let mut month = Table::new([("USD OF A MONTH AT REST", Side::Left), ("", Side::Right)]);
    for cost in &plan.month {
        month.row([cost.what.to_owned(), usd(cost.usd)]);
    }
    month.row(["together".to_owned(), usd(plan.month_usd)]);
    table.text() + "\n" + &month.text()
}

/// Each with the flag that changes it.
fn assumptions(arguments: &PlanArguments) -> String {
    let assumed = serde_json::to_value(&arguments.assumed).unwrap_or_default();
    let assumed = assumed.as_object().into_iter().flatten();
    let flags: Vec<String> = assumed
        .map(|(name, value)| match value.as_str() {
            Some(text) => format!("{} {text}", flag(name)),
            None => format!("{} {value}", flag(name)),
        })
        .collect();
    let mut lines =
        vec!["assumed, each changed by its flag (jari plan --help says what it means):".to_owned()];
    let mut line = String::from(" ");
    for flag in flags {
        if line.len() + flag.len() + 2 > 80 {
            lines.push(std::mem::replace(&mut line, String::from(" ")));
        }
        line.push(' ');
        line.push_str(&flag);
    }
    lines.push(line);
    text(&lines)
}

/// `perEnvironment` → `--per-environment`
fn flag(name: &str) -> String {
    let mut flag = String::from("--");
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            flag.push('-');
        }
        flag.push(letter.to_ascii_lowercase());
    }
    flag
}

#[cfg(test)]
mod tests {
    use super::super::arguments::tests::typed;
    use super::*;

    #[test]
    fn a_plan_fits_80_columns_and_names_every_assumption_as_it_is_typed() {
        for users in ["1", "2000000", "20000000"] {
            let line = format!("--users {users} --seats 300000 --arrive 10m");
            let arguments = typed(&line);
            let page = shown(&super::super::model::plan(&arguments), &arguments);
            for line in page.lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
            let assumed = page.split("assumed").nth(1).unwrap().split("\n\n").next().unwrap();
            let flags: Vec<&str> = assumed.lines().skip(1).flat_map(str::split_whitespace).collect();
            assert!(flags.len() >= 38, "{flags:?}");
            // What is printed can be typed.
            typed(&format!("{line} {}", flags.join(" ")));
        }
    }

    #[test]
    fn money_and_flags_are_written_as_people_do() {
        assert_eq!((usd(1_234.567).as_str(), usd(0.0).as_str()), ("1,234.57", "0.00"));
        assert_eq!(flag("perEnvironment"), "--per-environment");
    }
}
