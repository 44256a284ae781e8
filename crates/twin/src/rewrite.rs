//! The phases of a rewrite, one after the other:
//!
//! ```text
//! read and decode   the file → units, instructions, control flow          Rewriter::of
//! choose, liveness  which units get twins; which registers are live       decide
//! lay out           what is inserted into each unit; offsets of its twin  lay_out_all
//! place             addresses of twins, relays, tables                    put_together
//! write             unwind tables, mapping, symbols, code, entry patches  put_together
//! ```
//!
//! A caller that wants to know how long they take gives a [`PhaseObserver`] and takes the time:
//! this room has no clock.

use crate::error::TwinError;
use crate::incremental::EarlierRewrite;
use crate::layout::emit::{INT3, Twin, TwinTable, Twins, is_movable, label_table_size, movable_tables};
use crate::layout::span::Span;
use crate::layout::{LINE, escapes_after, lay_out};
use crate::modes::harvest::{HarvestTwins, ModuleFacts};
use crate::modes::mode::Mode;
use crate::modes::poison::Poison;
use crate::modes::prefetch::{self, Prefetches};
use crate::modes::trace;
use crate::output::file::{self, Places, Sizes};
use crate::output::map;
use crate::output::relays;
use crate::output::symbols;
use crate::output::unwind;
use crate::report::{Coverage, Harvested, Refusal, SiteRefusal, UnitNote};
use crate::select::own_base;
use crate::select::replaced_calls;
use crate::select::sites::SiteChoice;
use crate::select::{EntryChoice, UnitChoice, choose};
use crate::yields::leaves::leave_anywhere;
use image::code::groups::RelyOn;
use image::code::jump_table::JumpTable;
use image::liveness::{Knowledge, Liveness};
use image::{Image, Module};
use rayon::prelude::*;
use units::Svma;

/// A rewritten file and what there is to say about it.
pub struct Rewritten {
    pub bytes: Vec<u8>,
    pub coverage: Coverage,
}

/// Is told the name of each phase when it ends.
pub type PhaseObserver<'o> = &'o mut dyn FnMut(&'static str);

/// Rewrites the module in `data`; `debug` is its separate debug information, if any.
pub fn rewrite(data: &[u8], debug: Option<&[u8]>, mode: Mode<'_>) -> Result<Rewritten, TwinError> {
    Rewriter::of(data, debug)?.rewrite(mode)
}

/// A module that is rewritten, again and again if need be: only what other sites change is done
/// anew.
pub struct Rewriter<'d> {
    data: &'d [u8],
    module: Module<'d>,
    decided: Option<ModuleDecisions>,
    laid: Option<(EarlierRewrite, LaidOutUnits)>,
}

impl<'d> Rewriter<'d> {
    /// Reads and decodes.
    pub fn of(data: &'d [u8], debug: Option<&'d [u8]>) -> Result<Self, TwinError> {
        if let Some(debug) = debug {
            refuse_debug(data, debug)?;
        }
        let module = Module::analyse(data, debug)?;
        Ok(Self { data, module, decided: None, laid: None })
    }

    /// The file, as it was read.
    pub fn data(&self) -> &'d [u8] {
        self.data
    }

    /// What it is of, and what is live there by what a rewrite in this mode goes by; nothing is
    /// told of modes without sites.
    pub fn live(&mut self, mode: Mode<'_>) -> Result<(&Module<'d>, Option<&Liveness>), TwinError> {
        self.decide(mode, &mut |_| {})?;
        let facts = self.decided.as_ref().and_then(|decided| decided.facts.as_ref());
        Ok((&self.module, facts.map(ModuleFacts::liveness)))
    }

    /// Gives the same result as a new [`Rewriter`] would.
    pub fn rewrite(&mut self, mode: Mode<'_>) -> Result<Rewritten, TwinError> {
        self.rewrite_observed(mode, &mut |_| {})
    }

    /// The same; the observer is told of each phase but reading, which [`Rewriter::of`] does.
    pub fn rewrite_observed(
        &mut self,
        mode: Mode<'_>,
        ended: PhaseObserver<'_>,
    ) -> Result<Rewritten, TwinError> {
        self.decide(mode, ended)?;
        let decided = self.decided.as_ref().expect("it was decided just now");
        let before = self.laid.take().filter(|(again, _)| again.serves(mode));
        let stale = before.as_ref().map(|(again, _)| again.stale(&self.module, mode));
        let before = before.map(|(_, laid)| laid).zip(stale);
        let laid = lay_out_all(&self.module, decided, mode, before);
        ended("lay out");
        let (rewritten, laid) = put_together(&self.module, self.data, mode, &decided.choices, laid, ended)?;
        self.laid = EarlierRewrite::of(mode).zip(Some(laid));
        Ok(rewritten)
    }

    fn decide(&mut self, mode: Mode<'_>, ended: PhaseObserver<'_>) -> Result<(), TwinError> {
        if self.decided.as_ref().is_some_and(|decided| decided.serves(mode)) {
            return Ok(());
        }
        (self.decided, self.laid) = (None, None);
        let choices = decide(&self.module, mode)?;
        ended("choose");
        let facts = mode.sites().map(|sites| {
            let facts = ModuleFacts::of(&self.module, &choices, sites.knowledge, mode.goes_aboard());
            ended("liveness");
            facts
        });
        let knowledge = mode.sites().map(|sites| sites.knowledge);
        self.decided = Some(ModuleDecisions { mode: mode.number(), knowledge, choices, facts });
        Ok(())
    }
}

