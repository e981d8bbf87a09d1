//! The only module that prints. Commands fill an [`Output`], and the person's process writes it.
//!
//! On a terminal, lines are wrapped to its width (see [`wrap`]); elsewhere they stay whole.
//!
//! Text may contain colours. They are stripped if the reader is no terminal, so commands need not check. Tables omit them from the start
//! if that is known, since stripping a long table takes longer than writing it.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde::{Deserialize, Serialize};

use super::args::Color;
use super::wrap;
use crate::app::in_shell;
use crate::channel::commands::as_typed;
use crate::channel::terminal::{self, plain, wrapped};
use crate::refusal::{Cause, Refusal};

/// Usual text.
pub const PLAIN: Style = Style::new();
/// Headings and ids.
pub const STRONG: Style = Style::new().bold();
/// Less important text.
pub const FAINT: Style = Style::new().dimmed();
/// A success.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// A failure.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// A warning.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// A suggested fix.
pub const HINT: Style = AnsiColor::Cyan.on_default();

/// Minimum width of the last column, in characters. With less room, a row continues on further lines.
const SHORTEST: usize = 20;

/// Indentation of the further lines of a row.
const INDENT: usize = 2;

/// The output of a command: data, notes and exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The data.
    pub stdout: String,
    /// The notes.
    pub stderr: String,
    /// 0: done; 1: the person can fix it; 2: the program or the environment failed.
    pub exit: u8,
    /// Whether tables omit colours.
    #[serde(skip)]
    pub plain_tables: bool,
    /// Width of a table, in characters; `None` means unlimited.
    #[serde(skip)]
    pub width: Option<usize>,
    /// Width of other lines of data. A channel has none, since the person's device wraps them.
    #[serde(skip)]
    pub prose_width: Option<usize>,
    /// Width of a line of the notes.
    #[serde(skip)]
    pub notes_width: Option<usize>,
    /// The `--home` flag as given. The commands that the notes name have it, too.
    #[serde(skip)]
    pub home: Option<PathBuf>,
    /// Whether the data names commands for the person as well.
    #[serde(skip)]
    pub names_commands: bool,
    /// Whether the person types commands on a channel, as `/resume`.
    #[serde(skip)]
    pub is_for_channel: bool,
}

impl Output {
    /// Creates an output for this process's stdout.
    #[must_use]
    pub fn to_stdout(color: Color) -> Self {
        let width = terminal::width(io::stdout());
        Self {
            plain_tables: choice(&io::stdout(), color) == ColorChoice::Never,
            width,
            prose_width: width,
            notes_width: terminal::width(io::stderr()),
            ..Self::default()
        }
    }

    /// Adds a line of data, wrapped to the terminal.
    pub fn line(&mut self, text: impl AsRef<str>) {
        let text = wrap::fitted(&self.as_data(text.as_ref()), self.prose_width).into_owned();
        self.verbatim(text);
    }

    /// Adds a line of data that another program reads, or that a person copies.
    pub fn verbatim(&mut self, text: impl AsRef<str>) {
        self.stdout.push_str(text.as_ref());
        self.stdout.push('\n');
    }

    /// Adds a paragraph in one style, in lines that fit the terminal.
    pub fn paragraph(&mut self, style: Style, text: &str) {
        self.wrapped(text).iter().for_each(|line| self.line(paint(style, line)));
    }

    /// Adds a line to the notes.
    pub fn note(&mut self, text: impl AsRef<str>) {
        self.stderr.push_str(text.as_ref());
        self.stderr.push('\n');
    }

