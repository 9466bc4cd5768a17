//! Markdown to HTML that is safe to show.
//!
//! Texts of experiments, records and documents are not trusted. Raw HTML is a tag of a short list, properly nested, or text, and
//! nothing is nested deeply: an HTML parser has nothing to repair, which can take quadratic time. ammonia then keeps listed
//! elements, attributes and schemes of links, in formulas, too.

use std::collections::{HashMap, HashSet};

use ammonia::Builder;
use anyhow::{Result, anyhow, bail};
use math_core::{LatexToMathML, MathCoreConfig, MathDisplay};
use pulldown_cmark::html::push_html;
use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::chapters::Page;
use super::links::Links;

/// Maximum size of a page in bytes of Markdown.
const MAX_PAGE_BYTES: usize = 2 << 20;
/// Maximum nesting depth of Markdown.
const MAX_DEPTH: usize = 100;
/// Maximum number of tags of raw HTML that are open at a time.
const MAX_RAW_DEPTH: usize = 8;
/// Maximum size of a formula in bytes of LaTeX; a longer one is shown as text.
const MAX_FORMULA_BYTES: usize = 1000;
/// Stack of a conversion in bytes: every byte of a formula may be a level of recursion.
const STACK_BYTES: usize = 32 << 20;

/// Tags of raw HTML within a line, besides `<br>`, `<img …>` and `<a id="…"></a>`.
const INLINE: [&str; 8] = ["b", "code", "em", "kbd", "s", "strong", "sub", "sup"];
/// Tags of raw HTML between paragraphs; within one they would end it.
const BLOCK: [&str; 2] = ["details", "summary"];

const MATHML: &str = "math menclose merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow \
    mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover";
const MATHML_ATTRIBUTES: &str = "accent accentunder columnalign columnlines columnspacing depth display displaystyle fence \
    form height largeop linethickness lspace mathvariant maxsize minsize movablelimits notation rowlines rowspacing rspace \
    scriptlevel separator stretchy style symmetric voffset width";
const STYLES: &str = "border-bottom border-left border-right border-top justify-items margin-left padding-bottom \
    padding-left padding-right padding-top text-align width";

pub struct Converter {
    latex: LatexToMathML,
    sanitizer: Builder<'static>,
}

impl Converter {
    pub fn new() -> Result<Self> {
        let latex = LatexToMathML::new(MathCoreConfig::default())
            .map_err(|_| anyhow!("cannot initialize the LaTeX converter"))?;
        let mut sanitizer = Builder::default();
        sanitizer
            .add_tags(MATHML.split_whitespace())
            .add_generic_attributes(MATHML_ATTRIBUTES.split_whitespace())
            .add_generic_attributes(["id"])
            .filter_style_properties(STYLES.split_whitespace().collect())
            .allowed_classes(HashMap::from([
                ("a", HashSet::from(["header"])),
                ("code", HashSet::from(["language-rust", "language-sh", "language-yaml"])),
                ("div", HashSet::from(["table-wrapper"])),
            ]))
            .set_tag_attribute_value("img", "loading", "lazy")
            .url_schemes(HashSet::from(["http", "https", "mailto"]))
            .link_rel(None);
        Ok(Converter { latex, sanitizer })
    }

    /// The HTML of a page, in a single line.
    pub fn html(&self, page: &Page, links: &mut Links<'_>) -> Result<String> {
        if page.text.len() > MAX_PAGE_BYTES {
            bail!("a page has at most {MAX_PAGE_BYTES} bytes of Markdown, not {}", page.text.len());
        }
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_MATH;
        let mut writer = Writer {
            converter: self,
            document: &page.document,
            links,
            events: Vec::new(),
            open: Vec::new(),
            block: String::new(),
            heading: None,
            ids: HashMap::new(),
        };
        for event in Parser::new_ext(&page.text, options) {
            writer.event(event)?;
        }
        writer.close_raw();
        let mut html = String::new();
        push_html(&mut html, writer.events.into_iter());
        let html = self.sanitizer.clean(&html).to_string();
        Ok(html.replace('\r', "&#13;").replace('\n', "&#10;"))
    }

