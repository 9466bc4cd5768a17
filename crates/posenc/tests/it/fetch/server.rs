//! An HTTP server that answers as a test specifies.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone)]
pub struct Request {
    pub path: String,
    /// First byte of the requested range, if any.
    pub from: Option<usize>,
}

/// Serves until the test process ends.
pub struct Server {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers each request in its own thread.
    pub fn start(answer: impl Fn(&Request, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (seen, answer) = (requests.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, seen, answer) = (stream.unwrap(), seen.clone(), answer.clone());
                std::thread::spawn(move || {
                    let Some(request) = read(&stream) else { return };
                    seen.lock().unwrap().push(request.clone());
                    answer(&request, &mut stream);
                });
            }
        });
        Server { url, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// First bytes of the requested ranges.
    pub fn ranges(&self) -> Vec<Option<usize>> {
        self.requests().into_iter().map(|request| request.from).collect()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let path = head.first()?.split(' ').nth(1)?.to_owned();
    let range = head.iter().find_map(|line| line.strip_prefix("Range: bytes="));
    let from = range.map(|range| range.trim_end_matches('-').parse().unwrap());
    Some(Request { path, from })
}

pub fn status(stream: &mut TcpStream, status: &str, headers: &[&str]) {
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    // The client may have disconnected.
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
}

/// The whole body, whatever range was asked for.
pub fn full(stream: &mut TcpStream, body: &[u8]) {
    ranged(stream, body, None);
}

/// The body from a byte on.
pub fn ranged(stream: &mut TcpStream, body: &[u8], from: Option<usize>) {
    send(stream, body, from, body.len() - from.unwrap_or(0));
}

/// Announces the rest of the body, sends a part of it and returns; the connection then ends.
pub fn cut(stream: &mut TcpStream, body: &[u8], from: usize, sent: usize) {
    send(stream, body, (from > 0).then_some(from), sent);
}

fn send(stream: &mut TcpStream, body: &[u8], from: Option<usize>, sent: usize) {
    let (start, length) = (from.unwrap_or(0), body.len());
    let status = match from {
        Some(_) => {
            format!("206 Partial Content\r\nContent-Range: bytes {start}-{}/{length}", length - 1)
        }
        None => "200 OK".to_owned(),
    };
    let rest = length - start;
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {rest}\r\nConnection: close\r\n\r\n");
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(&body[start..start + sent]);
    let _ = stream.flush();
}