    /// Adds one JSON document as data.
    pub fn json(&mut self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.verbatim(text),
            Err(error) => self.fail(&Refusal::environment(format!("cannot write JSON: {error}"))),
        }
    }

    /// Adds a table. Each column is as wide as its widest cell, with two blanks between columns. The last one is not padded.
    pub fn table(&mut self, rows: &[Vec<Cell>]) {
        self.table_without(rows, &[]);
    }

    /// Like [`table`](Self::table), but drops the columns `least`, in order, until a line fits the terminal. The last column is cut
    /// between words. If that is not enough, rows continue on further lines.
    pub fn table_without(&mut self, rows: &[Vec<Cell>], least: &[usize]) {
        self.lay_out(rows, least, |cell, width| vec![cut(cell, width)]);
    }

    /// Adds lines of a name and a value. A value that does not fit the terminal continues below its start.
    pub fn facts(&mut self, rows: &[Vec<Cell>]) {
        self.lay_out(rows, &[], |cell, width| wrapped(&cell.text, width).into_iter().map(Cow::Owned).collect());
    }

    /// Makes text safe to show, and wraps it to the terminal.
    #[must_use]
    pub fn wrapped(&self, text: &str) -> Vec<String> {
        wrapped(&plain(&self.as_data(text)), self.width.unwrap_or(usize::MAX))
    }

    /// Adds a table. `fit` splits the last cell of a row into lines of at most the given width.
    fn lay_out(&mut self, rows: &[Vec<Cell>], least: &[usize], fit: impl Fn(&Cell, usize) -> Vec<Cow<'_, str>>) {
        // A command gets its final length before the layout.
        let cell = |cell: &Cell| Cell::new(self.as_data(&cell.text), cell.style);
        let rows = match self.names_commands && (self.home.is_some() || self.is_for_channel) {
            true => Cow::Owned(rows.iter().map(|row| row.iter().map(cell).collect()).collect()),
            false => Cow::Borrowed(rows),
        };
        let layout = Layout::of(&rows, least, self.width.unwrap_or(usize::MAX));
        for row in rows.iter() {
            let cells = layout.columns.iter().filter_map(|(column, width)| Some((row.get(*column)?, *width)));
            let (mut used, mut gap) = (0, 0);
            for (index, (cell, width)) in cells.clone().enumerate().take(layout.aligned) {
                self.stdout.extend(std::iter::repeat_n(' ', gap));
                used += gap;
                let is_last = index + 1 == layout.columns.len();
                match is_last && cell.width > layout.limit - used {
                    true => self.paint_lines(cell, &fit(cell, layout.limit - used), used),
                    false => self.paint(cell, &cell.text),
                }
                used += cell.width;
                gap = width + 2 - cell.width;
            }
            let mut is_first = true;
            for (cell, _) in cells.skip(layout.aligned).filter(|(cell, _)| cell.width > 0) {
                let indent = if is_first && layout.aligned == 0 { 0 } else { INDENT };
                let is_behind = !is_first && used + 2 + cell.width <= layout.limit;
                used = if is_behind { self.add(cell, used) } else { self.add_below(cell, used, indent, layout.limit) };
                is_first = false;
            }
            self.end_line();
        }
    }

    /// Appends a cell to a line of length `used`. Returns the new length.
    fn add(&mut self, cell: &Cell, used: usize) -> usize {
        self.stdout.push_str("  ");
        self.paint(cell, &cell.text);
        used + 2 + cell.width
    }

    /// Adds a cell on a new line of the row. Returns the length of the last line.
    fn add_below(&mut self, cell: &Cell, used: usize, indent: usize, limit: usize) -> usize {
        if used > 0 {
            self.end_line();
        }
        self.stdout.extend(std::iter::repeat_n(' ', indent));
        let lines = wrapped(&cell.text, limit.saturating_sub(INDENT).max(1));
        self.paint_lines(cell, &lines, INDENT);
        INDENT + lines.last().map_or(0, |line| terminal::columns(line))
    }

    fn end_line(&mut self) {
        self.stdout.truncate(self.stdout.trim_end_matches(' ').len());
        self.stdout.push('\n');
    }

    /// Adds the lines of one cell. All but the first are indented by `indent` blanks.
    fn paint_lines(&mut self, cell: &Cell, lines: &[impl AsRef<str>], indent: usize) {
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                self.stdout.push('\n');
                self.stdout.extend(std::iter::repeat_n(' ', indent));
            }
            self.paint(cell, line.as_ref());
        }
    }

    fn paint(&mut self, cell: &Cell, text: &str) {
        let style = if self.plain_tables { Style::new() } else { cell.style };
        paint_into(&mut self.stdout, style, text);
    }

    /// Adds an error and sets the exit code.
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

    /// Writes and clears the output so far, for long-running commands. Returns whether the streams are still read.
    ///
    /// # Errors
    /// Fails if the streams cannot be written, for example because the disk is full. A closed pipe is no error.
    pub fn print_now(&mut self, color: Color) -> Result<bool, Refusal> {
        let written = write_all(io::stdout(), color, &self.data())
            .and_then(|read| Ok(read & write_all(io::stderr(), color, &self.notes())?));
        self.stdout.clear();
        self.stderr.clear();
        written.map_err(|error| Refusal::environment(format!("cannot write: {error}")))
    }

    /// Writes the output to this process's stdout and stderr. A closed pipe (`… | head`) is not an error.
    ///
    /// # Errors
    /// Fails if the streams cannot be written for another reason, such as a full disk.
    pub fn print(&self, color: Color) -> io::Result<()> {
        let out = write_all(io::stdout(), color, &self.data());
        let err = write_all(io::stderr(), color, &self.notes());
        out.and(err).map(drop)
    }

    /// Returns a command for the person, which concerns the same data folder as this one.
    #[must_use]
    pub fn command(&self, words: &str) -> String {
        format!("ollim-bot {}{words}", self.home_flag())
    }

    /// Returns the `--home` flag as given, with a blank behind it, or nothing.
    fn home_flag(&self) -> String {
        self.home
            .as_ref()
            .map_or_else(String::new, |home| format!("--home {} ", in_shell(&plain(&home.to_string_lossy()))))
    }

    /// Returns the notes, wrapped to the terminal.
    fn notes(&self) -> String {
        wrap::fitted(&self.with_commands(&self.stderr), self.notes_width).into_owned()
    }

    fn data(&self) -> Cow<'_, str> {
        self.as_data(&self.stdout)
    }

    /// Returns a text as data for the person, in which commands are as the person types them.
    pub(super) fn as_data<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.names_commands { self.with_commands(text) } else { Cow::Borrowed(text) }
    }

    /// Returns a text that names commands as the person types them.
    fn with_commands<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_for_channel { Cow::Owned(as_typed(text)) } else { self.with_home(text) }
    }

    /// Returns a text in which the commands that it names concern the same data folder as this one.
    fn with_home<'a>(&self, text: &'a str) -> Cow<'a, str> {
        const COMMAND: &str = "`ollim-bot ";
        let flag = self.home_flag();
        if flag.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut parts = text.split(COMMAND);
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            text.push_str(COMMAND);
            text.push_str(if part.starts_with("--home") { "" } else { &flag });
            text.push_str(part);
        }
        Cow::Owned(text)
    }
}