    /// The MathML of a formula; `None` if it cannot be converted. The converter recurses and may panic.
    fn mathml(&self, latex: &str, display: MathDisplay) -> Option<String> {
        if latex.len() > MAX_FORMULA_BYTES {
            return None;
        }
        let converted = std::thread::scope(|scope| {
            let convert = || self.latex.convert_with_local_state(latex, display).ok();
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, convert).ok()?.join().ok()?
        })?;
        // Links are resolved outside of formulas only.
        Some(converted.mathml).filter(|mathml| !mathml.contains("<a "))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Open {
    Markdown,
    Link,
    /// A picture, whose description has no tags, and whether a link to its file surrounds it.
    Picture {
        is_linked: bool,
    },
    /// A link or picture without a target; its text is kept.
    Dropped,
    Raw(&'static str),
}

/// Collects the events of a page, with checked tags in place of raw HTML.
struct Writer<'a, 'l, 'r> {
    converter: &'a Converter,
    document: &'a str,
    links: &'l mut Links<'r>,
    events: Vec<Event<'a>>,
    open: Vec<Open>,
    /// Lines of the block of HTML that is being read.
    block: String,
    /// The heading that is being read: the index of its event, and its text.
    heading: Option<(usize, String)>,
    /// How often an id was used.
    ids: HashMap<String, usize>,
}

impl<'a> Writer<'a, '_, '_> {
    fn event(&mut self, event: Event<'a>) -> Result<()> {
        let is_description = self.open.iter().any(|open| matches!(open, Open::Picture { .. }));
        match event {
            Event::Start(tag) => self.start(tag)?,
            Event::End(tag) => self.end(tag),
            event if is_description => self.events.push(event),
            Event::Html(line) => self.block.push_str(&line),
            Event::InlineHtml(tag) => self.raw(&tag, false),
            Event::InlineMath(latex) => self.formula(&latex, MathDisplay::Inline),
            Event::DisplayMath(latex) => self.formula(&latex, MathDisplay::Block),
            event => {
                if let (Some((_, title)), Event::Text(text) | Event::Code(text)) =
                    (&mut self.heading, &event)
                {
                    title.push_str(text);
                }
                self.events.push(event);
            }
        }
        Ok(())
    }

    fn start(&mut self, tag: Tag<'a>) -> Result<()> {
        if self.open.len() >= MAX_DEPTH {
            bail!("lists, quotes and formatting can be nested {MAX_DEPTH} deep, not deeper");
        }
        let mut open = Open::Markdown;
        match tag {
            Tag::HtmlBlock => return Ok(()),
            Tag::Heading { .. } => {
                self.heading = Some((self.events.len(), String::new()));
                self.html(String::new());
            }
            Tag::Table(_) => {
                self.html("<div class=\"table-wrapper\">".to_owned());
                self.events.push(Event::Start(tag));
            }
            Tag::Link { link_type, dest_url, title, id } => {
                let target = match link_type {
                    LinkType::Email => Some(dest_url.to_string()),
                    _ => self.links.target(self.document, &dest_url),
                };
                open = Open::Dropped;
                if let Some(target) = target {
                    open = Open::Link;
                    let dest_url = target.into();
                    self.events.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                }
            }
            Tag::Image { link_type, dest_url, title, id } => {
                open = Open::Dropped;
                if let Some((src, may_open)) = self.links.picture(self.document, &dest_url) {
                    open = Open::Picture { is_linked: may_open && self.link_to(&src) };
                    let dest_url = src.into();
                    self.events.push(Event::Start(Tag::Image { link_type, dest_url, title, id }));
                }
            }
            tag => self.events.push(Event::Start(tag)),
        }
        self.open.push(open);
        Ok(())
    }

    fn end(&mut self, tag: TagEnd) {
        if tag == TagEnd::HtmlBlock {
            let block = std::mem::take(&mut self.block);
            return self.raw(&block, true);
        }
        self.close_raw();
        let open = self.open.pop();
        if open == Some(Open::Dropped) {
            return;
        }
        match tag {
            TagEnd::Heading(level) => {
                let Some((place, title)) = self.heading.take() else { return };
                let id = self.id(&title);
                // A link cannot contain another one.
                let is_link = |event: &Event<'_>| matches!(event, Event::Start(Tag::Link { .. }));
                let header = format!("<a class=\"header\" href=\"#{id}\">");
                let (header, end) = match self.events.iter().skip(place).any(is_link) {
                    true => ("", ""),
                    false => (header.as_str(), "</a>"),
                };
                let start = format!("<{level} id=\"{id}\">{header}");
                if let Some(event) = self.events.get_mut(place) {
                    *event = Event::InlineHtml(start.into());
                }
                self.html(format!("{end}</{level}>\n"));
            }
            tag => self.events.push(Event::End(tag)),
        }
        if tag == TagEnd::Table {
            self.html("</div>\n".to_owned());
        }
        if open == Some(Open::Picture { is_linked: true }) {
            self.events.push(Event::End(TagEnd::Link));
        }
    }

