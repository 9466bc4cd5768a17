//! Converts Markdown to safe HTML.
//!
//! Pages contain untrusted text from experiments, records and documents. Three steps make it safe:
//!
//! 1. Raw HTML passes tag by tag: a tag that is not in [`INLINE`] or [`BLOCK`] becomes text. Tags are properly nested,
//!    at most [`DEEPEST`] deep, so that an HTML parser has nothing to repair. Repairs can take quadratic time and memory.
//! 2. ammonia parses the result as a browser does and keeps the tags, attributes and schemes of links that are listed
//!    in [`cleaner`].
//! 3. Formulas, marks of verdicts and links to pictures are trusted and inserted afterwards ([`crate::rewrite`]).

use std::collections::{HashMap, HashSet};

use ammonia::Builder;
use anyhow::{Result, bail};
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// Longest page in bytes of Markdown; the longest of the report has 280,000.
const LONGEST: usize = 8 << 20;
/// Maximum nesting depth of elements; the report has seven.
const DEEPEST: usize = 100;
/// Elements within a line that may be written as HTML.
const INLINE: [&str; 12] =
    ["a", "b", "br", "code", "em", "i", "img", "kbd", "s", "strong", "sub", "sup"];
/// Elements that may be written as HTML between paragraphs. Within a paragraph they would end it, and a parser would
/// reopen the surrounding formatting once for each of them.
const BLOCK: [&str; 3] = ["details", "hr", "summary"];
/// Maximum number of elements of raw HTML that are open at a time.
const DEEPEST_RAW: usize = 8;
/// Elements without an end tag.
const VOID: [&str; 3] = ["br", "hr", "img"];

/// The HTML of a page's Markdown.
pub fn html(markdown: &str) -> Result<String> {
    if markdown.len() > LONGEST {
        bail!("{} bytes of Markdown exceed the limit of {LONGEST} bytes per page", markdown.len());
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut writer = Writer::default();
    Parser::new_ext(markdown, options).for_each(|event| writer.event(event));
    writer.close_raw();
    let mut page = String::with_capacity(2 * markdown.len());
    html::push_html(&mut page, writer.events.into_iter());
    Ok(cleaner().clean(&page).to_string())
}

/// The allowed tags, attributes and URL schemes.
fn cleaner() -> Builder<'static> {
    let tags = INLINE.into_iter().chain(BLOCK).chain([
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "p",
        "blockquote",
        "ul",
        "ol",
        "li",
        "pre",
        "del",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "div",
    ]);
    let attributes = [
        ("a", &["href", "id"][..]),
        ("img", &["src", "alt", "width"]),
        ("details", &["open"]),
        ("ol", &["start"]),
        ("th", &["style"]),
        ("td", &["style"]),
        ("h1", &["id"]),
        ("h2", &["id"]),
        ("h3", &["id"]),
        ("h4", &["id"]),
        ("h5", &["id"]),
        ("h6", &["id"]),
    ];
    let attributes =
        attributes.map(|(tag, names)| (tag, HashSet::from_iter(names.iter().copied())));
    let mut cleaner = Builder::empty();
    cleaner
        .tags(tags.collect())
        .tag_attributes(HashMap::from(attributes))
        .allowed_classes(HashMap::from([
            ("a", HashSet::from(["header"])),
            ("div", HashSet::from(["table-wrapper"])),
        ]))
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .link_rel(None)
        .attribute_filter(|_, name, value| {
            let is_kept = match name {
                // mdBook's scripts look up elements by ids that begin like this.
                "id" => !value.starts_with("mdbook-"),
                // A picture of another host would be loaded from there.
                "src" => !value.contains(':') && !value.trim_start().starts_with(['/', '\\']),
                "style" => {
                    matches!(value, "text-align: left" | "text-align: center" | "text-align: right")
                }
                _ => true,
            };
            is_kept.then(|| value.into())
        });
    cleaner
}

/// An open element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// An element of Markdown.
    Markdown,
    /// An element of Markdown that is dropped, for example since it is nested too deeply; its content is kept.
    Dropped,
    /// An element of raw HTML.
    Raw(&'static str),
}