/// What depends on the mode alone.
struct ModuleDecisions {
    mode: u32,
    knowledge: Option<Knowledge>,
    choices: Vec<UnitChoice>,
    facts: Option<ModuleFacts>,
}

impl ModuleDecisions {
    fn serves(&self, mode: Mode<'_>) -> bool {
        (self.mode, self.knowledge) == (mode.number(), mode.sites().map(|sites| sites.knowledge))
    }
}

fn put_together(
    module: &Module<'_>,
    data: &[u8],
    mode: Mode<'_>,
    choices: &[UnitChoice],
    mut laid: LaidOutUnits,
    ended: PhaseObserver<'_>,
) -> Result<(Rewritten, LaidOutUnits), TwinError> {
    let harvested = laid.harvested(module, mode);
    let before_escape = if mode.goes_aboard() { leave_anywhere().hot.bytes } else { Vec::new() };
    let text = Span::default();
    let mut twins = Twins { module, twins: laid.twins, before_escape, text, relays: Vec::new() };

    let (text_size, tables_size) = place_relatively(&mut twins);
    let (relays, text_size) = relays::place(&twins, text_size)?;
    twins.relays = relays;
    let tables = unwind::Tables::plan(&twins);
    let sizes = Sizes {
        unwind_header: unwind::Tables::header_size(&twins),
        frames: tables.frames_size(&twins),
        exceptions: tables.exceptions_size(),
        tables: tables_size,
        text: text_size,
    };
    let places = Places::choose(&module.image, &sizes)?;
    twins.text = places.text;
    for twin in twins.twins.iter_mut().flatten() {
        twin.address += places.text.address;
        for table in &mut twin.tables {
            table.address += places.tables.address;
        }
        if let Some(table) = &mut twin.label_table {
            *table += places.tables.address;
        }
    }
    for relay in &mut twins.relays {
        relay.at += places.text.address;
    }
    let unwind_places = unwind::Places {
        header: places.unwind_header.address,
        frames: places.frames.address,
        exceptions: places.exceptions.address,
    };
    let [header, frames, exceptions] = tables.write(&twins, unwind_places)?;
    ended("unwind tables");

    let mapping = map::write(&twins, choices, mode);
    let symbols = symbols::write(&twins, file::text_section(&module.image));
    file::refuse_sections(&module.image, &symbols)?;
    ended("mapping and symbols");

    let loaded = places.end_of_loaded() as usize;
    let extra = mapping.len() + symbols.symbols.len() + symbols.strings.len();
    // There may be a hole. Its zero pages are never written to, so they take no memory.
    let mut bytes = vec![0; loaded + extra + (1 << 16)];
    bytes[..data.len()].copy_from_slice(data);
    bytes.truncate(loaded);
    let note = map::note(mode, (loaded as u64).next_multiple_of(8), mapping.len() as u64, data.len() as u64);
    for (span, piece) in [
        (places.program_headers, file::program_headers(&module.image, &places)),
        (places.note, note),
        (places.unwind_header, header),
        (places.frames, frames),
        (places.exceptions, exceptions),
    ] {
        if piece.len() as u64 != span.size {
            return Err(TwinError::UnwindTable("a table of another size than planned"));
        }
        bytes[span.offset as usize..][..piece.len()].copy_from_slice(&piece);
    }
    emit_all(&twins, &places, &mut bytes)?;
    patch_entries(&twins, choices, &mut bytes)?;
    file::finish(&mut bytes, &twins, &places, &mapping, &symbols);
    ended("write");

    let mut coverage = coverage(&twins, choices);
    coverage.bytes_before = data.len() as u64;
    coverage.bytes_after = bytes.len() as u64;
    coverage.twin_code_bytes = places.text.size;
    coverage.needs_linux_5_18 = places.need_new_kernel(&module.image);
    coverage.harvest = harvested;
    coverage.inserted_bytes = twins.twins.iter().flatten().map(|twin| twin.inserted.bytes()).sum();
    ended("report");
    laid.twins = twins.twins;
    Ok((Rewritten { bytes, coverage }, laid))
}

