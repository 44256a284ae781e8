//! The rows on a terminal, and its keys. Whatever ends it, the terminal is as it was before: the
//! guard that took it gives it back when it goes.

use super::names::{Named, Names};
use super::plain::pid;
use super::rows::{Function, Key, Row, Rows, Scope, Worth, percent};
use super::{Sort, TopArgs};
use crate::failure::{Exit, Refusal};
use crate::plain::{ascii, escaped, only_ascii};
use lab::stop::Stop;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use ratatui::layout::{Constraint, Layout};
use ratatui::prelude::CrosstermBackend;
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Cell, Clear, Paragraph, Row as TableRow, Table, TableState};
use records::profile::AnnotatedFunction;
use sampler::system::{Machine, SystemRequest};
use std::collections::HashMap;
use std::io::{self, Stdout};
use std::sync::Arc;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(2);
/// Between two looks at keys and signals.
const POLL: Duration = Duration::from_millis(200);
/// Lines that a page key moves by, where the screen is not known.
const PAGE: usize = 10;

const HELP: &str = "\
 up, down, j, k     choose a row          Enter, right   go into it
 PgUp, PgDn         by pages              Esc, left      go back
 Home, End          first, last           s              sort by the next column
 w                  order by the window, or since the beginning
 space, p           pause, go on          h, ?           this help
 q, Ctrl-C          quit

 waits    the core waited for a load from memory
 CPU      CPU time, waiting included      kernel   of that, in the kernel
 Shares are percents of what all CPUs had to give, with half of their interval.
 [not known]: code without a name yet, or that no file has.";

/// Holds the terminal.
struct Screen {
    terminal: ratatui::Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    fn take() -> io::Result<Self> {
        enable_raw_mode()?;
        let taken = || {
            execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)?;
            ratatui::Terminal::new(CrosstermBackend::new(io::stdout()))
        };
        match taken() {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Where the terminal itself is gone there is nothing to give back.
fn give_back() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}

pub(super) fn run(
    args: &TopArgs,
    machine: &mut Machine,
    request: &SystemRequest,
    stop: Stop,
) -> anyhow::Result<Exit> {
    let not_shown = |error: io::Error| Refusal::not_possible_here("the terminal", records::plain(&error));
    let mut screen = Screen::take().map_err(not_shown)?;
    let mut names = Names::new(request);
    let mut view = View::new(args.sort);
    let interval = args.interval.unwrap_or(INTERVAL);
    let (mut next, mut shown) = (Instant::now(), 0);
    while !stop.asked() && args.number.is_none_or(|most| shown < most) {
        if event::poll(POLL).map_err(not_shown)? {
            match event::read().map_err(not_shown)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    if view.key(key) {
                        break;
                    }
                    view.refresh(machine, &names);
                }
                Event::Resize(..) => {}
                _ => continue,
            }
            screen.terminal.draw(|frame| view.draw(frame)).map_err(not_shown)?;
            continue;
        }
        machine.read();
        names.look(machine, view.unknown);
        if Instant::now() >= next {
            next = Instant::now() + interval;
            if !view.is_paused {
                view.refresh(machine, &names);
                shown += 1;
            }
            screen.terminal.draw(|frame| view.draw(frame)).map_err(not_shown)?;
        }
    }
    drop(screen);
    Ok(Exit::Done)
}

/// What is shown, and where the user is.
#[expect(clippy::struct_excessive_bools, reason = "five switches that do not hang together")]
struct View {
    scope: Scope,
    /// The code of the function is shown.
    is_code: bool,
    rows: Vec<Row>,
    selected: Option<Key>,
    at: usize,
    page: usize,
    sort: Sort,
    of_window: bool,
    is_paused: bool,
    is_help: bool,
    worth: Worth,
    unknown: f64,
    head: String,
    named: Option<Arc<Named>>,
    ascii: bool,
}

impl View {
    fn new(sort: Sort) -> Self {
        Self {
            scope: Scope::default(),
            is_code: false,
            rows: Vec::new(),
            selected: None,
            at: 0,
            page: PAGE,
            sort,
            of_window: true,
            is_paused: false,
            is_help: false,
            worth: Worth { now: 0.0, all: 0.0 },
            unknown: 1.0,
            head: "sampling …".to_owned(),
            named: None,
            ascii: only_ascii(),
        }
    }