/// Returns the choice of `color` for a stream; never `Auto`.
fn choice(stream: &impl RawStream, color: Color) -> ColorChoice {
    match color {
        Color::Auto => AutoStream::choice(stream),
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    }
}

/// Writes the text in a single call, instead of one for each line. Returns whether the stream is still read.
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

/// A cell of a table.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    width: usize,
    style: Style,
}

impl Cell {
    /// Creates a cell in one style. Makes the text safe to show.
    pub fn new(text: impl AsRef<str>, style: Style) -> Self {
        let text = plain(text.as_ref());
        Self { width: terminal::columns(&text), text, style }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Style::new())
    }
}

/// The columns of a table that fit.
struct Layout {
    /// Visible columns, each with its width.
    columns: Vec<(usize, usize)>,
    /// Number of aligned columns. The columns after them continue on further lines.
    aligned: usize,
    /// Width of a line, in characters.
    limit: usize,
}

impl Layout {
    fn of(rows: &[Vec<Cell>], least: &[usize], limit: usize) -> Self {
        let count = rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![0; count];
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width);
            }
        }
        let mut columns: Vec<(usize, usize)> = widths.into_iter().enumerate().collect();
        let mut least = least.iter();
        loop {
            let before = |count: usize| columns.iter().take(count).map(|(_, width)| width + 2).sum::<usize>();
            let last = columns.last().map_or(0, |(_, width)| *width);
            if before(columns.len().saturating_sub(1)).saturating_add(last.min(SHORTEST)) <= limit {
                return Self { aligned: columns.len(), columns, limit };
            }
            match least.next() {
                Some(column) => columns.retain(|(known, _)| known != column),
                None => {
                    let fit = (1..columns.len()).take_while(|count| before(*count) <= limit.saturating_add(2)).last();
                    return Self { aligned: fit.unwrap_or(0), columns, limit };
                }
            }
        }
    }
}

/// Cuts a cell's text to `limit` columns, between words if possible.
fn cut(cell: &Cell, limit: usize) -> Cow<'_, str> {
    if cell.width <= limit {
        return Cow::Borrowed(&cell.text);
    }
    let end = terminal::fitting(&cell.text, limit.saturating_sub(1));
    let start = cell.text[..end].rfind(' ').filter(|_| !cell.text[end..].starts_with(' ')).map_or(0, |blank| blank + 1);
    let word = terminal::columns(cell.text[start..].split(' ').next().unwrap_or_default());
    // Break a word that is longer than the limit.
    let end = if start > 0 && word < limit { start } else { end };
    Cow::Owned(format!("{}…", cell.text[..end].trim_end()))
}

