//! Headless Chromium, controlled over its DevTools protocol.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use posenc_files::testing::{Need, skip};
use serde_json::{Value, json};
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

/// Timeout that makes a test fail if the browser hangs, longer than any answer takes on a busy machine. Nothing else
/// depends on it, since tests wait for states.
const PATIENCE: Duration = Duration::from_secs(180);

/// A browser with one tab.
pub struct Browser {
    process: Child,
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    asked: u64,
    /// Events of the tab that were not processed yet.
    events: VecDeque<Value>,
    _profile: tempfile::TempDir,
}

/// Path of Chromium or Chrome.
fn program() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).chain(["/usr/bin".into()]).collect();
    let places = names.iter().flat_map(|name| folders.iter().map(move |f| f.join(name)));
    places.into_iter().find(|place| place.is_file())
}

impl Browser {
    /// Whether a browser is installed. Only this function marks these tests as skipped.
    pub fn is_available() -> bool {
        let found = program().is_some();
        if !found {
            skip(Need::Chromium, "neither chromium nor google-chrome is on the PATH");
        }
        found
    }

    /// Starts the browser; `None` if none is installed.
    pub fn start() -> Option<Browser> {
        let program = Browser::is_available().then(program)??;
        let profile = tempfile::tempdir().expect("a directory for the profile");
        let mut process = Command::new(&program)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("Chromium starts");
        let mut lines = BufReader::new(process.stderr.take().expect("its messages")).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("DevTools listening on ws://").map(str::to_owned));
        let address = address.expect("Chromium tells its address");
        // Drain the pipe so that it does not fill up. The text is only used if the browser exits.
        let rest = std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>());
        let socket = connected(&address).unwrap_or_else(|error| {
            let _ = process.kill();
            let (status, said) = (process.wait(), rest.join());
            panic!(
                "no connection to Chromium: {error}; it ended with {status:?} and said {said:#?}"
            )
        });
        let mut browser = Browser {
            process,
            socket,
            session: None,
            asked: 0,
            events: VecDeque::new(),
            _profile: profile,
        };
        let tab = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": tab["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = Some(session["sessionId"].as_str().expect("a session").to_owned());
        for domain in ["Page", "Runtime", "Log", "Network", "DOM"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Calls a method of the protocol and waits for the answer.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        let answer = self.try_call(method, &parameters);
        answer.unwrap_or_else(|error| panic!("{method} {parameters}: {error}"))
    }

    /// Like [`Browser::call`], but returns an error of the browser, for example that the page was left meanwhile.
    fn try_call(&mut self, method: &str, parameters: &Value) -> Result<Value, Value> {
        self.asked += 1;
        let id = self.asked;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).expect("Chromium listens");
        loop {
            let answer = self.receive();
            if answer["id"] == id {
                return match answer.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(answer["result"].clone()),
                };
            }
            self.events.push_back(answer);
        }
    }

    fn receive(&mut self) -> Value {
        loop {
            let message = self.socket.read().expect("Chromium answers");
            if let Message::Text(text) = message {
                return serde_json::from_str(&text).expect("JSON");
            }
        }
    }

    /// Sets the width and height of the window in pixels, and the preferred color scheme.
    pub fn look(&mut self, (width, height): (u32, u32), scheme: &str) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
        });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        self.call("Emulation.setEmulatedMedia", json!({ "media": "", "features": features }));
    }

    /// Opens a page and waits until it is loaded.
    pub fn open(&mut self, page: &Path) {
        let url = format!("file://{}", page.display());
        let opened = self.call("Page.navigate", json!({ "url": url }));
        assert!(opened.get("errorText").is_none(), "{url}: {opened}");
        let loader = opened["loaderId"].clone();
        assert!(loader.is_string(), "{url} is the page that is open already");
        self.wait_for_load();
    }

    /// Waits until the requested page is loaded.
    fn wait_for_load(&mut self) {
        let is_load = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events.iter().any(is_load) {
            let event = self.receive();
            self.events.push_back(event);
        }
        self.events.retain(|event| !is_load(event));
    }

    /// Clicks a link that opens a page, and waits until it is loaded.
    pub fn follow(&mut self, selector: &str) {
        self.click(selector);
        self.wait_for_load();
    }

    /// The value of a script's last expression, awaited.
    pub fn eval(&mut self, script: &str) -> Value {
        let parameters =
            json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", parameters);
        assert!(answer.get("exceptionDetails").is_none(), "{script}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until a script's last expression is true. The effect of a click or key may come after its answer.
    pub fn wait_for(&mut self, script: &str) {
        let started = Instant::now();
        let parameters =
            json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        loop {
            // While a page is left, scripts have no page to run in.
            let answer = self.try_call("Runtime.evaluate", &parameters);
            match answer {
                Ok(answer) if answer["result"]["value"] == true => return,
                answer => assert!(
                    started.elapsed() < PATIENCE,
                    "not within {PATIENCE:?}: {script}: {answer:?}"
                ),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until nothing moves or fades any more.
    pub fn wait_until_still(&mut self) {
        self.wait_for("document.getAnimations().every(a => a.playState === 'finished' || a.playState === 'idle')");
    }

    /// Clicks the middle of the first element that a selector matches, once it is still and nothing covers it.
    pub fn click(&mut self, selector: &str) {
        let find = format!("const e = document.querySelector({});", json!(selector));
        let place = "const b = e.getBoundingClientRect(); const [x, y] = [b.x + b.width / 2, b.y + b.height / 2];";
        self.wait_for(&format!(
            "new Promise(done => {{ {find} if (!e) {{ done(false); return; }} e.scrollIntoView({{ block: 'center' }}); \
             const before = JSON.stringify(e.getBoundingClientRect()); \
             requestAnimationFrame(() => requestAnimationFrame(() => {{ {place} \
             const hit = document.elementFromPoint(x, y); \
             done(JSON.stringify(b) === before && (e.contains(hit) || hit !== null && hit.contains(e))); }})); }})"
        ));
        let place = self.eval(&format!("(() => {{ {find} {place} return [x, y]; }})()"));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({
                "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1,
            });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses and releases a key.
    pub fn press(&mut self, key: &str) {
        let (code, number, text) = match key {
            "Enter" => ("Enter", 13, "\r"),
            "Escape" => ("Escape", 27, ""),
            "ArrowRight" => ("ArrowRight", 39, ""),
            "+" => ("Equal", 187, "+"),
            other => panic!("no code for {other}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({
                "type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number,
            });
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Problems since the last call: exceptions, errors and warnings, failed loads, and loads from the network.
    pub fn complaints(&mut self) -> Vec<String> {
        let events: Vec<_> = self.events.drain(..).collect();
        events.iter().filter_map(complaint).collect()
    }
}

fn complaint(event: &Value) -> Option<String> {
    let parameters = &event["params"];
    let is_bad = |level: &Value| level == "error" || level == "warning" || level == "assert";
    match event["method"].as_str()? {
        "Runtime.exceptionThrown" => Some(format!("exception {}", parameters["exceptionDetails"])),
        "Runtime.consoleAPICalled" if is_bad(&parameters["type"]) => {
            Some(format!("console {}", parameters["args"]))
        }
        "Log.entryAdded" if is_bad(&parameters["entry"]["level"]) => {
            Some(format!("log {}", parameters["entry"]))
        }
        // Pictures that are still to be loaded when a page is left are not failures.
        "Network.loadingFailed" if parameters["canceled"] != true => {
            Some(format!("failed load {parameters}"))
        }
        "Network.requestWillBeSent" => {
            let url = parameters["request"]["url"].as_str().unwrap_or_default();
            let is_ours = url.starts_with("file:") || url.starts_with("data:");
            (!is_ours).then(|| format!("load from elsewhere: {url}"))
        }
        _ => None,
    }
}

/// Connects a socket. The handshake is short enough to need no library.
fn connected(address: &str) -> std::io::Result<WebSocket<TcpStream>> {
    let (host, path) = address.split_once('/').expect("host and path");
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = format!(
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        answer.push(byte[0]);
    }
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    Ok(WebSocket::from_raw_socket(stream, Role::Client, None))
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
