//! Opens HTML reports in a headless Chromium, if one is installed (`apt-get install chromium`). The
//! browser must draw every chart, print nothing on its console, and fetch nothing. The variable
//! `CHROMIUM` names another binary.

use pagetide_testing::directory::TestDir;
use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Looks at the page in the frame, then reads and zooms its first chart by keyboard.
const FRAME: &str = r#"<!DOCTYPE html>
<iframe src="NAME" width="WIDTH" height="900"></iframe>
<pre id="seen"></pre>
<script>
onload = () => {
  const { contentWindow: view, contentDocument: { documentElement: page } } = document.querySelector('iframe');
  const wide = page.scrollWidth - page.clientWidth;
  const seen = ['drawn', 'charts', 'ms', 'error'].map((key) => page.dataset[key] ?? '-');
  const plot = page.querySelector('.plot');
  const press = (key) => plot.dispatchEvent(new view.KeyboardEvent('keydown', { key, bubbles: true }));
  if (plot) ['ArrowRight', 'ArrowRight', '+'].forEach(press);
  const text = (selector) => page.querySelector(selector).textContent;
  const isRead = () => text('#spoken').includes(': ') && text('.read');
  const works = !plot || (isRead() && !page.querySelector('.zoom button:last-child').disabled);
  document.getElementById('seen').textContent = ['seen', ...seen, works ? 'works' : 'broken', wide].join(' ');
};
</script>
"#;

/// The result of opening a report.
#[derive(Debug)]
pub struct OpenedReport {
    /// Charts that it drew.
    pub drawn: u32,
    /// Milliseconds of the page's scripts.
    pub ms: u32,
}

/// Widths of the frame in pixels: desktop and phone.
pub const WIDTHS: [u32; 2] = [1200, 375];

/// Common names of the binary.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

fn chromium() -> Option<PathBuf> {
    if let Some(path) = env::var_os("CHROMIUM") {
        return Some(path.into());
    }
    let paths = env::var_os("PATH")?;
    let paths = env::split_paths(&paths);
    let all = paths.flat_map(|directory| NAMES.map(|name| directory.join(name)));
    all.into_iter().find(|path| path.is_file())
}

/// Opens the report `name` in a frame of `width` pixels. It must render without errors and
/// messages, and must fit the width. Returns `None`, with a message, if there is no browser.
pub fn open(place: &TestDir, name: &str, width: u32) -> Option<OpenedReport> {
    let Some(chromium) = chromium() else {
        eprintln!("no Chromium is installed: {name} is not opened (apt-get install chromium)");
        return None;
    };
    // A window cannot be as narrow as a phone, but a frame can.
    let frame = format!("frame-{width}-{name}");
    place.write(&frame, FRAME.replace("NAME", name).replace("WIDTH", &width.to_string()));
    let profile = place.path(format!("profile-{width}-{name}"));
    let output = Command::new(chromium)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--v=0",
        ])
        .args(["--allow-file-access-from-files", "--window-size=1300,1000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", place.path(&frame).display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let messages: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(messages.is_empty(), "{name} on the console: {messages:#?}");
    let seen = dom
        .split("<pre id=\"seen\">seen ")
        .nth(1)
        .unwrap_or_else(|| panic!("{name}: {dom}\n{said}"));
    let seen: Vec<&str> = seen.split('<').next().unwrap_or_default().split(' ').collect();
    let [drawn, charts, ms, error, works, wide] = seen.as_slice() else {
        panic!("{name}: {seen:?}")
    };
    assert_eq!(*error, "-", "{name} has an error");
    assert_eq!(*works, "works", "{name}: keys in its first chart");
    assert_eq!(drawn, charts, "{name}: charts that were not drawn");
    assert_eq!(*wide, "0", "{name} is wider than {width} pixels");
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{name}: {seen:?}"));
    Some(OpenedReport { drawn: number(drawn), ms: number(ms) })
}

/// Opens the report at all widths; `charts` charts must be drawn.
pub fn opens(place: &TestDir, name: &str, charts: u32) {
    for width in WIDTHS {
        if let Some(opened) = open(place, name, width) {
            assert_eq!(opened.drawn, charts, "{name} at {width} pixels");
            eprintln!("{name} at {width} pixels: {} charts in {} ms", opened.drawn, opened.ms);
        }
    }
}
