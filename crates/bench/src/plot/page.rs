// SPDX-License-Identifier: Apache-2.0
//! Charts, tables and text as one HTML file.

use super::svg::escape;

const STYLE: &str = "\
:root{color-scheme:light dark;--paper:#fff;--ink:#1a1a1a;--soft:#5c5c5c;--rule:#dcdcdc;--good:#1d6b2f;--bad:#a8200d;--card:#f6f6f4}\
@media(prefers-color-scheme:dark){:root{--paper:#161616;--ink:#ececec;--soft:#a5a5a5;--rule:#3a3a3a;--good:#7fd694;--bad:#ff9b85;--card:#202020}}\
body{font:16px/1.55 system-ui,sans-serif;max-width:900px;margin:2rem auto 6rem;padding:0 1rem;background:var(--paper);color:var(--ink)}\
h1{font-size:1.9rem;line-height:1.2;margin:0 0 1rem}\
h2{font-size:1.35rem;line-height:1.25;margin:3.5rem 0 .75rem;padding-top:1rem;border-top:2px solid var(--ink)}\
p{margin:.6rem 0;max-width:46rem}\
nav{background:var(--card);border-radius:6px;padding:.9rem 1.2rem;margin:1.5rem 0}\
nav ul,ul.verdicts{list-style:none;margin:0;padding:0}\
nav li{display:flex;justify-content:space-between;gap:1rem;padding:.15rem 0}\
nav span{white-space:nowrap;font-variant-numeric:tabular-nums}\
a{color:inherit}\
ul.verdicts li{display:grid;grid-template-columns:5.5rem 1fr;gap:.2rem .8rem;padding:.5rem 0;border-bottom:1px solid var(--rule)}\
ul.verdicts b{grid-row:span 2;font-weight:600}\
ul.verdicts small{color:var(--soft);font-size:.9rem}\
.good{color:var(--good)}.bad{color:var(--bad)}\
details{margin:1.2rem 0}\
summary{cursor:pointer;font-weight:600;max-width:46rem}\
table{border-collapse:collapse;font-size:13.5px;line-height:1.35;font-variant-numeric:tabular-nums;margin:.6rem 0;display:block;overflow-x:auto}\
th,td{padding:.22rem .7rem;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}\
th{color:var(--soft);font-weight:600;border-bottom:1px solid var(--ink)}\
th:first-child,td:first-child{text-align:left}\
td.bad{font-weight:600}\
p.note{border-left:3px solid var(--bad);padding-left:.8rem;color:var(--soft)}\
svg{display:block;margin:1.5rem 0;max-width:100%;height:auto}";

/// Rows of a table up to which it is open.
const OPEN: usize = 14;

/// What came of a promise.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
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

    /// A chart: what [`super::Lines::svg`] and [`super::Bars::svg`] give.
    pub(crate) fn chart(self, svg: &str) -> Self {
        self.add(svg)
    }

    /// What was promised, and what came of it; counted in the contents.
    pub(crate) fn verdicts(mut self, all: &[Kept]) -> Self {
        if let Some((_, met, count)) = self.contents.last_mut() {
            *met += all.iter().filter(|kept| kept.met).count();
            *count += all.len();
        }
        let item = |kept: &Kept| {
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
        let cells: String = head.iter().map(|c| format!("<th>{}</th>", escape(c))).collect();
        let open = if rows.len() <= OPEN { " open" } else { "" };
        let mut table = format!(
            "<details{open}><summary>{}</summary>\n<table>\n<tr>{cells}</tr>\n",
            escape(caption)
        );
        for row in rows {
            let cells = row.iter().map(|cell| match cell.strip_prefix('!') {
                Some(bad) => format!(r#"<td class="bad">{}</td>"#, escape(bad)),
                None => format!("<td>{}</td>", escape(cell)),
            });
            table.push_str(&format!("<tr>{}</tr>\n", cells.collect::<String>()));
        }
        self.add(&format!("{table}</table>\n</details>\n"))
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
        let (title, contents) = (escape(&self.title), self.contents());
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{}{contents}{}</body>\n</html>\n",
            self.preface, self.body
        )
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
            .verdicts(&[Kept {
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
