//! The one place that prints. Commands fill an [`Output`]; the process that was typed at writes it out.
//!
//! Text may hold colours; they are stripped where the reader is no terminal, so a command never asks. A long table has none
//! in the first place where that is known before: to strip them takes longer than to write it.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde::{Deserialize, Serialize};

use super::args::Color;
use crate::channel::terminal::plain;
use crate::refusal::{Cause, Refusal};

/// Headings and ids.
pub const STRONG: Style = Style::new().bold();
/// What matters less.
pub const FAINT: Style = Style::new().dimmed();
/// What went well.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What went wrong.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// What may go wrong.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// A way out.
pub const HINT: Style = AnsiColor::Cyan.on_default();

/// The last column keeps so many characters, however narrow the terminal is.
const SHORTEST: usize = 12;

/// What a command has to say: data, everything else, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Data.
    pub stdout: String,
    /// Everything else.
    pub stderr: String,
    /// 0 done, 1 the person can fix it, 2 the program or the environment failed.
    pub exit: u8,
    /// Tables need no colours.
    #[serde(skip)]
    pub plain_tables: bool,
    /// How many characters fit a line; `None`: as many as there are.
    #[serde(skip)]
    pub width: Option<usize>,
}

impl Output {
    /// For this process's own stdout.
    #[must_use]
    pub fn to_stdout(color: Color) -> Self {
        Self {
            plain_tables: choice(&io::stdout(), color) == ColorChoice::Never,
            width: terminal_width(),
            ..Self::default()
        }
    }

    /// A line of data.
    pub fn line(&mut self, text: impl AsRef<str>) {
        self.stdout.push_str(text.as_ref());
        self.stdout.push('\n');
    }

    /// A line beside the data.
    pub fn note(&mut self, text: impl AsRef<str>) {
        self.stderr.push_str(text.as_ref());
        self.stderr.push('\n');
    }

    /// One JSON document as the data.
    pub fn json(&mut self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.line(text),
            Err(error) => self.fail(&Refusal::environment(format!("cannot write JSON: {error}"))),
        }
    }

    /// Columns of data, each as wide as its widest cell, two blanks between; the last is not padded, and cut where a line would
    /// not fit the terminal.
    pub fn table(&mut self, rows: &[Vec<Cell>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![0; columns];
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width);
            }
        }
        let before: usize = widths.iter().take(columns.saturating_sub(1)).map(|width| width + 2).sum();
        let last = self.width.map_or(usize::MAX, |width| width.saturating_sub(before).max(SHORTEST));
        for row in rows {
            for (index, cell) in row.iter().enumerate() {
                let style = if self.plain_tables { Style::new() } else { cell.style };
                let limit = if index + 1 == columns { last } else { usize::MAX };
                paint_into(&mut self.stdout, style, &cut(cell, limit));
                if index + 1 < row.len() {
                    let blanks = widths.get(index).copied().unwrap_or(0) - cell.width + 2;
                    self.stdout.extend(std::iter::repeat_n(' ', blanks));
                }
            }
            self.stdout.truncate(self.stdout.trim_end_matches(' ').len());
            self.stdout.push('\n');
        }
    }

    /// Ends with an error.
    pub fn fail(&mut self, refusal: &Refusal) {
        self.exit = match refusal.cause {
            Cause::Caller | Cause::Denied => 1,
            Cause::Environment => 2,
        };
        self.note(format!("{}: {}", paint(BAD, "error"), plain(&refusal.to_string())));
        for hint in &refusal.hints {
            self.note(format!("{}: {}", paint(HINT, "hint"), plain(hint)));
        }
    }

    /// Writes what there is by now, and goes on with nothing: for commands that do not end soon. Returns whether anybody reads
    /// it.
    ///
    /// # Errors
    /// When the streams cannot be written for another reason, such as a full disk.
    pub fn print_now(&mut self, color: Color) -> Result<bool, Refusal> {
        let written = write_all(io::stdout(), color, &self.stdout)
            .and_then(|read| Ok(read & write_all(io::stderr(), color, &self.stderr)?));
        self.stdout.clear();
        self.stderr.clear();
        written.map_err(|error| Refusal::environment(format!("cannot write: {error}")))
    }

    /// Writes all of it to this process's own stdout and stderr. A closed pipe (`… | head`) is not an error.
    ///
    /// # Errors
    /// When the streams cannot be written for another reason, such as a full disk.
    pub fn print(&self, color: Color) -> io::Result<()> {
        let out = write_all(io::stdout(), color, &self.stdout);
        let err = write_all(io::stderr(), color, &self.stderr);
        out.and(err).map(drop)
    }
}

