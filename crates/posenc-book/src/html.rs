//! Splits HTML into tags and text.
//!
//! The input comes from serializers (ammonia's, mdBook's, the LaTeX converter): every attribute value is in
//! double quotes, and a `<` in text is escaped. Other HTML is not supported.

/// A part of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// A tag, with its brackets.
    Tag(Tag<'a>),
    /// Text, with its entities, or a comment.
    Text(&'a str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag<'a> {
    pub raw: &'a str,
    pub name: &'a str,
    /// Whether it closes an element.
    pub closes: bool,
}

/// Splits a page into tags and text. The concatenation of all tokens is the page.
pub fn tokens(page: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = page;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (length, token) = next(rest);
        rest = &rest[length..];
        Some(token)
    })
}

/// The tags of a page.
pub fn tags(page: &str) -> impl Iterator<Item = Tag<'_>> {
    tokens(page).filter_map(|token| match token {
        Token::Tag(tag) => Some(tag),
        Token::Text(_) => None,
    })
}

fn next(text: &str) -> (usize, Token<'_>) {
    if text.starts_with("<!--") {
        let length = text.find("-->").map_or(text.len(), |end| end + 3);
        return (length, Token::Text(&text[..length]));
    }
    match (text.find('<'), tag_end(text)) {
        (Some(0), Some(end)) => {
            let raw = &text[..=end];
            let inner = raw.trim_start_matches('<').trim_end_matches('>');
            let closes = inner.starts_with('/');
            let name = inner.trim_start_matches('/');
            let name = name.split([' ', '/', '\n']).next().unwrap_or(name);
            (raw.len(), Token::Tag(Tag { raw, name, closes }))
        }
        (Some(0), None) | (None, _) => (text.len(), Token::Text(text)),
        (Some(start), _) => (start, Token::Text(&text[..start])),
    }
}

/// Index of the bracket that ends the tag at the start of a text. Brackets in attribute values do not count.
fn tag_end(text: &str) -> Option<usize> {
    let mut quoted = false;
    text.starts_with('<').then(|| {
        text.bytes().position(|byte| {
            quoted ^= byte == b'"';
            byte == b'>' && !quoted
        })
    })?
}

impl<'a> Tag<'a> {
    /// Names and values of the attributes, without decoding entities.
    pub fn attributes(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let inner = self.raw.trim_start_matches('<').trim_end_matches(['>', '/']);
        let mut rest = inner.split_once([' ', '\n']).map_or("", |(_, rest)| rest);
        std::iter::from_fn(move || {
            rest = rest.trim_start();
            let end = rest.find(['=', ' ', '\n']).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            let value = behind.strip_prefix("=\"").and_then(|behind| behind.split_once('"'));
            let (value, behind) = value.unwrap_or(("", behind.trim_start_matches('=')));
            rest = behind;
            (!name.is_empty()).then_some((name, value))
        })
    }

    /// The value of an attribute, with decoded entities.
    pub fn attribute(&self, name: &str) -> Option<String> {
        self.attributes().find(|(known, _)| *known == name).map(|(_, value)| unescaped(value))
    }
}

/// Text escaped for a page or an attribute value.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// Decodes the entities that serializers write.
fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&#39;", "'").replace("&#x27;", "'").replace("&amp;", "&")
}

/// Splits a page into the part up to the first `from`, the part between, and the part from the last `to` on. Both marks
/// belong to the outer parts.
pub fn between<'a>(page: &'a str, from: &str, to: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let start = page.find(from)? + from.len();
    let end = start + page[start..].rfind(to)?;
    Some((&page[..start], &page[start..end], &page[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches tokens that are not the whole page, and attributes that are confused.
    #[test]
    fn tokens_concatenate_to_the_page() {
        let page = "a <!-- <b> --> <a href=\"x?a=1&amp;b\" data-href=\"no\">é</a><br><img alt=\"a = > b\" src=\"c.svg\">";
        let joined: String = tokens(page)
            .map(|token| match token {
                Token::Tag(tag) => tag.raw,
                Token::Text(text) => text,
            })
            .collect();
        assert_eq!(joined, page);
        let tags: Vec<_> = tags(page).collect();
        let names: Vec<_> = tags.iter().map(|t| (t.name, t.closes)).collect();
        assert_eq!(names, [("a", false), ("a", true), ("br", false), ("img", false)]);
        assert_eq!(tags[0].attribute("href").as_deref(), Some("x?a=1&b"));
        assert_eq!(tags[3].attribute("src").as_deref(), Some("c.svg"));
        assert_eq!(tags[3].attribute("b"), None);
        assert_eq!(tags[2].attribute("href"), None);
    }

    /// Catches content that ends at the first end mark instead of the last.
    #[test]
    fn the_content_is_found() {
        assert_eq!(between("x<m>a</m>b</m>y", "<m>", "</m>"), Some(("x<m>", "a</m>b", "</m>y")));
        assert_eq!(between("x", "<m>", "</m>"), None);
    }
}
