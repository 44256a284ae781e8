//! Harvest twins taken to pieces: what is inserted where, read from the mapping on its own.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction};
use image::Image;
use units::Svma;

/// The leave before every escape of a scavenger.
pub(crate) const LEAD: usize = 63;

/// An instruction of a twin and what is inserted before it. Places are offsets in the file.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) at: usize,
    pub(crate) size: usize,
    /// The cold part: where it is, how long, and its address.
    pub(crate) cold: (usize, usize, u64),
    /// Inserted instructions, as if each cold stretch stood behind the jump that leads to it; their
    /// addresses are those in the twin.
    pub(crate) inserted: Vec<Instruction>,
    pub(crate) original: Instruction,
    pub(crate) copy: Instruction,
    pub(crate) escape: bool,
    /// Of a switch that is a `nop`: the jump that it leads to, and where that is in the file.
    pub(crate) relay: Option<(Instruction, usize)>,
}

impl Piece {
    pub(crate) fn place(&self, insn: &Instruction) -> usize {
        let (at, size, address) = self.cold;
        let away = insn.ip().wrapping_sub(address) as usize;
        if away < size { at + away } else { self.at + (insn.ip() - self.begin()) as usize }
    }
    fn begin(&self) -> u64 {
        self.copy.ip() - self.size as u64
    }
    /// Where the copy is in the file.
    pub(crate) fn copied(&self) -> usize {
        self.at + self.size
    }
    /// The first inserted instruction whose text begins so; its place, and how long it is.
    pub(crate) fn find(&self, text: &str) -> Option<(usize, usize)> {
        self.nth(text, 0)
    }
    /// Where an inserted instruction leads to, also one that has to be switched on for that.
    pub(crate) fn leads_to(&self, insn: &Instruction) -> u64 {
        match (insn.code(), &self.relay) {
            (Code::Mov_r32_imm32 | Code::Cmp_EAX_imm32, _) => {
                insn.next_ip().wrapping_add_signed(i64::from(insn.immediate32() as i32))
            }
            (_, Some((relay, _))) if is_relayed(insn) => relay.near_branch_target(),
            _ => insn.near_branch_target(),
        }
    }
    /// What stands before the instruction and the cold part, in the order of control.
    fn spliced(&self, cold: &[Instruction]) -> Vec<Instruction> {
        let hot = &self.inserted;
        let begins: Vec<usize> = hot
            .iter()
            .filter_map(|jump| cold.iter().position(|insn| insn.ip() == self.leads_to(jump)))
            .chain([cold.len()])
            .collect();
        let mut stretches = begins.windows(2).map(|ends| &cold[ends[0]..ends[1]]);
        let mut all = Vec::new();
        for insn in hot {
            all.push(*insn);
            if cold.iter().any(|first| first.ip() == self.leads_to(insn)) {
                all.extend_from_slice(stretches.next().unwrap_or_default());
            }
        }
        all
    }
    pub(crate) fn nth(&self, text: &str, nth: usize) -> Option<(usize, usize)> {
        let insn = self.inserted.iter().filter(|insn| insn.to_string().starts_with(text)).nth(nth)?;
        Some((self.place(insn), insn.len()))
    }
}

pub(crate) fn get(bytes: &[u8], at: usize, size: usize) -> u64 {
    let mut value = [0; 8];
    value[..size].copy_from_slice(&bytes[at..at + size]);
    u64::from_le_bytes(value)
}
pub(crate) fn add(bytes: &mut [u8], at: usize, size: usize, delta: i64) {
    let value = get(bytes, at, size).wrapping_add_signed(delta);
    bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
}

