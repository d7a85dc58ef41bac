// SPDX-License-Identifier: Apache-2.0
//! Charts, tables and text as one HTML file.

use isthmus_page::escape;

/// Style of these pages, after that of all pages.
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("charts.js");

/// Rows of a table up to which it is open.
const OPEN: usize = 14;

/// What came of a promise.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    pub(crate) promise: String,
    pub(crate) measured: String,
    pub(crate) met: bool,
}

/// A page under way.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    title: String,
    /// Before the first heading.
    preface: String,
    body: String,
    /// Headings with how many promises are met, and how many there are.
    contents: Vec<(String, usize, usize)>,
}

impl Page {
    pub(crate) fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            preface: String::new(),
            body: String::new(),
            contents: Vec::new(),
        }
    }

    fn add(mut self, html: &str) -> Self {
        match self.contents.is_empty() {
            true => self.preface.push_str(html),
            false => self.body.push_str(html),
        }
        self
    }

    pub(crate) fn heading(mut self, text: &str) -> Self {
        self.contents.push((text.to_owned(), 0, 0));
        let number = self.contents.len();
        self.add(&format!("<h2 id=\"s{number}\">{}</h2>\n", escape(text)))
    }

    /// A paragraph.
    pub(crate) fn text(self, text: &str) -> Self {
        self.add(&format!("<p>{}</p>\n", escape(text)))
    }

    /// What a reader must know who wants to believe the numbers.
    pub(crate) fn note(self, text: &str) -> Self {
        self.add(&format!("<p class=\"note\">{}</p>\n", escape(text)))
    }

    /// A chart: what [`super::Lines::html`] and [`super::Bars::html`] give.
    pub(crate) fn chart(self, html: &str) -> Self {
        self.add(html)
    }

    /// What was promised, and what came of it; counted in the contents.
    pub(crate) fn verdicts(mut self, all: &[Promise]) -> Self {
        if let Some((_, met, count)) = self.contents.last_mut() {
            *met += all.iter().filter(|kept| kept.met).count();
            *count += all.len();
        }
        let item = |kept: &Promise| {
            let (class, word) = if kept.met { ("good", "met") } else { ("bad", "not met") };
            format!(
                "<li><b class=\"{class}\">{word}</b><span>{}</span><small>{}</small></li>\n",
                escape(&kept.promise),
                escape(&kept.measured)
            )
        };
        let items: String = all.iter().map(item).collect();
        match all.is_empty() {
            true => self,
            false => self.add(&format!("<ul class=\"verdicts\">\n{items}</ul>\n")),
        }
    }

    /// A table below its caption, folded if it is long; a cell that begins with `!` is marked, without the `!`.
    pub(crate) fn table(self, caption: &str, head: &[&str], rows: &[Vec<String>]) -> Self {
        let cells: String = head
            .iter()
            .map(|c| format!("<th scope=\"col\">{}</th>", escape(c)))
            .collect();
        let open = if rows.len() <= OPEN { " open" } else { "" };
        let mut table = format!(
            "<details{open}><summary>{}</summary>\n<div class=\"scroll\" tabindex=\"0\"><table>\n<tr>{cells}</tr>\n",
            escape(caption)
        );
        for row in rows {
            let cells = row.iter().map(|cell| match cell.strip_prefix('!') {
                Some(bad) => format!(r#"<td class="bad">{}</td>"#, escape(bad)),
                None => format!("<td>{}</td>", escape(cell)),
            });
            table.push_str(&format!("<tr>{}</tr>\n", cells.collect::<String>()));
        }
        self.add(&format!("{table}</table></div>\n</details>\n"))
    }

    /// The headings with links to them.
    fn contents(&self) -> String {
        let item = |(number, (text, met, count)): (usize, &(String, usize, usize))| {
            let class = if met == count { "good" } else { "bad" };
            let verdicts = match count {
                0 => String::new(),
                _ => format!("<span class=\"{class}\">{met} of {count} met</span>"),
            };
            format!("<li><a href=\"#s{number}\">{}</a>{verdicts}</li>\n", escape(text))
        };
        let items: String = (1..).zip(&self.contents).map(item).collect();
        match self.contents.len() {
            0 | 1 => String::new(),
            _ => format!("<nav><ul>\n{items}</ul></nav>\n"),
        }
    }

    /// The whole file.
    pub(crate) fn html(self) -> String {
        let body = format!(
            "<h1>{}</h1>\n{}{}{}",
            escape(&self.title),
            self.preface,
            self.contents(),
            self.body
        );
        let page = isthmus_page::Page {
            title: &self.title,
            style: STYLE,
            body: &body,
            script: SCRIPT,
            data: "{}",
            live: false,
        };
        page.html()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_escapes_what_it_is_given() {
        let rows = [vec!["a<b".to_owned(), "!1.3".to_owned()]];
        let html = Page::new("x & y")
            .heading("h")
            .text("t")
            .table("c", &["op", "ratio"], &rows)
            .heading("i")
            .verdicts(&[Promise {
                promise: "p".to_owned(),
                measured: "m".to_owned(),
                met: false,
            }])
            .html();
        assert!(html.contains("<title>x &amp; y</title>"));
        assert!(html.contains("<a href=\"#s2\">i</a><span class=\"bad\">0 of 1 met</span>"));
        assert!(html.contains("<td>a&lt;b</td><td class=\"bad\">1.3</td>"));
    }
}