/// Collects events with complete and well-nested HTML in place of raw HTML.
#[derive(Default)]
struct Writer<'a> {
    events: Vec<Event<'a>>,
    open: Vec<Open>,
    /// Lines of the block of HTML that is being read.
    block: Option<String>,
    /// Number of open pictures. Their descriptions contain no tags.
    pictures: usize,
    /// The heading that is being read: the index of its event, its level and its text.
    heading: Option<(usize, HeadingLevel, String)>,
    /// How often an id was used.
    ids: HashMap<String, usize>,
}

impl<'a> Writer<'a> {
    fn event(&mut self, event: Event<'a>) {
        match event {
            Event::Start(Tag::HtmlBlock) => self.block = Some(String::new()),
            Event::End(TagEnd::HtmlBlock) => {
                let block = self.block.take().unwrap_or_default();
                self.raw(&block, true);
            }
            Event::Html(line) => match &mut self.block {
                Some(block) => block.push_str(&line),
                None => self.raw(&line, true),
            },
            Event::InlineHtml(tag) => self.raw(&tag, false),
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            other => {
                if let (Some((.., title)), Event::Text(text) | Event::Code(text)) =
                    (&mut self.heading, &other)
                {
                    title.push_str(text);
                }
                self.events.push(other);
            }
        }
    }

    fn start(&mut self, tag: Tag<'a>) {
        // A nested link would end the outer one.
        let is_nested = matches!(tag, Tag::Link { .. }) && self.open.contains(&Open::Raw("a"));
        if self.open.len() >= DEEPEST || is_nested {
            self.open.push(Open::Dropped);
            return;
        }
        self.open.push(Open::Markdown);
        match tag {
            Tag::Heading { level, .. } => {
                self.heading = Some((self.events.len(), level, String::new()));
                self.html(String::new());
            }
            Tag::Table(_) => {
                self.html("<div class=\"table-wrapper\">".to_owned());
                self.events.push(Event::Start(tag));
            }
            tag => {
                self.pictures += usize::from(matches!(tag, Tag::Image { .. }));
                self.events.push(Event::Start(tag));
            }
        }
    }

    fn end(&mut self, tag: TagEnd) {
        self.close_raw();
        if self.open.pop() != Some(Open::Markdown) {
            return;
        }
        match tag {
            TagEnd::Heading(_) => {
                let Some((place, level, title)) = self.heading.take() else { return };
                let id = self.id(&title);
                let start = format!("<{level} id=\"{id}\"><a class=\"header\" href=\"#{id}\">");
                if let Some(event) = self.events.get_mut(place) {
                    *event = Event::Html(CowStr::from(start));
                }
                self.html(format!("</a></{level}>\n"));
            }
            TagEnd::Table => {
                self.events.push(Event::End(tag));
                self.html("</div>\n".to_owned());
            }
            tag => {
                self.pictures -= usize::from(tag == TagEnd::Image && self.pictures > 0);
                self.events.push(Event::End(tag));
            }
        }
    }

    fn html(&mut self, html: String) {
        self.events.push(Event::Html(CowStr::from(html)));
    }

    /// Closes the tags that were opened within the current element.
    fn close_raw(&mut self) {
        while let Some(Open::Raw(name)) = self.open.last().copied() {
            self.open.pop();
            self.html(format!("</{name}>"));
        }
    }

    /// Keeps the allowed tags of raw HTML, and escapes the others.
    fn raw(&mut self, text: &str, is_block: bool) {
        if self.pictures > 0 {
            return;
        }
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('<') {
            self.html(before.to_owned());
            if let Some(comment) = behind.strip_prefix("!--") {
                rest = comment.split_once("-->").map_or("", |(_, behind)| behind);
            } else if let Some((tag, behind)) = tag(behind, is_block) {
                self.tag(tag);
                rest = behind;
            } else {
                self.html("&lt;".to_owned());
                rest = behind;
            }
        }
        self.html(rest.to_owned());
    }

