//! `rackloom top`: a live view of a rack that is up, in the whole terminal.
//!
//! One thread requests the status of the rack, another receives its events, and the main thread draws and reads keys. The view holds only
//! what a screen shows: the latest status, the rates since the one before, and short histories of rates.

mod keys;
mod model;
mod view;

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rackloom_control::request::RackStatus;
use rackloom_runtime::standing::{EventStream, RackEvent, StandingRack};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use self::keys::Effect;
use self::model::Model;
use self::view::Look;
use crate::arguments::TopArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{reporting, standing};

/// Number of messages that wait for the main thread.
const MESSAGES_MAX: usize = 256;
/// Longest time between two looks for keys while nothing arrives.
const KEY_INTERVAL: Duration = Duration::from_millis(50);
/// Longest time between two looks for the end of this command in the thread that receives events.
const EVENT_WAIT: Duration = Duration::from_millis(500);

/// Message to the main thread.
enum Message {
    Status(Box<RackStatus>),
    Event(RackEvent),
    /// The rack does not answer, or has ended.
    Ended(String),
}

/// Runs the live view until a key ends it, or the rack ends.
pub(crate) fn run(arguments: &TopArguments) -> Result<Exit, Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let hint = "`rackloom status --watch` and `rackloom events --follow` are for scripts";
        return Err(Failure::bad_input("`top` needs a terminal").hint(hint));
    }
    let rack = standing::only(arguments.name.as_deref())?;
    let name = rack.name().to_owned();
    let interval = Duration::from_nanos(arguments.interval);
    let mut model = Model::new(rack.brief_status()?, rack.events()?);
    let (sender, messages) = sync_channel(MESSAGES_MAX);
    spawn_status(rack, interval, sender.clone());
    spawn_events(&name, sender)?;
    let mut terminal = ratatui::try_init()
        .map_err(|error| Failure::could_not_start("cannot take over the terminal", error))?;
    let ended = watch(&mut terminal, &mut model, &messages, &Look::of_environment());
    ratatui::restore();
    match ended {
        Ok(None) => Ok(Exit::Pass),
        Ok(Some(reason)) => {
            reporting::print_to_stderr(&format!("rack {name}: {reason}"));
            Ok(Exit::Pass)
        }
        Err(error) => Err(Failure::could_not_start("cannot draw on the terminal", error)),
    }
}

/// Sends a status per interval. A slow main thread makes it wait.
fn spawn_status(rack: StandingRack, interval: Duration, sender: SyncSender<Message>) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(interval);
            let message = match rack.brief_status() {
                Ok(status) => Message::Status(Box::new(status)),
                Err(failure) => Message::Ended(failure.to_string()),
            };
            let is_over = matches!(message, Message::Ended(_));
            if sender.send(message).is_err() || is_over {
                return;
            }
        }
    });
}

/// Sends each event of the rack.
fn spawn_events(name: &str, sender: SyncSender<Message>) -> Result<(), Failure> {
    let mut events = EventStream::of(name)?;
    std::thread::spawn(move || {
        loop {
            let message = match events.next(EVENT_WAIT) {
                Ok(None) => continue,
                Ok(Some(event)) => Message::Event(event),
                Err(_) => return,
            };
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Draws until a key ends the view; returns the reason if the rack has ended.
fn watch(
    terminal: &mut DefaultTerminal,
    model: &mut Model,
    messages: &Receiver<Message>,
    look: &Look,
) -> io::Result<Option<String>> {
    let mut must_draw = true;
    loop {
        if must_draw {
            terminal.draw(|frame| view::draw(frame, model, look))?;
        }
        must_draw = false;
        let until = Instant::now() + KEY_INTERVAL;
        loop {
            match messages.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Message::Status(status)) => model.update(*status),
                Ok(Message::Event(event)) => model.add_event(event),
                Ok(Message::Ended(reason)) => return Ok(Some(reason)),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Ok(Some("it has ended".to_owned())),
            }
            must_draw = true;
        }
        while event::poll(Duration::ZERO)? {
            must_draw = true;
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match keys::handle(model, key) {
                    Effect::None => {}
                    Effect::Quit => return Ok(None),
                    Effect::Do(action) => {
                        let answer = action.carry_out(model.rack_name());
                        model.say(answer);
                    }
                },
                _ => {}
            }
        }
    }
}
