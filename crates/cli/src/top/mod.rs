//! `rackloom top`: a live view of a rack that is up, in the whole terminal.
//!
//! One thread requests the status of the rack, one receives its events, one reads keys, and the main thread draws. No thread wakes without need. The view holds only
//! what a screen shows: the latest status, the rates since the one before, and short histories of rates.

mod columns;
mod keys;
mod model;
mod view;

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rackloom_control::request::RackStatus;
use rackloom_runtime::standing::{EventStream, RackEvent, StandingRack, was_taken_down};
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
/// Least time between two drawings. All messages that arrive meanwhile share one.
const DRAW_INTERVAL: Duration = Duration::from_millis(50);
/// Longest wait for an event of the rack. The thread ends with the command.
const EVENT_WAIT: Duration = Duration::from_secs(60);

/// Message to the main thread.
enum Message {
    Status(Box<RackStatus>),
    Event(RackEvent),
    /// A key, or another size of the terminal.
    Input(Event),
    /// The terminal cannot be read.
    InputFailed(io::Error),
    /// The rack does not answer, or has ended.
    Ended(Failure),
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
    spawn_events(&name, sender.clone())?;
    let mut terminal = ratatui::try_init()
        .map_err(|error| Failure::could_not_start("cannot take over the terminal", error))?;
    spawn_input(sender);
    let ended = watch(&mut terminal, &mut model, &messages, &Look::of_environment());
    ratatui::restore();
    match ended {
        Ok(End::Quit) => Ok(Exit::Pass),
        Ok(End::Rack(_)) if was_taken_down(&name) => {
            reporting::print_to_stderr(&format!("rack {name} was taken down"));
            Ok(Exit::Pass)
        }
        Ok(End::Rack(failure)) => Err(failure),
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
                Err(failure) => Message::Ended(failure),
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

/// Sends each key, and each change of the terminal's size.
fn spawn_input(sender: SyncSender<Message>) {
    std::thread::spawn(move || {
        loop {
            let message = event::read().map_or_else(Message::InputFailed, Message::Input);
            let is_over = matches!(message, Message::InputFailed(_));
            if sender.send(message).is_err() || is_over {
                return;
            }
        }
    });
}

/// End of the view.
enum End {
    /// A key has ended it.
    Quit,
    /// The rack does not answer, or has ended.
    Rack(Failure),
}

/// Draws until a key ends the view, or the rack ends.
fn watch(
    terminal: &mut DefaultTerminal,
    model: &mut Model,
    messages: &Receiver<Message>,
    look: &Look,
) -> io::Result<End> {
    loop {
        terminal.draw(|frame| view::draw(frame, model, look))?;
        let drawn_at = Instant::now();
        let mut message = messages.recv().map_err(|_| RecvTimeoutError::Disconnected);
        loop {
            match message {
                Ok(message) => {
                    if let Some(end) = handle(model, message)? {
                        return Ok(end);
                    }
                }
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    let what = format!("rack {} is not watched any more", model.rack_name());
                    return Ok(End::Rack(Failure::new(Exit::Stalled, what)));
                }
            }
            message = messages.recv_timeout(DRAW_INTERVAL.saturating_sub(drawn_at.elapsed()));
        }
    }
}

/// Applies a message to the model. Returns the end of the view, if the message ends it.
fn handle(model: &mut Model, message: Message) -> io::Result<Option<End>> {
    match message {
        Message::Status(status) => model.update(*status),
        Message::Event(event) => model.add_event(event),
        Message::Ended(failure) => return Ok(Some(End::Rack(failure))),
        Message::InputFailed(error) => return Err(error),
        Message::Input(Event::Key(key)) if key.kind != KeyEventKind::Release => {
            match keys::handle(model, key) {
                Effect::None => {}
                Effect::Quit => return Ok(Some(End::Quit)),
                Effect::Do(action) => {
                    let answer = action.carry_out(model.rack_name());
                    model.say(answer);
                }
            }
        }
        Message::Input(_) => {}
    }
    Ok(None)
}