    fn tag(&mut self, tag: RawTag<'_>) {
        if !tag.closes {
            let is_void = VOID.contains(&tag.name);
            if is_void || self.may_open(tag.name) {
                self.open.extend((!is_void).then_some(Open::Raw(tag.name)));
                self.html(format!("<{}>", tag.inner));
            }
            return;
        }
        let own = self.open.iter().rev().take_while(|open| matches!(open, Open::Raw(_)));
        let Some(above) = own.into_iter().position(|open| *open == Open::Raw(tag.name)) else {
            return;
        };
        for _ in 0..=above {
            if let Some(Open::Raw(name)) = self.open.pop() {
                self.html(format!("</{name}>"));
            }
        }
    }

    fn may_open(&self, name: &'static str) -> bool {
        let raw = self.open.iter().filter(|open| matches!(open, Open::Raw(_))).count();
        let is_nested = name == "a" && self.open.contains(&Open::Raw("a"));
        raw < DEEPEST_RAW && self.open.len() < DEEPEST && !is_nested
    }

    /// The id of a heading, generated as on GitHub.
    fn id(&mut self, title: &str) -> String {
        let kept = |c: char| match c {
            c if c.is_alphanumeric() || c == '_' || c == '-' => {
                Some(c.to_lowercase().next().unwrap_or(c))
            }
            c if c.is_whitespace() => Some('-'),
            _ => None,
        };
        let id: String = title.trim().chars().filter_map(kept).collect();
        let used = self.ids.entry(id.clone()).or_insert(0);
        *used += 1;
        match *used {
            1 => id,
            more => format!("{id}-{}", more - 1),
        }
    }
}

struct RawTag<'a> {
    name: &'static str,
    closes: bool,
    /// The text between its brackets.
    inner: &'a str,
}

/// Parses the tag that begins after a `<`; also returns the rest of the text. Attributes are read as in CommonMark,
/// which is stricter than browsers, so both find the same end of the tag.
fn tag(text: &str, is_block: bool) -> Option<(RawTag<'_>, &str)> {
    let (closes, named) = match text.strip_prefix('/') {
        Some(named) => (true, named),
        None => (false, text),
    };
    let end = named.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(named.len());
    let written = &named[..end];
    let blocks = BLOCK.into_iter().filter(|_| is_block);
    let name = INLINE.into_iter().chain(blocks).find(|name| name.eq_ignore_ascii_case(written))?;
    let mut rest = &named[end..];
    loop {
        let behind = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let spaced = behind.len() < rest.len();
        rest = behind;
        if let Some(behind) = rest.strip_prefix("/>").or_else(|| rest.strip_prefix('>')) {
            let inner = text[..text.len() - rest.len()].trim_end();
            return Some((RawTag { name, closes, inner }, behind));
        }
        if !spaced || closes {
            return None;
        }
        rest = attribute(rest)?;
    }
}

