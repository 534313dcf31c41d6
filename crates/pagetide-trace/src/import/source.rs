//! The input of an import: decompressed if it is zstd, counted, in large pieces.

use std::io::{self, BufRead, BufReader, Read};

use crate::error::{Problem, TraceError};

/// Size of a piece, and with it the longest line.
const PIECE: usize = 256 << 10;
/// Longest line of text.
pub(crate) const MAX_LINE: usize = 64 << 10;
/// zstd: largest window that is accepted, as a power of two; more would take too much memory.
const WINDOW_LOG_MAX: u32 = 27;

/// Bytes of an input and the position in it.
pub(crate) struct Source<'a> {
    input: Box<dyn Read + 'a>,
    is_zstd: bool,
    piece: Vec<u8>,
    /// Unread bytes are `piece[next..end]`.
    next: usize,
    end: usize,
    is_at_end: bool,
    /// Position of `piece[0]`.
    offset: u64,
    lines: u64,
}

impl<'a> Source<'a> {
    pub(crate) fn new(input: &'a mut dyn Read) -> Result<Source<'a>, TraceError> {
        let mut input = BufReader::new(input);
        let is_zstd = input.fill_buf()?.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        let input: Box<dyn Read + 'a> = if is_zstd {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
            decoder.window_log_max(WINDOW_LOG_MAX)?;
            Box::new(decoder)
        } else {
            Box::new(input)
        };
        Ok(Source {
            input,
            is_zstd,
            piece: vec![0; PIECE],
            next: 0,
            end: 0,
            is_at_end: false,
            offset: 0,
            lines: 0,
        })
    }

    /// Position of the next byte.
    pub(crate) fn bytes(&self) -> u64 {
        self.offset + self.next as u64
    }

    /// Lines taken.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// The unread bytes at hand, without taking them: at least `wanted` of them, unless the input
    /// ends before.
    pub(crate) fn peek(&mut self, wanted: usize) -> Result<&[u8], TraceError> {
        assert!(wanted <= PIECE);
        while self.end - self.next < wanted && !self.is_at_end {
            self.fill()?;
        }
        Ok(&self.piece[self.next..self.end])
    }

    /// Takes `count` bytes that [`Source::peek`] has shown.
    pub(crate) fn take(&mut self, count: usize) {
        assert!(count <= self.end - self.next);
        self.next += count;
    }

    /// The next line without its end (`\n` or `\r\n`), its number and its first byte's position.
    #[inline]
    pub(crate) fn line(&mut self) -> Result<Option<Line<'_>>, TraceError> {
        let mut searched = 0;
        let len = loop {
            let unread = &self.piece[self.next..self.end];
            if let Some(at) = unread[searched..].iter().position(|&byte| byte == b'\n') {
                break searched + at + 1;
            }
            searched = unread.len();
            if searched > MAX_LINE {
                let (value, limit) = (searched as u64, MAX_LINE as u64);
                let problem = Problem::TooLarge { what: "length of a line", value, limit };
                return Err(TraceError::at_line(self.lines + 1, self.bytes(), problem));
            }
            if self.is_at_end {
                break searched;
            }
            self.fill()?;
        };
        if len == 0 {
            return Ok(None);
        }
        let byte = self.bytes();
        let start = self.next;
        self.next += len;
        self.lines += 1;
        let text = &self.piece[start..start + len];
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        Ok(Some(Line { text, number: self.lines, byte }))
    }

    #[cold]
    fn fill(&mut self) -> Result<(), TraceError> {
        self.piece.copy_within(self.next..self.end, 0);
        self.offset += self.next as u64;
        self.end -= self.next;
        self.next = 0;
        let count = loop {
            match self.input.read(&mut self.piece[self.end..]) {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.refuse(&error)),
            }
        };
        self.is_at_end = count == 0;
        self.end += count;
        Ok(())
    }

    fn refuse(&self, error: &io::Error) -> TraceError {
        let byte = self.offset + self.end as u64;
        let problem = match (self.is_zstd, error.kind()) {
            (true, io::ErrorKind::UnexpectedEof) => Problem::CutShort { what: "zstd frame" },
            (true, io::ErrorKind::Other | io::ErrorKind::InvalidData) => {
                Problem::Compression { message: error.to_string() }
            }
            (_, kind) => Problem::Io { kind, message: error.to_string() },
        };
        TraceError::at_byte(byte, problem)
    }
}

/// A line of text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) text: &'a [u8],
    /// Counted from 1.
    pub(crate) number: u64,
    /// Position of its first byte.
    pub(crate) byte: u64,
}