/// How many characters fit a line of this process's own terminal; `None`: its output goes elsewhere.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// What `color` means for a stream; never `Auto`.
fn choice(stream: &impl RawStream, color: Color) -> ColorChoice {
    match color {
        Color::Auto => AutoStream::choice(stream),
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    }
}

/// In one piece: a long list is one system call, not one for every line. Returns whether anybody reads it.
fn write_all(mut stream: impl RawStream, color: Color, text: &str) -> io::Result<bool> {
    let colored = text.contains('\u{1b}');
    let written = if colored && choice(&stream, color) == ColorChoice::Never {
        stream.write_all(anstream::adapter::strip_str(text).to_string().as_bytes())
    } else {
        stream.write_all(text.as_bytes())
    };
    match written.and_then(|()| stream.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        other => other.map(|()| true),
    }
}

/// One cell of a table.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    width: usize,
    style: Style,
}

impl Cell {
    /// Text from anywhere, made safe to show, in one style.
    pub fn new(text: impl AsRef<str>, style: Style) -> Self {
        let text = plain(text.as_ref());
        Self { width: text.chars().count(), text, style }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Style::new())
    }
}

/// A cell's text in at most so many characters, cut between words where there are some.
fn cut(cell: &Cell, limit: usize) -> Cow<'_, str> {
    if cell.width <= limit {
        return Cow::Borrowed(&cell.text);
    }
    let end = cell.text.char_indices().nth(limit - 1).map_or(cell.text.len(), |(end, _)| end);
    let kept = &cell.text[..end];
    let kept = kept.rfind(' ').filter(|word| *word > end / 2).map_or(kept, |word| &kept[..word]);
    Cow::Owned(format!("{}…", kept.trim_end()))
}

/// Text in a style.
#[must_use]
pub fn paint(style: Style, text: &str) -> String {
    let mut painted = String::new();
    paint_into(&mut painted, style, text);
    painted
}

fn paint_into(painted: &mut String, style: Style, text: &str) {
    if style == Style::new() || text.is_empty() {
        painted.push_str(text);
    } else {
        // A String takes everything.
        let _ = write!(painted, "{style}{text}{style:#}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut output = Output::default();
        output.table(&[
            vec!["a".into(), Cell::new("long cell", STRONG), "end".into()],
            vec!["bbb".into(), "x".into(), "".into()],
        ]);
        let text = anstream::adapter::strip_str(&output.stdout).to_string();
        assert_eq!(text, "a    long cell  end\nbbb  x\n");
    }

    #[test]
    fn the_last_column_gives_way() {
        let shown = |width: usize, text: &str| {
            let mut output = Output { width: Some(width), ..Output::default() };
            output.table(&[vec!["some-id".into(), text.into()]]);
            output.stdout
        };
        let text = "Sort the mail and say what matters";
        assert_eq!(shown(80, text), format!("some-id  {text}\n"));
        assert_eq!(shown(30, text), "some-id  Sort the mail and…\n");
        assert_eq!(shown(5, text), "some-id  Sort the…\n");
        assert_eq!(shown(21, "Donaudampfschiffahrtsgesellschaft"), "some-id  Donaudampfs…\n");
        assert!(shown(30, text).trim_end().chars().count() <= 30);
    }
}
