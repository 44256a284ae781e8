//! Chromium without a window, driven through its `DevTools` protocol: messages of JSON that end
//! with a zero byte, to its descriptor 3 and from its descriptor 4. Keys and the pointer are those
//! of the browser: what they do not reach, users do not reach either.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A browser that does not answer for as long hangs.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    answers: Receiver<Value>,
    /// Messages that answer no question: requests, errors, downloads.
    events: Vec<Value>,
    session: Option<String>,
    asked: u64,
    place: tempfile::TempDir,
}

impl Browser {
    /// With this page open; `None` where there is no Chromium (Debian: chromium).
    pub(crate) fn open(html: &str) -> Option<Self> {
        let found = |name: &&&str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
        };
        let Some(browser) = BROWSERS.iter().find(found) else {
            eprintln!("skipped: none of {BROWSERS:?} is there (Debian: apt install chromium)");
            return None;
        };
        let place = tempfile::tempdir().unwrap();
        let page = place.path().join("report.html");
        std::fs::write(&page, html).unwrap();
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null", browser])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--remote-debugging-pipe", "--window-size=1000,800", "--no-first-run"])
            .args(["--host-resolver-rules=MAP * ~NOTFOUND"])
            .arg(format!("--user-data-dir={}", place.path().join("profile").display()))
            .arg("about:blank")
            .env("HOME", place.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0) {
                let Ok(message) = message else { return };
                if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    return;
                }
            }
        });
        let mut this = Self { child, input, answers, events: Vec::new(), session: None, asked: 0, place };
        this.show(&page);
        Some(this)
    }

    fn show(&mut self, page: &Path) {
        let target = self.ask("Target.createTarget", &json!({"url": "about:blank"}));
        let to = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.ask("Target.attachToTarget", &to);
        self.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            self.ask(&format!("{domain}.enable"), &json!({}));
        }
        self.ask("Page.navigate", &json!({"url": format!("file://{}", page.display())}));
        self.wait_for("Page.loadEventFired");
    }

    /// Asks, and gives the answer.
    pub(crate) fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.asked += 1;
        let mut message = json!({"id": self.asked, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut answer = self.next();
            if answer["id"] == self.asked {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    fn next(&self) -> Value {
        self.answers.recv_timeout(PATIENCE).expect("the browser answers")
    }

    /// Ends once there is such an event.
    pub(crate) fn wait_for(&mut self, method: &str) {
        while !self.events.iter().any(|event| event["method"] == method) {
            let event = self.next();
            self.events.push(event);
        }
    }

    /// What of these events there was.
    pub(crate) fn events(&self, method: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["method"] == method).map(|event| &event["params"]).collect()
    }

    /// The value of an expression of JavaScript on the page, by the debugger: no policy of the page
    /// hinders it.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true});
        let mut answer = self.ask("Runtime.evaluate", &asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    pub(crate) fn text(&mut self, expression: &str) -> String {
        let value = self.value(expression);
        value.as_str().unwrap_or_else(|| panic!("{expression}: {value}")).to_owned()
    }

    pub(crate) fn holds(&mut self, expression: &str) -> bool {
        let value = self.value(expression);
        value.as_bool().unwrap_or_else(|| panic!("{expression}: {value}"))
    }

    /// A place in an element that an expression gives, by shares of its width and height.
    fn place_in(&mut self, element: &str, (across, down): (f64, f64)) -> (f64, f64) {
        let asked = format!(
            "(() => {{ const e = {element}; e.scrollIntoView({{block: 'center'}}); \
             const b = e.getBoundingClientRect(); return [b.x + {across} * b.width, b.y + {down} * b.height]; }})()"
        );
        let place = self.value(&asked);
        (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
    }

    fn pointer(&mut self, kind: &str, (x, y): (f64, f64), buttons: u32) {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let event =
            json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1});
        self.ask("Input.dispatchMouseEvent", &event);
    }

    pub(crate) fn hover(&mut self, element: &str, at: (f64, f64)) {
        let place = self.place_in(element, at);
        self.pointer("mouseMoved", place, 0);
    }

    pub(crate) fn click(&mut self, element: &str) {
        self.drag(element, (0.5, 0.5), (0.5, 0.5));
    }

    /// Presses the button in one place and releases it in another.
    pub(crate) fn drag(&mut self, element: &str, from: (f64, f64), to: (f64, f64)) {
        let (from, to) = (self.place_in(element, from), self.place_in(element, to));
        self.pointer("mouseMoved", from, 0);
        self.pointer("mousePressed", from, 1);
        if from != to {
            self.pointer("mouseMoved", to, 1);
        }
        self.pointer("mouseReleased", to, 0);
    }

    /// Presses a key where the focus is.
    pub(crate) fn key(&mut self, name: &str, code: u32) {
        let text = if name == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({"type": kind, "key": name, "code": name, "text": if kind == "keyDown" { text } else { "" },
                "windowsVirtualKeyCode": code});
            self.ask("Input.dispatchKeyEvent", &event);
        }
    }

    /// The desktop of the user prefers this: `dark` or `light`.
    pub(crate) fn prefers(&mut self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.ask("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// The file that this saves, by its name and content.
    pub(crate) fn saved(&mut self, element: &str) -> (String, Vec<u8>) {
        let folder = self.place.path().join("saved");
        let to = json!({"behavior": "allow", "downloadPath": folder, "eventsEnabled": true});
        self.ask("Browser.setDownloadBehavior", &to);
        self.click(element);
        let is_done = |event: &Value| event["params"]["state"] == "completed";
        while !self.events.iter().any(is_done) {
            let event = self.next();
            self.events.push(event);
        }
        let file = std::fs::read_dir(folder).unwrap().next().expect("a file").unwrap();
        (file.file_name().into_string().unwrap(), std::fs::read(file.path()).unwrap())
    }

    /// What screen readers are told: role, name and properties of each element.
    pub(crate) fn accessible(&mut self) -> Vec<Accessible> {
        let answer = self.ask("Accessibility.getFullAXTree", &json!({}));
        let nodes = answer["nodes"].as_array().unwrap().iter().filter(|node| node["ignored"] != true);
        let text = |value: &Value| value["value"].as_str().unwrap_or_default().to_owned();
        nodes
            .map(|node| Accessible {
                role: text(&node["role"]),
                name: text(&node["name"]),
                properties: node["properties"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(Value::to_string)
                    .collect(),
            })
            .collect()
    }

    /// No error of the script, none on the console, and nothing asked of a network.
    pub(crate) fn check_quiet(&self) {
        for method in ["Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"] {
            assert!(self.events(method).is_empty(), "{:?}", self.events(method));
        }
        for request in self.events("Network.requestWillBeSent") {
            let address = request["request"]["url"].as_str().unwrap();
            assert!(address.starts_with("file:///") || address.starts_with("data:"), "{address:.200}");
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
pub(crate) struct Accessible {
    pub(crate) role: String,
    pub(crate) name: String,
    /// Each as JSON with its name and value.
    pub(crate) properties: Vec<String>,
}
