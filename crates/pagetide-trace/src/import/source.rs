//! Buffered input of an import, with its byte and line position. Decompresses zstd.

use std::io::{self, BufRead, BufReader, Read};

use crate::error::{TraceError, TraceProblem};

/// Size of the buffer.
const PIECE: usize = 256 << 10;
/// Longest line of text.
pub(crate) const MAX_LINE: usize = 64 << 10;
/// log2 of the largest zstd window accepted; a larger window needs too much memory.
const WINDOW_LOG_MAX: u32 = 27;

/// An input and its position, after decompression.
pub(crate) struct ImportInput<'a> {
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

impl<'a> ImportInput<'a> {
    pub(crate) fn new(input: &'a mut dyn Read) -> Result<ImportInput<'a>, TraceError> {
        let mut input = BufReader::new(input);
        let is_zstd = input.fill_buf()?.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        let input: Box<dyn Read + 'a> = if is_zstd {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
            decoder.window_log_max(WINDOW_LOG_MAX)?;
            Box::new(decoder)
        } else {
            Box::new(input)
        };
        Ok(ImportInput {
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

    /// Offset of the next byte.
    pub(crate) fn bytes(&self) -> u64 {
        self.offset + self.next as u64
    }

    /// Number of lines read.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// The buffered unread bytes, without consuming them: at least `wanted` bytes, unless the input
    /// ends before.
    pub(crate) fn peek(&mut self, wanted: usize) -> Result<&[u8], TraceError> {
        assert!(wanted <= PIECE);
        while self.end - self.next < wanted && !self.is_at_end {
            self.fill()?;
        }
        Ok(&self.piece[self.next..self.end])
    }

    /// Consumes `count` bytes that [`ImportInput::peek`] has returned.
    pub(crate) fn take(&mut self, count: usize) {
        assert!(count <= self.end - self.next);
        self.next += count;
    }

    /// The next line, without `\n` or `\r\n`.
    #[inline]
    pub(crate) fn line(&mut self) -> Result<Option<InputLine<'_>>, TraceError> {
        let mut searched = 0;
        let len = loop {
            let unread = &self.piece[self.next..self.end];
            if let Some(at) = unread[searched..].iter().position(|&byte| byte == b'\n') {
                break searched + at + 1;
            }
            searched = unread.len();
            if searched > MAX_LINE {
                let (value, limit) = (searched as u64, MAX_LINE as u64);
                let problem = TraceProblem::TooLarge { what: "length of a line", value, limit };
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
        Ok(Some(InputLine { text, number: self.lines, byte }))
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
            (true, io::ErrorKind::UnexpectedEof) => TraceProblem::CutShort { what: "zstd frame" },
            (true, io::ErrorKind::Other | io::ErrorKind::InvalidData) => {
                TraceProblem::Compression { message: error.to_string() }
            }
            (_, kind) => TraceProblem::Io { kind, message: error.to_string() },
        };
        TraceError::at_byte(byte, problem)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct InputLine<'a> {
    pub(crate) text: &'a [u8],
    /// Counted from 1.
    pub(crate) number: u64,
    /// Offset of its first byte.
    pub(crate) byte: u64,
}
