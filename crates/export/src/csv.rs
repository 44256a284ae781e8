//! Lists of a profile as comma-separated values (RFC 4180), a row each. A figure takes three
//! columns: value, and the ends of its interval; all are empty where it is not resolved.

use records::profile::Profile;
use units::{Quantity, Unit};

/// The loads that the core waited for.
pub(crate) fn loads(profile: &Profile) -> String {
    let mut table = Table::new(
        "module,build_id,address,function,inlined,file,line,instruction,\
         stall_ratio,stall_ratio_lo,stall_ratio_hi,samples,threads,\
         latency_ns,latency_ns_lo,latency_ns_hi,level,beyond_l2,pattern,\
         footprint_bytes,footprint_bytes_lo,footprint_bytes_hi,object,callers,\
         callers_share_ratio,callers_share_ratio_lo,callers_share_ratio_hi,\
         harvestable_ratio,harvestable_ratio_lo,harvestable_ratio_hi,\
         latency_cycles,latency_cycles_lo,latency_cycles_hi,\
         latency_share_ratio,latency_share_ratio_lo,latency_share_ratio_hi",
    );
    for load in &profile.loads {
        table.text(&load.module);
        table.text(load.build_id.as_deref().unwrap_or(""));
        table.text(&format!("{:#x}", load.address));
        table.text(load.function.as_deref().unwrap_or(""));
        table.text(&load.inlined.join(" < "));
        table.text(load.file.as_deref().unwrap_or(""));
        table.text(&load.line.map_or_else(String::new, |line| line.to_string()));
        table.text(&load.instruction);
        table.quantity(&load.stall, Unit::Ratio);
        table.text(&load.samples.to_string());
        table.text(&load.threads.to_string());
        table.quantity(&load.latency, Unit::Nanos);
        table.text(load.level.word());
        table.text(&load.beyond_l2.to_string());
        table.text(load.pattern.word());
        table.quantity(&load.footprint, Unit::Bytes);
        table.text(load.object.as_deref().unwrap_or(""));
        table.text(&load.callers.join(" < "));
        table.quantity(&load.callers_share, Unit::Ratio);
        table.quantity(&load.harvestable, Unit::Ratio);
        table.quantity(&load.latency, Unit::Cycles);
        table.quantity(&load.latency_share, Unit::Ratio);
        table.end_row();
    }
    table.text
}

/// Functions by CPU time.
pub(crate) fn functions(profile: &Profile) -> String {
    let mut table = Table::new(
        "module,function,address,time_ratio,time_ratio_lo,time_ratio_hi,\
         stall_ratio,stall_ratio_lo,stall_ratio_hi,samples,\
         latency_share_ratio,latency_share_ratio_lo,latency_share_ratio_hi",
    );
    for function in &profile.functions {
        table.text(&function.module);
        table.text(function.function.as_deref().unwrap_or(""));
        table.text(&format!("{:#x}", function.address));
        table.quantity(&function.time, Unit::Ratio);
        table.quantity(&function.stall, Unit::Ratio);
        table.text(&function.samples.to_string());
        table.quantity(&function.latency_share, Unit::Ratio);
        table.end_row();
    }
    table.text
}

/// The data that the core waited for.
pub(crate) fn objects(profile: &Profile) -> String {
    let mut table = Table::new(
        "name,bytes,bytes_lo,bytes_hi,count,stall_ratio,stall_ratio_lo,stall_ratio_hi,threads,\
         latency_share_ratio,latency_share_ratio_lo,latency_share_ratio_hi",
    );
    for object in &profile.objects {
        table.text(&object.name);
        table.quantity(&object.bytes, Unit::Bytes);
        table.text(&object.count.to_string());
        table.quantity(&object.stall, Unit::Ratio);
        table.text(&object.threads.to_string());
        table.quantity(&object.latency_share, Unit::Ratio);
        table.end_row();
    }
    table.text
}

/// The cache lines that threads share: a row for each offset and thread, with the thread's process.
pub(crate) fn lines(profile: &Profile) -> String {
    let mut table = Table::new(
        "process,line_address,line_sharing,offset,bytes,thread,sharing,reads,writes,\
         stall_ratio,stall_ratio_lo,stall_ratio_hi,object,function,file,line",
    );
    for line in &profile.lines {
        for part in &line.parts {
            table.text(&part.process.unwrap_or(line.process).to_string());
            table.text(&format!("{:#x}", line.address));
            table.text(line.sharing.word());
            table.text(&part.offset.to_string());
            table.text(&part.bytes.to_string());
            table.text(&part.thread.to_string());
            table.text(part.sharing.map_or("", records::profile::Sharing::word));
            table.text(&part.reads.to_string());
            table.text(&part.writes.to_string());
            table.quantity(&part.stall, Unit::Ratio);
            table.text(part.object.as_deref().unwrap_or(""));
            table.text(part.function.as_deref().unwrap_or(""));
            table.text(part.file.as_deref().unwrap_or(""));
            table.text(&part.line.map_or_else(String::new, |line| line.to_string()));
            table.end_row();
        }
    }
    table.text
}

struct Table {
    text: String,
    row_is_empty: bool,
}

impl Table {
    fn new(head: &str) -> Self {
        Self { text: format!("{head}\n"), row_is_empty: true }
    }

    fn text(&mut self, cell: &str) {
        if !std::mem::replace(&mut self.row_is_empty, false) {
            self.text.push(',');
        }
        let cell = crate::clean::clean(cell);
        if cell.contains([',', '"']) {
            self.text.push_str(&format!("\"{}\"", cell.replace('"', "\"\"")));
        } else {
            self.text.push_str(&cell);
        }
    }

    /// In the unit that the column's name says; nothing where it has another one.
    fn quantity(&mut self, quantity: &Quantity, unit: Unit) {
        let own = match quantity {
            Quantity::Resolved { unit, .. } => Some(*unit),
            Quantity::Unresolved { .. } => None,
        };
        let estimate = own.and_then(|own| Some(quantity.estimate()?.scaled(factor(own, unit)?)));
        for end in [estimate.map(|e| e.value), estimate.map(|e| e.lo), estimate.map(|e| e.hi)] {
            self.text(&end.map_or_else(String::new, |end| end.to_string()));
        }
    }

    fn end_row(&mut self) {
        self.text.push('\n');
        self.row_is_empty = true;
    }
}

/// What a figure in `from` is multiplied by to be one in `to`.
fn factor(from: Unit, to: Unit) -> Option<f64> {
    match (from, to) {
        _ if from == to => Some(1.0),
        (Unit::Micros, Unit::Nanos) => Some(1e3),
        (Unit::Seconds, Unit::Nanos) => Some(1e9),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Estimate;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let mut table = Table::new("a,b,c");
        for cell in ["x", "mov rax,[rax]", "say \"x\"", "", "a\nb"] {
            table.text(cell);
        }
        table.end_row();
        assert_eq!(table.text, "a,b,c\nx,\"mov rax,[rax]\",\"say \"\"x\"\"\",,a\\x0ab\n");
    }

    #[test]
    fn figures_have_the_unit_of_their_column() {
        let mut table = Table::new("head");
        table.quantity(&Quantity::measured(Estimate::new(0.5, 0.25, 1.0), Unit::Micros), Unit::Nanos);
        table.quantity(&Quantity::unresolved("why"), Unit::Nanos);
        table.quantity(&Quantity::claimed(7.0, Unit::Cycles), Unit::Nanos);
        assert_eq!(table.text, "head\n500,250,1000,,,,,,");
    }
}