    /// Starts a link to the file of a picture, unless it is in a link.
    fn link_to(&mut self, src: &str) -> bool {
        let is_free = !self.open.contains(&Open::Link);
        if is_free {
            let (dest_url, title, id) = (src.to_owned().into(), "".into(), "".into());
            let link = Tag::Link { link_type: LinkType::Inline, dest_url, title, id };
            self.events.push(Event::Start(link));
        }
        is_free
    }

    fn html(&mut self, html: String) {
        self.events.push(Event::InlineHtml(CowStr::from(html)));
    }

    /// Closes the tags that were opened within the current element.
    fn close_raw(&mut self) {
        while let Some(Open::Raw(name)) = self.open.last().copied() {
            self.open.pop();
            self.html(format!("</{name}>"));
        }
    }

    /// Keeps the allowed tags of raw HTML and leaves out comments; other tags become text.
    fn raw(&mut self, text: &str, is_block: bool) {
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('<') {
            self.html(before.to_owned());
            rest = behind;
            if let Some(comment) = behind.strip_prefix("!--") {
                rest = comment.split_once("-->").map_or("", |(_, rest)| rest);
                continue;
            }
            let end = behind.find(['<', '>']).filter(|end| behind[*end..].starts_with('>'));
            match end {
                Some(end) if self.tag(&behind[..end], is_block) => rest = &behind[end + 1..],
                _ => self.html("&lt;".to_owned()),
            }
        }
        self.html(rest.to_owned());
    }

    /// Takes over a tag, given as the text between its brackets; false if it is not allowed here.
    fn tag(&mut self, tag: &str, is_block: bool) -> bool {
        let (name, attributes) = tag.split_once([' ', '\n']).unwrap_or((tag, ""));
        let name = name.to_ascii_lowercase();
        let name = if name == "br/" { "br" } else { name.as_str() };
        let blocks = BLOCK.into_iter().filter(|_| is_block);
        let known =
            INLINE.into_iter().chain(blocks).find(|known| *known == name.trim_start_matches('/'));
        match (name, known) {
            ("/a", _) => {}
            ("a", _) => {
                let Some(id) = attribute(attributes, "id") else { return false };
                self.html(format!("<a id=\"{id}\"></a>"));
            }
            ("br", _) => self.html("<br>".to_owned()),
            ("img", _) => {
                let Some(src) = attribute(attributes, "src") else { return false };
                let Some((src, may_open)) = self.links.picture(self.document, src) else {
                    return true;
                };
                let value = |name| attribute(attributes, name).unwrap_or_default();
                let (width, alt) = (value("width"), value("alt"));
                let is_linked = may_open && self.link_to(&src);
                self.html(format!("<img src=\"{src}\" width=\"{width}\" alt=\"{alt}\">"));
                self.events.extend(is_linked.then_some(Event::End(TagEnd::Link)));
            }
            (_, Some(known)) if name.starts_with('/') => {
                if self.open.last() != Some(&Open::Raw(known)) {
                    return false;
                }
                self.open.pop();
                self.html(format!("</{known}>"));
            }
            (_, Some(known)) => {
                let raw = self.open.iter().filter(|open| matches!(open, Open::Raw(_))).count();
                if raw >= MAX_RAW_DEPTH {
                    return false;
                }
                self.open.push(Open::Raw(known));
                self.html(format!("<{known}>"));
            }
            _ => return false,
        }
        true
    }

    fn formula(&mut self, latex: &str, display: MathDisplay) {
        // GitHub also reads $`…`$.
        let bare = latex.strip_prefix('`').and_then(|latex| latex.strip_suffix('`'));
        let latex = bare.unwrap_or(latex);
        match self.converter.mathml(latex, display) {
            Some(mathml) => self.html(mathml),
            None => {
                let document = self.document;
                self.links
                    .remarks
                    .push(format!("{document}: the formula {latex:?} cannot be converted"));
                self.events.push(Event::Code(latex.to_owned().into()));
            }
        }
    }

