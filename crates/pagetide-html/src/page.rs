//! One HTML file: title, lead, sections, and the scripts and styles that draw them.
//!
//! Invariant: `maud` escapes all text, and data is JSON in which no character can end a script.
//! Only our style, our scripts, uPlot and that JSON are not escaped, in this file and in `data.rs`.

use crate::data;
use crate::lines::ChartFigure;
use maud::{html, Markup, PreEscaped, DOCTYPE};

/// Our style, and our scripts in load order.
const STYLE: &str = include_str!("../assets/report.css");
const SCRIPTS: [&str; 4] = [
    include_str!("../assets/numbers.js"),
    include_str!("../assets/charts.js"),
    include_str!("../assets/report.js"),
    include_str!("../assets/choose.js"),
];
/// The charting library, with its licence.
const UPLOT: &str = include_str!("../assets/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../assets/uPlot.min.css");
const UPLOT_LICENCE: &str = include_str!("../assets/uPlot.LICENSE");

/// Runs first, so that errors of other scripts are visible to readers and tests.
const WATCH: &str = "addEventListener('error',e=>{document.documentElement.dataset.error=e.message});\
addEventListener('unhandledrejection',e=>{document.documentElement.dataset.error=String(e.reason)});\
document.documentElement.classList.add('script');";

/// Forbids all network access.
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

#[derive(Debug)]
pub struct HtmlPage {
    /// One line.
    pub title: String,
    /// The command that made it: `pagetide run`.
    pub kind: &'static str,
    /// Text under the title.
    pub lead: Markup,
    pub sections: Vec<PageSection>,
    /// End of the page: version, command.
    pub foot: Markup,
}

/// A part of a page.
#[derive(Debug)]
pub struct PageSection {
    /// Its anchor: letters, digits and `-`.
    pub id: &'static str,
    pub heading: String,
    pub blocks: Vec<PageBlock>,
}

/// A piece of a section.
#[derive(Debug)]
pub enum PageBlock {
    /// Escaped markup.
    Markup(Markup),
    /// Charts that the script draws.
    Lines(Box<ChartFigure>),
}

impl From<Markup> for PageBlock {
    fn from(markup: Markup) -> PageBlock {
        PageBlock::Markup(markup)
    }
}

impl From<ChartFigure> for PageBlock {
    fn from(lines: ChartFigure) -> PageBlock {
        PageBlock::Lines(Box::new(lines))
    }
}

impl PageSection {
    pub fn new(
        id: &'static str,
        heading: impl Into<String>,
        blocks: Vec<PageBlock>,
    ) -> PageSection {
        PageSection { id, heading: heading.into(), blocks }
    }
}

impl HtmlPage {
    /// Renders the file, without sections that have no blocks.
    pub fn render(&self) -> String {
        let sections: Vec<&PageSection> =
            self.sections.iter().filter(|it| !it.blocks.is_empty()).collect();
        let blocks = sections.iter().flat_map(|section| &section.blocks);
        let charts: Vec<&ChartFigure> = blocks
            .filter_map(|block| match block {
                PageBlock::Lines(lines) => Some(lines.as_ref()),
                PageBlock::Markup(_) => None,
            })
            .collect();
        let markup = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="generator" content={ "pagetide " (pagetide_lab::VERSION) };
                    title { (self.title) " - " (self.kind) }
                    // Otherwise a browser requests an icon.
                    link rel="icon" href="data:,";
                    script { (PreEscaped(WATCH)) }
                    @if !charts.is_empty() {
                        style { (PreEscaped(UPLOT_STYLE)) }
                    }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    a.skip href="#content" { "To the content" }
                    header {
                        p.kind { (self.kind) }
                        button.theme type="button" hidden { "Dark or light" }
                        h1 { (self.title) }
                        (self.lead)
                        nav aria-label="Sections" {
                            @for section in &sections {
                                a href={ "#" (section.id) } { (section.heading) }
                            }
                        }
                    }
                    main id="content" {
                        @for section in &sections {
                            section id=(section.id) aria-labelledby={ "h-" (section.id) } {
                                h2 id={ "h-" (section.id) } { (section.heading) }
                                @for block in &section.blocks {
                                    @match block {
                                        PageBlock::Markup(markup) => (markup),
                                        PageBlock::Lines(lines) => (lines.place()),
                                    }
                                }
                            }
                        }
                    }
                    footer { (self.foot) }
                    p.sr #spoken aria-live="polite" {}
                    @if !charts.is_empty() {
                        script type="application/json" id="data" { (PreEscaped(data::json(&charts))) }
                        (PreEscaped(format!("<!--\nuPlot 1.6.32\n{UPLOT_LICENCE}\n-->")))
                        script { (PreEscaped(UPLOT)) }
                    }
                    @for script in SCRIPTS { script { (PreEscaped(script)) } }
                }
            }
        };
        let mut file = markup.into_string();
        file.push('\n');
        file
    }
}

/// An anchor: `prefix`, then the name with its special characters as numbers. Different names have
/// different anchors.
pub fn anchor(prefix: &str, name: &str) -> String {
    let mut anchor = format!("{prefix}-");
    for c in name.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' => anchor.push(c),
            other => anchor += &format!("_{:x}_", u32::from(other)),
        }
    }
    anchor
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};
    use std::collections::BTreeSet;

    fn page(name: &str) -> HtmlPage {
        let section = PageSection::new("s", name, vec![html! { p { (name) } }.into()]);
        HtmlPage {
            title: name.to_owned(),
            kind: "pagetide test",
            lead: html! { p { (name) } },
            sections: vec![section, PageSection::new("nothing", "nothing here", vec![])],
            foot: html! {},
        }
    }

    #[test]
    fn names_cannot_become_markup() {
        let text = page("</script><script>alert(1)</script> \"'&\u{2028}").render();
        assert!(!text.contains("alert(1)<"), "{text}");
        assert!(!text.contains("<script>alert"), "{text}");
        assert!(text.contains("&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;"), "{text}");
        assert!(!text.contains("nothing here"), "empty sections are left out");
    }

    #[test]
    fn nothing_of_ours_ends_its_element_early() {
        for script in SCRIPTS.into_iter().chain([UPLOT, WATCH]) {
            assert!(!script.to_lowercase().contains("</script"));
            assert!(!script.contains("<!--"));
        }
        assert!(![STYLE, UPLOT_STYLE].iter().any(|style| style.to_lowercase().contains("</style")));
        assert!(!UPLOT_LICENCE.contains("--"));
    }

    /// The files of `npm pack uplot@1.6.32`: package/dist and package/LICENSE.
    #[test]
    fn the_charting_library_is_as_published() {
        let sha256 = |text: &str| -> String {
            Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
        };
        for (text, digest) in [
            (UPLOT, "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"),
            (UPLOT_STYLE, "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"),
            (UPLOT_LICENCE, "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd"),
        ] {
            assert_eq!(sha256(text), digest);
        }
    }

    #[test]
    fn a_page_without_charts_has_no_charting_library() {
        assert!(page("plain").render().len() < 64 << 10);
    }

    #[test]
    fn anchors_are_plain_and_differ() {
        let names = ["a b", "a_b", "a_20_b", "a/b", "a.b", "\u{e4}", "", "\u{1F600}", "<a"];
        let anchors: BTreeSet<String> = names.iter().map(|name| anchor("row", name)).collect();
        assert_eq!(anchors.len(), names.len());
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        assert!(anchors.iter().all(|anchor| anchor.chars().all(plain)), "{anchors:?}");
        assert_eq!(anchor("row", "stream.walltime"), "row-stream.walltime");
    }
}
