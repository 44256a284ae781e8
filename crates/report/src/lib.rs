//! Records as one self-contained HTML page: no network, no script but its own, readable without
//! any. Pure: records in, text out.
//!
//! [`report`] makes the page and its figures. To add a kind of record: a folder here with a
//! function from the record to an `Out`, and its line in [`body`]. To add a section of a kind: a
//! file in that folder. What is missing from a record is said in the place of its figure, with the
//! record's own reason.
#![forbid(unsafe_code)]

mod beside;
mod embed;
mod figure;
mod machine;
mod page;
mod parts;
mod plan;
mod profile;
mod recipe;
mod reproduction;
mod run;
mod share;
mod text;
mod tour;

use parts::Out;
use records::AnyRecord;
use serde_json::Value;

/// A record with the name of its file.
#[derive(Clone, Debug)]
pub struct Named {
    pub name: String,
    pub record: AnyRecord,
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Leave out names of hosts and users, and home directories.
    pub share: bool,
    /// Names to leave out that the records do not tell: this host's, this user's.
    pub hidden: Vec<String>,
    /// Files that were to be on the page and are no sound records: it says so in their place.
    pub unread: Vec<Unread>,
}

/// A file that is no sound record.
#[derive(Clone, Debug)]
pub struct Unread {
    pub name: String,
    pub why: String,
}

/// A page and the figures on it.
#[derive(Clone, Debug)]
pub struct Report {
    pub html: String,
    /// Each with a name that is fit for a file, without extension.
    pub figures: Vec<(String, String)>,
}

/// Makes the page.
pub fn report(records: &[Named], options: &Options) -> Report {
    let (mut records, mut unread) = (records.to_vec(), options.unread.clone());
    if options.share {
        let mut hidden = share::Hidden::new(&options.hidden);
        for named in &records {
            hidden.learn(&named.record.body);
        }
        for named in &mut records {
            hidden.take_out(&mut named.record.body);
            named.name = hidden.without(text::base(&named.name));
        }
        for file in &mut unread {
            file.name = hidden.without(text::base(&file.name));
            file.why = hidden.without(&file.why);
        }
    }
    let names: Vec<String> = records.iter().map(|named| named.name.clone()).collect();
    let mut outs = Vec::new();
    for (n, named) in records.iter().enumerate() {
        let mut out = Out::new(format!("r{}", n + 1));
        body(named, &names, &mut out);
        out.end_section();
        outs.push(out);
    }
    let beside = beside::part(&records);
    let html = page::page(&records, &outs, beside.as_ref(), &unread, options.share);
    let figures = beside.into_iter().chain(outs).flat_map(|out| out.figures);
    let figures = figures.map(|(id, svg)| (id, page::standalone(&svg))).collect();
    Report { html, figures }
}

fn body(named: &Named, names: &[String], out: &mut Out) {
    let value = &named.record.body;
    let made = match named.record.header.kind.as_str() {
        "machine" => typed(value).map(|machine| machine::sections(&machine, out)),
        "profile" => typed(value).map(|profile| profile::sections(&profile, out)),
        "recipe" => typed(value).map(|recipe| recipe::sections(&recipe, out)),
        "reproduction" => typed(value).map(|found| reproduction::sections(&found, out)),
        "run" => typed(value).map(|run| run::sections(&named.name, &run, out)),
        "tour" => typed(value).map(|tour| tour::sections(&tour, names, out)),
        "plan" => typed(value).map(|plan| plan::sections(&plan, out)),
        _ => Err("there are no figures for this kind".to_owned()),
    };
    if let Err(why) = made {
        out.missing(&format!("Not shown: {}.", text::escape(&why)));
    }
}

fn typed<R: records::Record>(value: &Value) -> Result<R, String> {
    R::from_body(value).map_err(|misfit| misfit.to_string())
}

/// Whether a file is a page of this room's: one may be replaced by another without asking.
pub fn is_report(bytes: &[u8]) -> bool {
    bytes.starts_with(page::BEGIN.as_bytes())
}
