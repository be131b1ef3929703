//! A client that sends raw bytes and parses responses, independent of the code under test.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use super::PATIENCE;

/// A client that sends bytes unchanged. It parses responses with its own code.
pub struct Client<S = TcpStream> {
    pub stream: BufReader<S>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    pub trailer: String,
}

impl Answer {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (n, value) = line.split_once(':')?;
            n.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client {
            stream: BufReader::new(stream),
        }
    }

    pub fn shut(&self) {
        self.stream.get_ref().shutdown(Shutdown::Write).unwrap();
    }
}

impl<S: Read + Write> Client<S> {
    pub fn on(stream: S) -> Client<S> {
        Client {
            stream: BufReader::new(stream),
        }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends bytes until the server accepts no more: it may reject the request and close the
    /// connection before all bytes are sent.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.get_mut().write_all(bytes.as_ref());
    }

    pub fn get(&mut self, target: &str) -> Answer {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
        self.answer()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).unwrap();
        if line.is_empty() {
            return None;
        }
        assert!(line.ends_with(b"\r\n"), "line without end: {line:?}");
        line.truncate(line.len() - 2);
        Some(String::from_utf8_lossy(&line).into_owned())
    }

    /// Reads the head of a response. Returns its status and text; `None` at the end of the
    /// connection.
    pub fn head(&mut self) -> Option<(u16, String)> {
        let first = self.line()?;
        let status = first.strip_prefix("HTTP/1.1 ").unwrap()[..3]
            .parse()
            .unwrap();
        let mut head = first + "\n";
        loop {
            let line = self.line().expect("the rest of the head");
            if line.is_empty() {
                return Some((status, head));
            }
            head += &line;
            head.push('\n');
        }
    }

    /// Reads a complete response. The request must not have been HEAD.
    pub fn answer(&mut self) -> Answer {
        let (status, head) = self.head().expect("an answer");
        let mut answer = Answer {
            status,
            head,
            body: Vec::new(),
            trailer: String::new(),
        };
        if let Some(n) = answer.field("Content-Length") {
            answer.body = vec![0; n.parse().unwrap()];
            self.stream.read_exact(&mut answer.body).unwrap();
        } else if answer.field("Transfer-Encoding") == Some("chunked") {
            loop {
                let size = self.line().expect("a chunk size");
                let size = usize::from_str_radix(&size, 16).unwrap();
                if size == 0 {
                    break;
                }
                let at = answer.body.len();
                answer.body.resize(at + size, 0);
                self.stream.read_exact(&mut answer.body[at..]).unwrap();
                assert_eq!(self.line().as_deref(), Some(""));
            }
            loop {
                let line = self.line().expect("the end of the trailer");
                if line.is_empty() {
                    break;
                }
                answer.trailer += &line;
            }
        } else if !matches!(status, 204 | 304) {
            self.stream.read_to_end(&mut answer.body).unwrap();
        }
        answer
    }

    /// Reads a complete response. Returns `None` if the connection is closed or reset before its
    /// first byte.
    pub fn answer_or_end(&mut self) -> Option<Answer> {
        match self.stream.fill_buf() {
            Ok([]) => None,
            Ok(_) => Some(self.answer()),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => None,
            Err(e) => panic!("{e}"),
        }
    }

    /// Reads until the bytes read by this call end with `end`.
    pub fn read_until(&mut self, end: &[u8]) {
        let mut come = Vec::new();
        while !come.ends_with(end) {
            let mut byte = [0];
            let n = self.stream.read(&mut byte).unwrap();
            assert_eq!(
                n,
                1,
                "the end came before {:?}: {:?}",
                end.escape_ascii(),
                come.escape_ascii()
            );
            come.push(byte[0]);
        }
    }

    /// Reads until the connection ends. Returns the bytes, and `true` if the connection was reset.
    pub fn rest(&mut self) -> (Vec<u8>, bool) {
        let mut all = Vec::new();
        match self.stream.read_to_end(&mut all) {
            Ok(_) => (all, false),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => (all, true),
            Err(e) => panic!("{e}"),
        }
    }

    /// Asserts that the server closes the connection without sending another byte.
    pub fn assert_closed(&mut self) {
        assert_eq!(self.rest(), (Vec::new(), false));
    }
}