/// The rest of a text after the attribute at its start; `None` if it does not begin with a valid attribute.
fn attribute(text: &str) -> Option<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.' | '-');
    let rest = text.trim_start_matches(is_name);
    if rest.len() == text.len() {
        return None;
    }
    let Some(value) = rest.strip_prefix('=') else { return Some(rest) };
    for quote in ['"', '\''] {
        if let Some(value) = value.strip_prefix(quote) {
            return value.split_once(quote).map(|(_, behind)| behind);
        }
    }
    let is_value =
        |c: char| !c.is_ascii_whitespace() && !matches!(c, '"' | '\'' | '=' | '<' | '>' | '`');
    let behind = value.trim_start_matches(is_value);
    (behind.len() < value.len()).then_some(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_html() {
        let check = |markdown: &str, expected: &str| {
            assert_eq!(html(markdown).unwrap().trim_end(), expected)
        };
        check(
            "# A & `b` *c*\n",
            "<h1 id=\"a--b-c\"><a class=\"header\" href=\"#a--b-c\">A &amp; <code>b</code> <em>c</em></a></h1>",
        );
        check(
            "# A\n# A\n",
            "<h1 id=\"a\"><a class=\"header\" href=\"#a\">A</a></h1>\n<h1 id=\"a-1\"><a class=\"header\" href=\"#a-1\">A</a></h1>",
        );
        check(
            "| a | b |\n|---|--:|\n| <sub>1</sub><br>x | \\| |\n",
            "<div class=\"table-wrapper\"><table><thead><tr><th>a</th><th style=\"text-align: right\">b</th></tr></thead><tbody>\n\
             <tr><td><sub>1</sub><br>x</td><td style=\"text-align: right\">|</td></tr>\n</tbody></table>\n</div>",
        );
        check(
            "<details>\n<summary>a & b</summary>\n\n- c\n\n</details>\n",
            "<details>\n<summary>a &amp; b</summary>\n<ul>\n<li>c</li>\n</ul>\n</details>",
        );
        check("<a id=\"x\"></a>b", "<p><a id=\"x\"></a>b</p>");
        check("a<!-- b\n--> c", "<p>a c</p>");
        check("![a *b*](c.svg)", "<p><img src=\"c.svg\" alt=\"a b\"></p>");
        for remote in ["https://a.b/c.svg", "//a.b/c.svg", "/\\a.b/c.svg"] {
            check(&format!("![a](<{remote}>)"), "<p><img alt=\"a\"></p>");
        }
    }

    /// Whether no tag, attribute or link of a page can run a script.
    fn is_harmless(page: &str) -> bool {
        let known = |name: &str| cleaner().clone_tags().contains(name);
        crate::html::tags(page).all(|tag| {
            let link = tag.attribute("href").or(tag.attribute("src")).unwrap_or_default();
            let link = link.trim().to_lowercase();
            let attributes =
                ["onload", "onerror", "onclick", "onmouseover", "ontoggle", "srcdoc", "formaction"];
            known(tag.name)
                && attributes.iter().all(|name| tag.attribute(name).is_none())
                && !["javascript", "data:", "vbscript", "file:"]
                    .iter()
                    .any(|scheme| link.contains(scheme))
        })
    }

    /// Catches known ways to run a script.
    #[test]
    fn no_script_passes() {
        for hostile in [
            "<script>alert(1)</script>",
            "<SCRIPT SRC=x></SCRIPT>",
            "<scr<script>ipt>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "<img src=\"x\" OnError=\"alert(1)\" alt='>'>",
            "<img/src=x/onerror=alert(1)>",
            "<a href=\"javascript:alert(1)\">x</a>",
            "<a href=\"JaVaScRiPt&colon;alert(1)\">x</a>",
            "<a href=\"java&#10;script:alert(1)\">x</a>",
            "<a href=\" &#14; javascript:alert(1)\">x</a>",
            "[x](javascript:alert(1))",
            "[x](<java\tscript:alert(1)>)",
            "[x](data:text/html;base64,PHNjcmlwdD4=)",
            "[x][y]\n\n[y]: vbscript:x",
            "<javascript:alert(1)>",
            "[x](file:///etc/passwd)",
            "<svg onload=alert(1)>",
            "<svg><style><img src=x onerror=alert(1)></style></svg>",
            "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
            "<details open ontoggle=alert(1)><summary>x</summary></details>",
            "<iframe srcdoc=\"<script>alert(1)</script>\"></iframe>",
            "<object data=x></object><embed src=x><base href=//x><meta http-equiv=refresh content=0><link rel=stylesheet href=//x>",
            "<form action=//x><button formaction=javascript:x>x</button><input autofocus onfocus=x></form>",
            "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
            "<template><script>x</script></template><plaintext>",
            "<a id=\"mdbook-sidebar\" class=\"zoom plot\" href=\"x\" style=\"position:fixed\" onclick=\"x\">x</a>",
            "<p style=\"background:url(javascript:x)\">x</p>",
            "</main></div></body><script>x</script>",
            "<!--><script>x</script>-->",
            "<![CDATA[<script>x</script>]]>",
            "<?php <script>x</script> ?>",
            "`` ` `` <script>x</script> ``` `",
            "| `a | <script>x</script> ` |\n|---|---|\n| <img src=x onerror=x> | b |",
            "# <script>x</script> {#id onclick=x}",
            "![<script>x</script>](x.svg \"<script>\")",
            "<code class=\"language-rust mdbook-runnable\">x</code>",
            "<i class=\"fa fa-print\"></i>",
            "<b><p></b><script>x</script></p>",
            "```html\n<script>x</script>\n```",
        ] {
            let page = html(hostile).unwrap();
            assert!(is_harmless(&page), "{hostile} became {page}");
            for part in ["class=\"zoom", "position:", "mdbook-", "<script", "onclick=\"", "{{"] {
                assert!(!page.contains(part), "{hostile} became {page}");
            }
        }
    }

    /// Catches raw HTML that closes an element of Markdown, or stays open after it.
    #[test]
    fn raw_html_stays_within_its_element() {
        let check = |markdown: &str, expected: &str| {
            let page = html(markdown).unwrap().replace('\n', "");
            assert_eq!(page, expected, "{markdown}");
        };
        check(
            "> a</blockquote></p><b>b\n\nc",
            "<blockquote><p>a&lt;/blockquote&gt;&lt;/p&gt;<b>b</b></p></blockquote><p>c</p>",
        );
        check("- <details>\n\nb", "<ul><li><details></details></li></ul><p>b</p>");
        check("*a <sub>b* c</sub>", "<p><em>a <sub>b</sub></em> c</p>");
        check("<details>\n\nno end", "<details><p>no end</p></details>");
        check("a <!-- b", "<p>a &lt;!-- b</p>");
        check("</sub>a</b>", "<p>a</p>");
        check("a <details> b", "<p>a &lt;details&gt; b</p>");
        check("<a id=\"x\">[b](c)", "<p><a id=\"x\">b</a></p>");
        check("<sub>a</b></sub>", "<p><sub>a</sub></p>");
    }

    /// Catches recursion, and quadratic time and memory: a page of a megabyte is either shown or refused. Without
    /// limits, a parser would overflow its stack, or take minutes and gigabytes.
    #[test]
    fn hostile_pages_of_a_megabyte_are_shown() {
        let size = 1 << 20;
        let repeated = |part: &str| part.repeat(size / part.len());
        let mut pages: Vec<String> = [
            ">",
            "- ",
            "<b>",
            "<b id=x>",
            "<sub><b>",
            "<details>\n\n",
            "<a ",
            "<a b=\"",
            "<!--",
            "<",
            "&",
            "[",
            "![",
            "](",
            "*",
            "_",
            "**a ",
            "`",
            "``a` ",
            "\\",
            "|",
            "|-\n",
            "# a\n",
            "# \n",
            "<p>",
            "<p>\n\n",
            "<b><p>",
            "[a]: b\n",
            "[a](",
            "<a id=x>",
            "</b>",
            "- a\n",
            "1. ",
            "\t",
            "> - ",
            "~",
            "<script>",
            "[^a]",
            "<br>",
            "*a _b ",
        ]
        .iter()
        .map(|part| repeated(part))
        .collect();
        // Formatting that an HTML parser reopens in every paragraph.
        let formats: String = (0..20_000).map(|i| format!("<b id=x{i}>")).collect();
        pages.push(format!("<p>{formats}\n\n{}", "a\n\n".repeat(200_000)));
        pages.push(format!("a {formats} {}", "<details>b</details>".repeat(20_000)));
        pages.push(format!("a {formats} {}", "<p>b</p>".repeat(20_000)));
        pages.push(format!("{}a", "<a id=x>[".repeat(50_000)));
        pages.push((0..20_000).map(|depth| format!("{}- a\n", " ".repeat(depth % 50))).collect());
        for page in pages {
            let html = html(&page).unwrap();
            assert!(html.len() < 40 * page.len(), "{} bytes from {:?}", html.len(), &page[..20]);
        }
        assert!(html(&"a".repeat(LONGEST + 1)).unwrap_err().to_string().contains("8388609 bytes"));
    }
}