/// What gets a twin.
fn decide(module: &Module<'_>, mode: Mode<'_>) -> Result<Vec<UnitChoice>, TwinError> {
    refuse_module(module)?;
    // Copies of memory in libc are entered behind their first instruction, too, by one another.
    let behind_entry = matches!(mode, Mode::Trace(_));
    let mut choices = choose(module, behind_entry);
    if let Mode::Scavenger(..) = mode {
        refuse_replaced(module, &mut choices);
    }
    if let Mode::Prefetch(wanted) = mode {
        refuse_others(module, &mut choices, wanted);
    }
    if mode.sites().is_some() && own_base::sets_gs(module) {
        return Err(TwinError::SetsGs);
    }
    Ok(choices)
}

/// What the runtime changes in the original has no twin that it does not know of.
fn refuse_replaced(module: &Module<'_>, choices: &mut [UnitChoice]) {
    choices.par_iter_mut().enumerate().with_min_len(64).for_each(|(unit, choice)| {
        if matches!(choice, UnitChoice::Twin(_)) && replaced_calls::makes_one(module, unit) {
            *choice = UnitChoice::Refused(Refusal::ReplacedCall);
        }
    });
}

/// What holds none of the loads stays in the original.
fn refuse_others(module: &Module<'_>, choices: &mut [UnitChoice], wanted: &Prefetches) {
    for (choice, unit) in choices.iter_mut().zip(&module.units) {
        let is_asked_for = wanted.range(unit.start.0..unit.end().0).next().is_some();
        if !is_asked_for && matches!(choice, UnitChoice::Twin(_)) {
            *choice = UnitChoice::Refused(Refusal::NotAskedFor);
        }
    }
}

/// Modules that must not be rewritten at all.
fn refuse_module(module: &Module<'_>) -> Result<(), TwinError> {
    let image = &module.image;
    if image.notes().any(|(owner, kind, _)| twin_format::Note::is_ours(owner, kind)) {
        return Err(TwinError::AlreadyRewritten);
    }
    // These runtimes look up return addresses in tables made by their compilers, when they collect
    // garbage; the twins' would not be in them. And Go's scheduler would have to know of every
    // switch between stacks.
    if image::go::is_go(image) {
        return Err(TwinError::ForeignRuntime("a Go"));
    }
    let has = |name: &[u8]| module.symbols.all().iter().any(|symbol| symbol.name == name);
    if has(b"caml_startup__code_begin") || has(b"caml_call_gc") {
        return Err(TwinError::ForeignRuntime("an OCaml"));
    }
    if module.frames.fdes.is_empty() {
        return Err(TwinError::NoUnwindTable);
    }
    Ok(())
}

/// Names from another program would be worse than none.
fn refuse_debug(data: &[u8], debug: &[u8]) -> Result<(), TwinError> {
    let debug = Image::parse(debug).map_err(TwinError::Debug)?;
    match (Image::parse(data)?.build_id(), debug.build_id()) {
        (Some(own), Some(other)) if own != other => Err(TwinError::OtherDebug),
        _ => Ok(()),
    }
}