    /// Sums up anew.
    fn refresh(&mut self, machine: &mut Machine, names: &Names) {
        self.named = names.latest().cloned();
        let none = HashMap::new();
        let places = self.named.as_ref().map_or(&none, |named| &named.places);
        let (window, recent) = machine.recent();
        let recent = recent.to_vec();
        let rows = Rows::of(machine, &recent, &self.scope, places);
        self.worth = Worth::of(machine, window);
        self.unknown = rows.unknown as f64 / rows.samples.max(1) as f64;
        self.rows = rows.sorted(self.sort, self.of_window);
        if self.of_window {
            self.rows.retain(|row| row.now.samples > 0);
        }
        self.follow();
        let busy = percent(rows.samples, self.worth.now);
        self.head = format!(
            "gleaner top: the last {:.0} s of {:.0} s, {} samples, {}busy {busy}% of {}, gleaner itself {:.2}%",
            window.as_secs_f64(),
            machine.elapsed().as_secs_f64(),
            rows.samples,
            if self.named.is_none() { "names are being read, " } else { "" },
            crate::profile::cpus(machine.cpus()),
            100.0 * machine.own_share()
        );
    }

    /// The row that was chosen may stand elsewhere now.
    fn follow(&mut self) {
        let found = self.selected.as_ref().and_then(|key| self.rows.iter().position(|row| row.key == *key));
        self.at = found.unwrap_or(self.at).min(self.last());
    }

    fn last(&self) -> usize {
        let all = if self.is_code {
            self.code().map_or(0, |code| code.instructions.len())
        } else {
            self.rows.len()
        };
        all.saturating_sub(1)
    }