fn uleb(bytes: &[u8], at: &mut usize) -> usize {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

/// Where the mapping and the note's contents are.
pub(crate) fn mapping(bytes: &[u8]) -> (usize, usize) {
    let find = |sign: &[u8]| bytes.windows(sign.len()).rposition(|window| window == sign).expect("a sign");
    let note = [b"Gleaner\0", &twin_format::VERSION.to_le_bytes()[..]].concat();
    (find(b"GLNRTWIN"), find(&note) + 8)
}

pub(crate) fn pieces(original: &[u8], rewritten: &[u8], scavenger: bool) -> Vec<Piece> {
    let map = mapping(rewritten).0;
    let (old, new) = (Image::parse(original).expect("sound"), Image::parse(rewritten).expect("sound"));
    let offset =
        |image: &Image, address: u64| image.file_offset(Svma(address)).expect("in the file").0 as usize;
    let decode = |bytes: &[u8], address: u64| {
        Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).into_iter().collect::<Vec<_>>()
    };
    let mut pieces: Vec<Piece> = Vec::new();
    for unit in 0..get(rewritten, map + 16, 8) as usize {
        let record = map + get(rewritten, map + 32, 8) as usize + 40 * unit;
        let (start, twin_start) = (get(rewritten, record, 8), get(rewritten, record + 8, 8));
        let (mut original_at, mut twin) = (start, twin_start);
        let mut stream = map + get(rewritten, record + 16, 8) as usize;
        let first = pieces.len();
        for _ in 0..get(rewritten, record + 32, 4) {
            let head = rewritten[stream];
            stream += 1;
            let mut number = |bit: u8| if head & bit != 0 { uleb(rewritten, &mut stream) } else { 0 };
            let (gap, size, resized) = (number(0x10), number(0x20), number(0x40));
            let len = usize::from(head & 15);
            let twin_len = if head & 0x40 != 0 { resized } else { len };
            original_at += gap as u64 >> 6;
            twin += gap as u64 & 63;
            let at = offset(&new, twin);
            let (from, copy) = (offset(&old, original_at), at + size);
            pieces.push(Piece {
                at,
                size,
                cold: (0, 0, 0),
                inserted: decode(&rewritten[at..copy], twin),
                original: decode(&original[from..from + len], original_at)[0],
                copy: decode(&rewritten[copy..copy + twin_len], twin + size as u64)[0],
                escape: head & 0x80 != 0,
                relay: None,
            });
            let piece = pieces.last_mut().expect("just pushed");
            if let Some(switch) = piece.inserted.iter().find(|insn| is_relayed(insn)) {
                let bytes = &rewritten[piece.place(switch)..][..5];
                let to = switch.next_ip().wrapping_add_signed(i64::from(get(bytes, 1, 4) as i32));
                let at = offset(&new, to);
                piece.relay = Some((decode(&rewritten[at..at + 5], to)[0], at));
            }
            original_at += len as u64;
            let escape = if scavenger { LEAD + 5 } else { 5 };
            twin += (size + twin_len + if head & 0x80 != 0 { escape } else { 0 }) as u64;
        }
        let mut index = first;
        for _ in 0..uleb(rewritten, &mut stream) {
            index += uleb(rewritten, &mut stream);
            let size = uleb(rewritten, &mut stream);
            let at = offset(&new, twin);
            let piece = &mut pieces[index];
            piece.cold = (at, size, twin);
            let cold = decode(&rewritten[at..at + size], twin);
            piece.inserted = piece.spliced(&cold);
            twin += size as u64;
        }
    }
    pieces
}

/// Whether it is a switch that has a relay.
pub(crate) fn is_relayed(insn: &Instruction) -> bool {
    insn.code() == Code::Nop_rm32 && insn.len() == 5
}

/// Inserted code that does nothing, and breaks no rule by itself.
pub(crate) fn fill(bytes: &mut [u8]) {
    const KEEP: [u8; 9] = [0x65, 0x48, 0x89, 0x04, 0x25, 0x10, 0, 0, 0]; // mov gs:[S0], rax
    let odd = bytes.len() % 2 * KEEP.len();
    assert!(odd <= bytes.len(), "too short to be filled");
    bytes[..odd].copy_from_slice(&KEEP[..odd]);
    for jump in bytes[odd..].chunks_exact_mut(2) {
        jump.copy_from_slice(&[0xeb, 0]);
    }
}