/// What decides what is put into a unit.
enum Inserter<'a, 'd> {
    Nothing,
    Poison(Poison, Liveness),
    Harvest(HarvestTwins<'a, 'd>),
    /// With what is live, if that has to be known.
    Prefetch(&'a Prefetches, Option<Liveness>),
    Trace(u16),
}

/// All units, laid out.
struct LaidOutUnits {
    twins: Vec<Option<Twin>>,
    /// What was put into each.
    done: Vec<Harvested>,
}

impl LaidOutUnits {
    fn harvested(&self, module: &Module<'_>, mode: Mode<'_>) -> Option<Harvested> {
        let sites = mode.sites()?;
        let mut all = Harvested::default();
        for done in &self.done {
            all.add(done.clone());
        }
        if let SiteChoice::Listed(listed) = &sites.which {
            for &address in listed.keys() {
                let unit = module.unit_at(Svma(address));
                if unit.is_none_or(|unit| self.twins[unit].is_none()) {
                    all.leave_out(address, SiteRefusal::NoTwin);
                }
            }
        }
        Some(all)
    }
}

/// Lays all units out; where they are already, only the stale ones.
fn lay_out_all(
    module: &Module<'_>,
    ModuleDecisions { choices, facts, .. }: &ModuleDecisions,
    mode: Mode<'_>,
    before: Option<(LaidOutUnits, Vec<usize>)>,
) -> LaidOutUnits {
    // The checker sees only what the file lists.
    let all_of = |unit: usize| matches!(choices[unit], UnitChoice::Twin(_));
    let table = |unit: usize, table: &JumpTable| all_of(unit) && is_movable(module, unit, table);
    let listed = RelyOn { table: &table, all_of: &all_of };
    let inserter = match (mode, facts) {
        (Mode::Poison(width), _) => Inserter::Poison(Poison::new(width), Liveness::of(module, &listed)),
        (Mode::Prefetch(wanted), _) => {
            let minds = prefetch::minds_registers(wanted);
            Inserter::Prefetch(wanted, minds.then(|| Liveness::of(module, &listed)))
        }
        (Mode::Trace(number), _) => Inserter::Trace(number),
        (Mode::Primary(sites), Some(facts)) => {
            Inserter::Harvest(HarvestTwins::new(module, choices, facts, sites, None))
        }
        (Mode::Scavenger(sites, bounds), Some(facts)) => {
            Inserter::Harvest(HarvestTwins::new(module, choices, facts, sites, Some(bounds)))
        }
        _ => Inserter::Nothing,
    };
    let before_escape = if mode.goes_aboard() { leave_anywhere().hot.bytes.len() } else { 0 };
    let of_unit = |unit: usize| {
        if matches!(choices[unit], UnitChoice::Refused(_)) {
            return (None, Harvested::default());
        }
        let tables = movable_tables(module, unit);
        let (mut inserted, done) = match &inserter {
            Inserter::Nothing => <_>::default(),
            Inserter::Poison(poison, liveness) => {
                (poison.unit(module, unit, &liveness.before[unit]), Harvested::default())
            }
            Inserter::Harvest(harvest) => harvest.unit(unit, &tables),
            Inserter::Prefetch(wanted, liveness) => {
                let live = liveness.as_ref().map(|liveness| &*liveness.before[unit]);
                (prefetch::unit(module, unit, wanted, live), Harvested::default())
            }
            Inserter::Trace(number) => (trace::unit(module, unit, *number), Harvested::default()),
        };
        inserted.shrink();
        let layout = lay_out(module, unit, &tables, &inserted, before_escape as u32);
        let tables = tables.into_iter().map(|table| TwinTable { table, address: 0 }).collect();
        let label_table = inserted.use_label_table().then_some(0);
        (Some(Twin { layout, inserted, tables, label_table, address: 0 }), done)
    };
    if let Some((mut laid, stale)) = before {
        let anew: Vec<_> = stale.into_par_iter().map(|unit| (unit, of_unit(unit))).collect();
        for (unit, of_unit) in anew {
            (laid.twins[unit], laid.done[unit]) = of_unit;
        }
        return laid;
    }
    let (twins, done) = (0..choices.len()).into_par_iter().with_min_len(64).map(of_unit).unzip();
    LaidOutUnits { twins, done }
}

/// Gives every twin and every table a place relative to the start of theirs; the sizes of all.
fn place_relatively(twins: &mut Twins<'_, '_>) -> (u64, u64) {
    /// A twin lies in its cache lines as its original does, so that loops keep their alignment;
    /// small ones only nearly.
    const SMALL: u32 = 256;
    let (mut text, mut tables) = (0u64, 0u64);
    for (unit, twin) in twins.twins.iter_mut().enumerate() {
        let Some(twin) = twin else { continue };
        let line = if twin.layout.size < SMALL && !twin.layout.minds_lines() { 16 } else { u64::from(LINE) };
        let skew = twins.module.units[unit].start.0.wrapping_sub(text) % line;
        twin.address = text + skew;
        text = twin.address + u64::from(twin.layout.size);
        for table in &mut twin.tables {
            let entry = u64::from(table.table.entry_size);
            table.address = tables.next_multiple_of(entry);
            tables = table.address + entry * table.table.targets.len() as u64;
        }
        if let Some(table) = &mut twin.label_table {
            *table = tables.next_multiple_of(4);
            tables = *table + label_table_size(twins.module, unit);
        }
    }
    (text, tables)
}

fn emit_all(twins: &Twins<'_, '_>, places: &Places, bytes: &mut [u8]) -> Result<(), TwinError> {
    for (unit, twin) in twins.twins.iter().enumerate() {
        for table in twin.iter().flat_map(|twin| &twin.tables) {
            let piece = twins.table_bytes(unit, &table.table)?;
            let at = places.tables.offset + (table.address - places.tables.address);
            bytes[at as usize..][..piece.len()].copy_from_slice(&piece);
        }
        if let Some(table) = twin.as_ref().and_then(|twin| twin.label_table) {
            let piece = twins.label_table_bytes(unit, table)?;
            let at = places.tables.offset + (table - places.tables.address);
            bytes[at as usize..][..piece.len()].copy_from_slice(&piece);
        }
    }
    let text = &mut bytes[places.text.offset as usize..][..places.text.size as usize];
    let mut slices = Vec::new();
    let mut rest = text;
    let mut at = places.text.address;
    for (unit, twin) in twins.twins.iter().enumerate() {
        let Some(twin) = twin else { continue };
        let (gap, after) = rest.split_at_mut((twin.address - at) as usize);
        gap.fill(INT3);
        let (slice, after) = after.split_at_mut(twin.layout.size as usize);
        slices.push((unit, slice));
        rest = after;
        at = twin.address + u64::from(twin.layout.size);
    }
    relays::write(twins, at, rest)?;
    slices.par_iter_mut().with_min_len(64).try_for_each(|(unit, slice)| twins.emit(*unit, slice))
}

fn patch_entries(twins: &Twins<'_, '_>, choices: &[UnitChoice], bytes: &mut [u8]) -> Result<(), TwinError> {
    for (unit, choice) in choices.iter().enumerate() {
        let UnitChoice::Twin(EntryChoice::Patched(at)) = *choice else { continue };
        let patch = twins.entry_patch(unit, at)?;
        let address = Svma(twins.module.units[unit].start.0 + u64::from(at));
        let Some(offset) = twins.module.image.file_offset(address) else { continue };
        bytes[offset.0 as usize..][..patch.len()].copy_from_slice(&patch);
    }
    Ok(())
}

fn coverage(twins: &Twins<'_, '_>, choices: &[UnitChoice]) -> Coverage {
    let module = twins.module;
    let (indirect_jumps, jump_tables) = module.indirect_jumps();
    let mut coverage = Coverage {
        functions: module.units.len(),
        functions_with_unwind_entry: module.units.iter().filter(|unit| unit.fde.is_some()).count(),
        instructions_known: module.decoded.iter().map(|d| d.insns.len()).sum(),
        indirect_jumps,
        jump_tables,
        ..Coverage::default()
    };
    for (unit, choice) in choices.iter().enumerate() {
        match *choice {
            UnitChoice::Refused(reason) => {
                *coverage.refusals.entry(reason).or_default() += 1;
                coverage.refused.push(noted(module, unit, reason));
            }
            UnitChoice::Twin(entry) => {
                let insns = &module.decoded[unit].insns;
                coverage.functions_twinned += 1;
                coverage.instructions_twinned += insns.len();
                coverage.escapes += (0..insns.len()).filter(|&index| escapes_after(insns, index)).count();
                match entry {
                    EntryChoice::Patched(_) => coverage.entries_patched += 1,
                    EntryChoice::Kept(reason) => {
                        *coverage.entries_kept.entry(reason).or_default() += 1;
                        coverage.kept.push(noted(module, unit, reason));
                    }
                }
            }
        }
    }
    coverage
}

fn noted<Reason>(module: &Module<'_>, unit: usize, reason: Reason) -> UnitNote<Reason> {
    UnitNote {
        address: module.units[unit].start.0,
        name: module.name(unit).map(|name| String::from_utf8_lossy(name).into_owned()),
        bytes: module.units[unit].size,
        reason,
    }
}