    /// Whether it is over.
    fn key(&mut self, key: KeyEvent) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if self.is_help {
            self.is_help = false;
            return matches!(key.code, KeyCode::Char('q')) || is_control && key.code == KeyCode::Char('c');
        }
        match key.code {
            KeyCode::Char('c') if is_control => return true,
            KeyCode::Char('q') => return true,
            KeyCode::Down | KeyCode::Char('j') => self.go_to(self.at + 1),
            KeyCode::Up | KeyCode::Char('k') => self.go_to(self.at.saturating_sub(1)),
            KeyCode::PageDown => self.go_to(self.at + self.page),
            KeyCode::PageUp => self.go_to(self.at.saturating_sub(self.page)),
            KeyCode::Home => self.go_to(0),
            KeyCode::End => self.go_to(usize::MAX),
            KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => self.go_into(),
            KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => self.go_back(),
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('w') => self.of_window = !self.of_window,
            KeyCode::Char(' ' | 'p') => self.is_paused = !self.is_paused,
            KeyCode::Char('h' | '?') => self.is_help = true,
            _ => {}
        }
        false
    }

    fn go_to(&mut self, at: usize) {
        self.at = at.min(self.last());
        self.selected = self.rows.get(self.at).filter(|_| !self.is_code).map(|row| row.key.clone());
    }

    fn go_into(&mut self) {
        let Some(row) = self.rows.get(self.at).filter(|_| !self.is_code) else { return };
        match row.key.clone() {
            Key::Program(runs) => self.scope.program = Some(runs),
            Key::Function(function) => self.scope.function = Some(function),
            Key::Line(..) | Key::Instruction(_) => self.is_code = true,
            Key::Kernel | Key::Unknown => return,
        }
        (self.selected, self.at) = (None, 0);
        if self.is_code {
            self.at = self.most_waited();
        }
    }

    fn go_back(&mut self) {
        if self.is_code {
            self.is_code = false;
            self.selected = None;
        } else if let Some(function) = self.scope.function.take() {
            self.selected = Some(Key::Function(function));
        } else if let Some(program) = self.scope.program.take() {
            self.selected = Some(Key::Program(program));
        }
        self.at = 0;
    }

    /// The code of the function that is looked at.
    fn code(&self) -> Option<&AnnotatedFunction> {
        let Function { module, start, .. } = self.scope.function.as_ref()?;
        let code = &self.named.as_ref()?.profile.code;
        code.iter().find(|code| code.module == *module && code.address == *start)
    }

    fn most_waited(&self) -> usize {
        let instructions = self.code().map_or(&[][..], |code| &code.instructions);
        let most = instructions.iter().enumerate().max_by_key(|(_, instruction)| instruction.samples);
        most.map_or(0, |(at, _)| at)
    }

    fn shown(&self, text: &str) -> String {
        if self.ascii { ascii(text) } else { text.to_owned() }
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let [head, path, body, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let bold = Style::new().add_modifier(Modifier::BOLD);
        self.page = usize::from(body.height).saturating_sub(2).max(1);
        frame.render_widget(Paragraph::new(self.shown(&self.head)), head);
        frame.render_widget(Paragraph::new(self.shown(&self.path())).style(bold), path);
        let table = if self.is_code { self.code_table() } else { self.table() };
        let table = table.row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        let mut state = TableState::new().with_selected(Some(self.at));
        frame.render_stateful_widget(table, body, &mut state);
        let paused = if self.is_paused { "PAUSED  " } else { "" };
        let keys = format!(
            "{paused}sorted by {} {}   q quit  h help  Enter into  Esc back  s sort  w window  space pause",
            self.sort.word(),
            if self.of_window { "now" } else { "since the beginning" }
        );
        frame.render_widget(Paragraph::new(self.shown(&keys)), foot);
        if self.is_help {
            frame.render_widget(Clear, body);
            frame.render_widget(Paragraph::new(HELP), body);
        }
    }

    fn path(&self) -> String {
        let mut parts = vec!["all programs".to_owned()];
        parts.extend(self.scope.program.as_ref().map(|program| Key::Program(Arc::clone(program)).name()));
        parts.extend(self.scope.function.as_ref().map(|function| escaped(&function.name)));
        parts.extend(self.is_code.then(|| "code (samples since the beginning)".to_owned()));
        parts.join(" > ")
    }

    fn table(&self) -> Table<'static> {
        let what = match (&self.scope.program, &self.scope.function) {
            (None, _) => "program",
            (Some(_), None) => "function",
            (Some(_), Some(_)) => "line",
        };
        let columns = ["waits", "CPU", "kernel", "since: waits", "CPU", what, "pid", "of"];
        let head =
            TableRow::new(columns.map(str::to_owned)).style(Style::new().add_modifier(Modifier::UNDERLINED));
        let rows = self.rows.iter().map(|row| {
            let (now, all) = (row.now, row.all);
            let cells = [
                percent(now.waits, self.worth.now),
                percent(now.samples, self.worth.now),
                percent(now.kernel, self.worth.now),
                percent(all.waits, self.worth.all),
                percent(all.samples, self.worth.all),
                row.key.name(),
                pid(row),
                row.key.detail(),
            ];
            TableRow::new(cells.map(|cell| Cell::from(self.shown(&cell))))
        });
        let widths = [
            Constraint::Length(11),
            Constraint::Length(11),
            Constraint::Length(11),
            Constraint::Length(12),
            Constraint::Length(11),
            Constraint::Fill(3),
            Constraint::Length(if what == "program" { 13 } else { 0 }),
            Constraint::Fill(2),
        ];
        Table::new(rows, widths).header(head)
    }

    fn code_table(&self) -> Table<'static> {
        let columns = ["samples", "", "address", "instruction", "line"];
        let head =
            TableRow::new(columns.map(str::to_owned)).style(Style::new().add_modifier(Modifier::UNDERLINED));
        let instructions = self.code().map_or(&[][..], |code| &code.instructions);
        let mut rows: Vec<TableRow<'static>> = Vec::new();
        for instruction in instructions {
            let line = match (&instruction.file, instruction.line) {
                (Some(file), Some(line)) => {
                    format!("{}:{line}", escaped(file.rsplit('/').next().unwrap_or(file)))
                }
                _ => String::new(),
            };
            let samples =
                if instruction.samples == 0 { String::new() } else { instruction.samples.to_string() };
            let cells = [
                samples,
                if instruction.is_waited_for { "waits".to_owned() } else { String::new() },
                format!("{:#x}", instruction.address),
                escaped(&instruction.text),
                line,
            ];
            rows.push(TableRow::new(cells.map(|cell| Cell::from(self.shown(&cell)))));
        }
        if rows.is_empty() {
            let why = "its code is not shown: names are being read, or few samples are in it";
            rows.push(TableRow::new(["", "", "", why, ""].map(str::to_owned)));
        }
        let widths = [
            Constraint::Length(8),
            Constraint::Length(5),
            Constraint::Length(12),
            Constraint::Fill(3),
            Constraint::Fill(1),
        ];
        Table::new(rows, widths).header(head)
    }
}