/// Formats text in a style.
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
        // Writing to a String cannot fail.
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
    fn a_wide_character_counts_as_two_columns() {
        let mut output = Output { width: Some(31), ..Output::default() };
        let long = "昨日から届いたメールをすべて確認してください";
        output.table(&[vec!["日本".into(), "x".into(), long.into()], vec!["abcdef".into(), "y".into(), "z".into()]]);
        assert_eq!(output.stdout, "日本    x  昨日から届いたメー…\nabcdef  y  z\n");
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
        assert_eq!(shown(29, text), "some-id  Sort the mail and…\n");
        assert_eq!(shown(28, text), "some-id\n  Sort the mail and say what\n  matters\n");
        assert_eq!(
            shown(40, "a Donaudampfschiffahrtsgesellschaftskapitän"),
            "some-id  a Donaudampfschiffahrtsgesells…\n"
        );
        assert_eq!(
            shown(21, "Donaudampfschiffahrtsgesellschaft"),
            "some-id\n  Donaudampfschiffahr\n  tsgesellschaft\n"
        );
        assert_eq!(shown(5, "tea"), "som\n  e-i\n  d\n  tea\n");
    }

    #[test]
    fn columns_are_left_out_before_a_row_goes_on_in_further_lines() {
        let shown = |width: usize| {
            let mut output = Output { width: Some(width), ..Output::default() };
            let rows = ["ID KIND NEXT WHAT", "tea reminder 22:00 Tea-is-ready-in-the-kitchen"];
            let rows: Vec<Vec<Cell>> = rows.map(|row| row.split(' ').map(Cell::from).collect()).to_vec();
            output.table_without(&rows, &[1, 2]);
            output.stdout
        };
        assert_eq!(shown(80), "ID   KIND      NEXT   WHAT\ntea  reminder  22:00  Tea-is-ready-in-the-kitchen\n");
        assert_eq!(shown(41), "ID   NEXT   WHAT\ntea  22:00  Tea-is-ready-in-the-kitchen\n");
        assert_eq!(shown(25), "ID   WHAT\ntea  Tea-is-ready-in-the…\n");
        assert_eq!(shown(24), "ID\n  WHAT\ntea\n  Tea-is-ready-in-the-ki\n  tchen\n");
    }

    #[test]
    fn a_value_goes_on_below_its_beginning() {
        let shown = |width: usize| {
            let mut output = Output { width: Some(width), ..Output::default() };
            let value = "notify (no `claude` was found on PATH)";
            output.facts(&[vec!["client".into(), value.into()], vec!["".into(), "x".into()]]);
            output.stdout
        };
        assert_eq!(shown(80), "client  notify (no `claude` was found on PATH)\n        x\n");
        assert_eq!(shown(34), "client  notify (no `claude` was\n        found on PATH)\n        x\n");
        assert_eq!(shown(20), "client\n  notify (no\n  `claude` was found\n  on PATH)\n  x\n");
    }

    /// The line is wrapped after the command has its name on the channel, so that no command is left as it is typed at a shell.
    #[test]
    fn a_wrapped_value_names_commands_of_the_channel() {
        let mut output = Output { width: Some(34), is_for_channel: true, names_commands: true, ..Output::default() };
        let value = "2 jobs (`ollim-bot reminder retry ID` brings one back)";
        output.facts(&[vec!["failed".into(), value.into()]]);
        assert_eq!(output.stdout, "failed  2 jobs (`/retry ID` brings\n        one back)\n");
    }

    proptest::proptest! {
        /// At any width no line is too long, and no word is broken that fits on a line.
        #[test]
        fn no_line_is_too_long(
            rows in proptest::collection::vec(proptest::collection::vec("[a-z]{0,9}( [a-z]{1,9}){0,5}", 1..6), 1..5),
            width in 12..100_usize,
            facts: bool,
            least in proptest::collection::vec(0..5_usize, 0..3),
        ) {
            let mut output = Output { width: Some(width), ..Output::default() };
            let cells: Vec<Vec<Cell>> = rows.iter().map(|row| row.iter().map(Cell::from).collect()).collect();
            if facts { output.facts(&cells) } else { output.table_without(&cells, &least) }
            let words: Vec<&str> = rows.iter().flatten().flat_map(|cell| cell.split(' ')).collect();
            for line in output.stdout.lines() {
                proptest::prop_assert!(line.chars().count() <= width, "{}", output.stdout);
                for word in line.split_whitespace() {
                    proptest::prop_assert!(words.contains(&word.trim_end_matches('…')), "{word}: {}", output.stdout);
                }
            }
        }
    }
}
