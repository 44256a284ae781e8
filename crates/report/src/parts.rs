//! What a page is made of: sections, sentences, tables, and figures with a table under each.

use crate::text::escape;

/// Rows and cells of a table that are shown; the record has all.
const MOST_ROWS: usize = 400;
const MOST_CELLS: usize = 8000;

/// A cell, as HTML that is escaped already, and what it is sorted by where its text does not say.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    html: String,
    sort: Option<f64>,
    number: bool,
}

impl Cell {
    pub(crate) fn text(text: &str) -> Self {
        Self { html: escape(text), sort: None, number: false }
    }

    /// HTML that is escaped already.
    pub(crate) fn html(html: String) -> Self {
        Self { html, sort: None, number: false }
    }

    /// A number that its text begins with.
    pub(crate) fn plain(text: String) -> Self {
        Self { html: text, sort: None, number: true }
    }

    /// A number and how it is written.
    pub(crate) fn sorted(text: String, by: f64) -> Self {
        Self { html: text, sort: Some(by), number: true }
    }

    pub(crate) fn count(count: u64) -> Self {
        Self::plain(count.to_string())
    }

    pub(crate) fn quantity(q: &units::Quantity) -> Self {
        let html = crate::text::quantity(q);
        q.value().map_or_else(|| Self::html(html.clone()), |v| Self::sorted(html.clone(), v))
    }

    pub(crate) fn share(q: &units::Quantity) -> Self {
        let html = crate::text::share(q);
        q.value().map_or_else(|| Self::html(html.clone()), |v| Self::sorted(html.clone(), v))
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    title: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
    pub(crate) note: String,
}

impl Table {
    pub(crate) fn new(title: &str) -> Self {
        Self { title: title.to_owned(), ..Self::default() }
    }

    pub(crate) fn with_head(title: &str, head: &[&str]) -> Self {
        Self { head: head.iter().map(|&h| h.to_owned()).collect(), ..Self::new(title) }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The table within a box of its own that scrolls; with the class of a plot's, the script reads
    /// it.
    pub(crate) fn html(&self, of_plot: bool) -> String {
        let class = if of_plot { " class=\"points\"" } else { "" };
        let mut out = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table{class}>\
             <caption>{0}</caption><thead><tr>",
            escape(&self.title)
        );
        for head in &self.head {
            out.push_str(&format!("<th scope=\"col\">{}</th>", escape(head)));
        }
        out.push_str("</tr></thead><tbody>");
        let most = MOST_ROWS.min(MOST_CELLS / self.head.len().max(1)).max(1);
        for row in self.rows.iter().take(most) {
            out.push_str("<tr>");
            for cell in row {
                out.push_str(if cell.number { "<td class=\"n\"" } else { "<td" });
                if let Some(by) = cell.sort {
                    out.push_str(&format!(" data-v=\"{by}\""));
                }
                out.push_str(&format!(">{}</td>", cell.html));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>");
        let mut note = escape(&self.note);
        if self.rows.len() > most {
            note.push_str(&format!(" {} further rows are in the record.", self.rows.len() - most));
        }
        if !note.is_empty() {
            out.push_str(&format!("<p class=\"note\">{note}</p>"));
        }
        out
    }
}

/// Items of HTML that is escaped already, as a list; nothing where there are none.
pub(crate) fn list(items: &[String]) -> String {
    if items.is_empty() { String::new() } else { format!("<ul><li>{}</li></ul>\n", items.join("</li><li>")) }
}

/// A figure with its words.
#[derive(Debug)]
pub(crate) struct Figure {
    /// Letters, digits and `-`: unique within its record.
    pub(crate) id: &'static str,
    /// Says what to see.
    pub(crate) title: String,
    pub(crate) svg: String,
    pub(crate) table: Table,
    /// Why another machine, or another run, may show something else.
    pub(crate) differs: &'static str,
}

/// The part of the page for one record.
#[derive(Debug, Default)]
pub(crate) struct Out {
    pub(crate) html: String,
    /// Begins the ids of this record.
    prefix: String,
    pub(crate) contents: Vec<(String, String)>,
    pub(crate) figures: Vec<(String, String)>,
    open: bool,
}

impl Out {
    pub(crate) fn new(prefix: String) -> Self {
        Self { prefix, ..Self::default() }
    }

    pub(crate) fn section(&mut self, id: &str, title: &str) {
        self.end_section();
        let id = format!("{}-about-{id}", self.prefix);
        self.html.push_str(&format!("<section id=\"{id}\"><h3>{}</h3>\n", escape(title)));
        self.contents.push((id, title.to_owned()));
        self.open = true;
    }

    pub(crate) fn end_section(&mut self) {
        if std::mem::take(&mut self.open) {
            self.html.push_str("</section>\n");
        }
    }

    /// A paragraph of HTML that is escaped already.
    pub(crate) fn say(&mut self, html: &str) {
        self.html.push_str(&format!("<p>{html}</p>\n"));
    }

    /// What is missing, and why.
    pub(crate) fn missing(&mut self, html: &str) {
        self.html.push_str(&format!("<p class=\"missing\">{html}</p>\n"));
    }

    pub(crate) fn list(&mut self, items: &[String]) {
        self.html.push_str(&list(items));
    }

    pub(crate) fn table(&mut self, table: &Table) {
        if !table.rows.is_empty() {
            self.html.push_str(&table.html(false));
        }
    }

    /// HTML that folds away.
    pub(crate) fn details(&mut self, title: &str, html: &str) {
        let title = escape(title);
        self.html.push_str(&format!("<details><summary>{title}</summary>{html}</details>\n"));
    }

    pub(crate) fn figure(&mut self, figure: Figure) {
        let id = format!("{}-{}", self.prefix, figure.id);
        let plot = figure.svg.contains("class=\"plot\"");
        let frame = if figure.svg.contains("class=\"flame\"") { "scroll wide" } else { "scroll" };
        let under = if figure.table.rows.is_empty() {
            String::new()
        } else {
            format!("<details><summary>The figures as a table</summary>{}</details>", figure.table.html(plot))
        };
        self.html.push_str(&format!(
            "<figure id=\"{id}\" aria-label=\"{0}\"><figcaption><strong>{0}</strong></figcaption>\
             <div class=\"{frame}\" \
             tabindex=\"0\" role=\"region\" aria-label=\"{0}\">{1}</div>\
             <p class=\"differs\">Why yours may differ: {2}</p>{under}</figure>\n",
            escape(&figure.title),
            figure.svg,
            escape(figure.differs)
        ));
        self.figures.push((id, figure.svg));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_tables_say_what_they_leave_out() {
        let mut table = Table::new("t");
        table.head = vec!["<h>".to_owned(); 256];
        table.rows = vec![vec![Cell::plain("143.3 [121.3, 152.9]".to_owned()); 256]; 256];
        let html = table.html(true);
        assert!(html.len() < 500_000, "{}", html.len());
        assert!(html.contains("225 further rows are in the record.") && html.contains("&lt;h&gt;"));
    }
}
