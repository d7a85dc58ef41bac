// SPDX-License-Identifier: Apache-2.0
//! The frame of all pages in HTML that commands of ours write: `isthmus report`, `isthmus top --serve`,
//! `isthmus-bench`.
//!
//! A page is one file without outside references. Its charts are drawn by uPlot (`vendor/uplot`), which stands in it.
//! It has one look in light and dark, and its content security policy lets it load nothing.

#![forbid(unsafe_code)]

/// The charts: a script that defines `uPlot`, without `</script` in it.
const CHARTS: &str = include_str!("../vendor/uplot/uPlot.iife.min.js");
const CHARTS_STYLE: &str = include_str!("../vendor/uplot/uPlot.min.css");
const STYLE: &str = include_str!("page.css");

/// A page in HTML.
#[derive(Clone, Copy, Debug, Default)]
pub struct Page<'a> {
    /// Text, not HTML.
    pub title: &'a str,
    /// Style of this page, after that of all pages.
    pub style: &'a str,
    /// HTML.
    pub body: &'a str,
    /// The script of this page. It may use `uPlot`.
    pub script: &'a str,
    /// JSON for the script, in the element with the identifier `data`.
    pub data: &'a str,
    /// Whether the script may ask the server that the page came from.
    pub live: bool,
}

impl Page<'_> {
    /// The whole document.
    pub fn html(&self) -> String {
        let connect = if self.live { "; connect-src 'self'" } else { "" };
        let (title, data) = (escape(self.title), inside_script(self.data));
        let Self {
            style, body, script, ..
        } = self;
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'unsafe-inline'; img-src data:{connect}\">\n\
             <link rel=\"icon\" href=\"data:,\">\n\
             <title>{title}</title>\n<style>{CHARTS_STYLE}\n{STYLE}\n{style}</style>\n</head>\n<body>\n<main>\n{body}</main>\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n<script>{CHARTS}</script>\n\
             <script>{script}</script>\n</body>\n</html>\n"
        )
    }
}

/// Text in which nothing is taken for HTML, as the content of elements and of attributes in double quotes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// JSON that cannot end the element that it stands in.
pub fn inside_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_its_element() {
        let page = Page {
            title: "a<b & \"c\"",
            data: r#"{"text":"</script><b>"}"#,
            script: "go();",
            ..Page::default()
        };
        let html = page.html();
        assert!(html.contains("<title>a&lt;b &amp; &quot;c&quot;</title>"));
        assert!(html.contains(r#"{"text":"\u003c/script>\u003cb>"}"#));
        assert_eq!(html.matches("</script").count(), 3);
    }

    #[test]
    fn a_page_loads_nothing() {
        let of = |live| {
            Page {
                live,
                ..Page::default()
            }
            .html()
        };
        assert!(of(false).contains("default-src 'none'"));
        assert!(!of(false).contains("connect-src"));
        assert!(of(true).contains("connect-src 'self'"));
        for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
            assert!(!of(true).contains(outside), "{outside}");
        }
    }
}
