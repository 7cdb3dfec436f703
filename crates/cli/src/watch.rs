//! `jari watch`: a sale as it goes, in a terminal.

mod history;
mod metrics;
mod screen;

use std::io::{self, IsTerminal};
use std::time::Duration;

use admin::{Command, Reply};
use anyhow::{Context, bail};
use clap::Args;
use domain::EventId;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use self::history::{History, Reading};
use self::metrics::Scraper;
use crate::Ending;
use crate::arguments::SystemArguments;
use crate::output::Output;
use crate::system::{System, refused, running, unexpected};

/// Between two readings.
const INTERVAL: Duration = Duration::from_secs(1);
/// Between two looks at the keyboard.
const KEYS: Duration = Duration::from_millis(100);
/// What `--once` prints.
const FRAME: (u16, u16) = (80, 24);

#[derive(Debug, Args)]
#[command(after_help = "Example: jari watch ktx-2026-chuseok")]
pub(crate) struct WatchArguments {
    /// The event's id
    pub(crate) event: EventId,
    /// Print one frame of 80 × 24 as text and end
    #[arg(long)]
    pub(crate) once: bool,
}

pub(crate) async fn run(
    system: &SystemArguments,
    arguments: WatchArguments,
    output: &mut Output,
) -> anyhow::Result<Ending> {
    let is_local = system.redis.is_none() && system.function.is_none();
    let watch = Watch {
        system: System::find(system)?,
        scraper: if is_local { Scraper::of(&running(system)?.url) } else { None },
        event: arguments.event,
    };
    let mut history = History::default();
    match watch.read().await? {
        Ok(reading) => history.push(reading),
        Err(why) => return Ok(refused(&why)),
    }
    if arguments.once {
        // Two readings, so that there are rates.
        tokio::time::sleep(INTERVAL).await;
        if let Ok(reading) = watch.read().await? {
            history.push(reading);
        }
        output.text(screen::text(&history, FRAME.0, FRAME.1))?;
        return Ok(Ending::Fine);
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        bail!("this is no terminal: print a single frame with --once");
    }
    watch.follow(history).await
}

struct Watch {
    system: System,
    scraper: Option<Scraper>,
    event: EventId,
}

/// Gives the terminal back, however watching ends. A panic gives it back by ratatui's hook.
struct Screen(DefaultTerminal);

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = ratatui::try_restore();
    }
}

impl Watch {
    async fn read(&self) -> anyhow::Result<Result<Reading, admin::Refused>> {
        let detail = match self.system.ask(Command::Show { event: self.event.clone() }).await? {
            Ok(Reply::Shown(detail)) => detail,
            Ok(other) => return Err(unexpected(&other)),
            Err(why) => return Ok(Err(why)),
        };
        let metrics = match &self.scraper {
            Some(scraper) => scraper.scrape().await,
            None => None,
        };
        Ok(Ok(Reading { detail, metrics }))
    }

    /// Until q, Ctrl-C or a signal.
    async fn follow(&self, mut history: History) -> anyhow::Result<Ending> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let terminal = ratatui::try_init().inspect_err(|_| _ = ratatui::try_restore());
        let mut screen = Screen(terminal.context("cannot draw in this terminal")?);
        let mut keys = keys();
        let mut seconds = interval(INTERVAL);
        seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            screen.0.draw(|frame| screen::draw(frame, &history))?;
            tokio::select! {
                _ = seconds.tick() => match self.read().await? {
                    Ok(reading) => history.push(reading),
                    Err(why) => {
                        drop(screen);
                        return Ok(refused(&why));
                    }
                },
                key = keys.recv() => match key {
                    Some(Event::Key(key)) if !ends(key) => {}
                    // The terminal has another size: drawn anew.
                    Some(event) if !matches!(event, Event::Key(_)) => {}
                    _ => return Ok(Ending::Fine),
                },
                _ = terminate.recv() => return Ok(Ending::Fine),
                _ = hang_up.recv() => return Ok(Ending::Fine),
            }
        }
    }
}

fn ends(key: KeyEvent) -> bool {
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    is_interrupt || matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::Esc)
}

/// What is typed. The thread that reads it ends with the receiver; the channel ends with the keyboard.
fn keys() -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        while !sender.is_closed() {
            match event::poll(KEYS) {
                Ok(false) => {}
                Ok(true) => {
                    let is_heard = event::read().is_ok_and(|event| sender.blocking_send(event).is_ok());
                    if !is_heard {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_escape_and_an_interrupt_end_it_and_nothing_else() {
        let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
        assert!(ends(plain(KeyCode::Char('q'))) && ends(plain(KeyCode::Esc)));
        assert!(ends(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(!ends(plain(KeyCode::Char('c'))) && !ends(plain(KeyCode::Enter)));
    }
}
