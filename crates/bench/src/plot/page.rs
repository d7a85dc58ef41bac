// SPDX-License-Identifier: Apache-2.0
//! Charts, tables and text as one HTML file.

use super::svg::escape;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:900px;margin:2rem auto;padding:0 1rem;background:#fff;color:#1a1a1a}\
table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums;margin:1rem 0;display:block;overflow-x:auto}\
th,td{padding:.25rem .75rem;text-align:right;border-bottom:1px solid #d0d0d0}\
th:first-child,td:first-child{text-align:left}\
td.bad{font-weight:600;color:#a8200d}\
svg{display:block;margin:1.5rem 0}\
@media(prefers-color-scheme:dark){body{background:#161616;color:#ececec}th,td{border-color:#3a3a3a}td.bad{color:#ff9b85}}";

/// A page under way.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    title: String,
    body: String,
}

impl Page {
    pub(crate) fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            body: format!("<h1>{}</h1>\n", escape(title)),
        }
    }

    pub(crate) fn heading(mut self, text: &str) -> Self {
        self.body.push_str(&format!("<h2>{}</h2>\n", escape(text)));
        self
    }

    /// A paragraph.
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.body.push_str(&format!("<p>{}</p>\n", escape(text)));
        self
    }

    /// A chart: what [`super::Lines::svg`] and [`super::Bars::svg`] give.
    pub(crate) fn chart(mut self, svg: &str) -> Self {
        self.body.push_str(svg);
        self
    }

    /// A table; a cell that begins with `!` is marked, without the `!`.
    pub(crate) fn table(mut self, head: &[&str], rows: &[Vec<String>]) -> Self {
        let cells: String = head.iter().map(|c| format!("<th>{}</th>", escape(c))).collect();
        self.body.push_str(&format!("<table>\n<tr>{cells}</tr>\n"));
        for row in rows {
            let cells = row.iter().map(|cell| match cell.strip_prefix('!') {
                Some(bad) => format!(r#"<td class="bad">{}</td>"#, escape(bad)),
                None => format!("<td>{}</td>", escape(cell)),
            });
            self.body.push_str(&format!("<tr>{}</tr>\n", cells.collect::<String>()));
        }
        self.body.push_str("</table>\n");
        self
    }

    /// The whole file.
    pub(crate) fn html(self) -> String {
        let title = escape(&self.title);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
            self.body
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
            .table(&["op", "ratio"], &rows)
            .html();
        assert!(html.contains("<title>x &amp; y</title>"));
        assert!(html.contains("<td>a&lt;b</td><td class=\"bad\">1.3</td>"));
    }
}