    /// The id of a heading, as GitHub generates it.
    fn id(&mut self, title: &str) -> String {
        let kept = |c: char| match c {
            c if c.is_alphanumeric() || "_-".contains(c) => c.to_lowercase().next(),
            c if c.is_whitespace() => Some('-'),
            _ => None,
        };
        let id: String = title.chars().filter_map(kept).collect();
        let used = self.ids.entry(id.clone()).or_insert(0);
        *used += 1;
        if *used == 1 { id } else { format!("{id}-{}", *used - 1) }
    }
}

/// The value of an attribute among `name="value"` pairs.
fn attribute<'t>(attributes: &'t str, name: &str) -> Option<&'t str> {
    let mut parts = attributes.split('"');
    while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
        if key.trim() == format!("{name}=") {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use crate::Report;

    use super::super::links::Repository;
    use super::*;

    fn html(text: &str) -> Result<String> {
        let report = Report::default();
        let repository = Repository::new(Path::new("/nowhere"), &report);
        let (files, remarks) = (BTreeMap::new(), Vec::new());
        let mut links = Links { repository: &repository, pages: BTreeSet::new(), files, remarks };
        let page = Page { document: String::new(), title: String::new(), text: text.to_owned() };
        Converter::new()?.html(&page, &mut links)
    }

    /// Catches formulas that are lost or split, anchors that differ from GitHub's, and raw HTML that closes an element of Markdown or
    /// stays open after it.
    #[test]
    fn markdown_becomes_html() {
        let check = |markdown: &str, expected: &str| {
            let html = html(markdown).expect("a page").replace("&#10;", "");
            assert_eq!(html, expected, "{markdown}");
        };
        check(
            "# A & `b` $x$\n# A\n# A\n",
            "<h1 id=\"a--b-\"><a class=\"header\" href=\"#a--b-\">A &amp; <code>b</code> <math><mi>x</mi></math></a></h1>\
             <h1 id=\"a\"><a class=\"header\" href=\"#a\">A</a></h1><h1 id=\"a-1\"><a class=\"header\" href=\"#a-1\">A</a></h1>",
        );
        check(
            "| a |\n|--:|\n| <sub>1</sub><br>$`\\|x\\|`$ |\n",
            "<div class=\"table-wrapper\"><table><thead><tr><th style=\"text-align:right\">a</th></tr></thead><tbody>\
             <tr><td style=\"text-align:right\"><sub>1</sub><br><math><mo stretchy=\"false\" lspace=\"0\" rspace=\"0\">|</mo>\
             <mi>x</mi><mo stretchy=\"false\" lspace=\"0\" rspace=\"0\">|</mo></math></td></tr></tbody></table></div>",
        );
        check("`$5` $\\nonsense{<}$", "<p><code>$5</code> <code>\\nonsense{&lt;}</code></p>");
        check("<a id=\"x\"></a>b<!-- c\n--> d", "<p><a id=\"x\"></a>b d</p>");
        check("<details>\n<!-- b -->c<!-- d\n-->\n</details>", "<details>c</details>");
        check("a<br/>b<BR>c<br />d", "<p>a<br>b<br>c<br>d</p>");
        check(
            "> a</blockquote></p><b>b\n\nc",
            "<blockquote><p>a&lt;/blockquote&gt;&lt;/p&gt;<b>b</b></p></blockquote><p>c</p>",
        );
        check("- <details>\n\nb", "<ul><li><details></details></li></ul><p>b</p>");
        check("*a <sub>b* c</sub>", "<p><em>a <sub>b</sub></em> c&lt;/sub&gt;</p>");
        check("a <details> b", "<p>a &lt;details&gt; b</p>");
        check("<details>\n\n[no](end)", "<details><p>no</p></details>");
    }

    /// Catches recursion, and quadratic time and memory: a long page is either shown or refused.
    #[test]
    fn long_hostile_pages_are_shown_or_refused() {
        let parts = "> |- |<b>|<sub><b>|<details>\n\n|<a |<!--|<|&|[|![|](|*|**a |`|``a` |\\|# a\n|<p>\n\n|[a](|<a id=\"x\">|</b>|1. \
            |> - |$|<br>|*a _b |<b><a id=\"x\">[";
        let parts = parts.split('|').chain(["|", "|-\n"]);
        let mut pages: Vec<_> = parts.map(|part| part.repeat((1 << 18) / part.len())).collect();
        for (part, end) in
            [("{", "}"), ("\\sqrt{", "}"), ("\\left(", "\\right)"), ("x^{", "}"), ("'", "")]
        {
            pages.extend([40, 400].map(|n| format!("${}x{}$", part.repeat(n), end.repeat(n))));
        }
        for page in pages {
            match html(&page) {
                Ok(html) => assert!(html.len() < 1000 + 100 * page.len(), "{}", &page[..20]),
                Err(error) => assert!(error.to_string().contains("nested 100 deep"), "{error}"),
            }
        }
        let error = html(&"a".repeat(MAX_PAGE_BYTES + 1)).expect_err("too long").to_string();
        assert!(error.contains("at most 2097152 bytes"), "{error}");
    }
}
