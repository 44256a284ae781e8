//! What is written is read again, and what is damaged is refused or read as something that hangs
//! together; never a panic.
#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the path of a method is not general enough in the lifetime of a mapping"
)]

use gleaner_twin_format::stream::{Gap, Item, StreamReader, encode_cold_parts};
use gleaner_twin_format::{
    FormatError, LabelTable, MAGIC, Mapping, NOTE_SIZE, Note, Table, Unit, VERSION, YieldRow, Yields, mode,
};
use proptest::prelude::*;

fn stream(items: &[Item], cold: &[(u32, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    for item in items {
        item.encode(&mut out);
    }
    encode_cold_parts(&mut out, cold.iter().copied());
    out
}

const PLAIN: Item = Item { len: 3, gap: None, inserted: 0, twin_len: 3, escape: false };

fn items() -> Vec<Item> {
    let gap = Some(Gap { bytes: 70, padding: 13 });
    vec![
        PLAIN,
        Item { inserted: 300, ..PLAIN },
        Item { len: 2, twin_len: 6, ..PLAIN },
        Item { gap, inserted: 5, escape: true, ..PLAIN },
    ]
}

/// A primary's mapping with something of everything.
fn with_mapping<T>(use_it: impl FnOnce(&Mapping<'_>) -> T) -> T {
    let streams = [stream(&items(), &[(1, 40), (3, 200)]), stream(&[PLAIN], &[])];
    let unit = |start, twin, instructions, patch, stream| Unit {
        start,
        twin,
        size: 0x90,
        twin_size: 0x200,
        instructions,
        patch,
        stream,
    };
    let table = Table {
        jump: 0x1010,
        load: 0x1008,
        original: 0x3000,
        twin: 0x9000,
        base: 0x3000,
        count: 5,
        entry: 4,
    };
    let mut yields = Yields::default();
    let site = YieldRow { place: 0x5100, resume: 0x5103, switch: Some(0x5010) };
    yields.push(site, &[0x1003, 0x1020]);
    yields.push(YieldRow { place: 0x5180, resume: 0x5183, switch: None }, &[0x1040]);
    yields.push(YieldRow { place: 0x5200, resume: 0x5203, switch: None }, &[0x2000]);
    use_it(&Mapping {
        mode: mode::PRIMARY,
        units: vec![
            unit(0x1000, 0x5000, 4, Some(4), &streams[0][..]),
            unit(0x2000, 0x5200, 1, None, &streams[1][..]),
        ],
        tables: vec![table],
        yields,
        labels: vec![0x1003, 0x1040],
        label_tables: vec![LabelTable { unit: 0x1000, at: 0x9100 }],
    })
}

fn refused(change: impl FnOnce(&mut Vec<u8>)) -> FormatError {
    let mut written = with_mapping(|mapping| mapping.encode());
    change(&mut written);
    Mapping::decode(&written).expect_err("it does not hang together")
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn at(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

#[test]
fn what_is_written_is_read_again() {
    with_mapping(|mapping| {
        let written = mapping.encode();
        let read = Mapping::decode(&written).unwrap();
        assert_eq!(&read, mapping);
        assert_eq!(read.encode(), written);
        let mut reader = StreamReader::new(read.units[0].stream);
        let again: Vec<Item> = (0..4).map(|_| reader.item().unwrap()).collect();
        assert_eq!(again, items());
        assert_eq!(reader.cold_count(), Some(2));
        assert_eq!([reader.cold_part(), reader.cold_part()], [Some((1, 40)), Some((2, 200))]);
        assert_eq!(reader.item(), None);
    });
}

#[test]
fn a_yield_is_found_by_its_place() {
    with_mapping(|mapping| {
        let (row, origins) = mapping.yields.at(0x5100).unwrap();
        assert_eq!((row.switch, origins), (Some(0x5010), &[0x1003, 0x1020][..]));
        assert_eq!(mapping.yields.at(0x5200).unwrap().1, [0x2000]);
        assert_eq!(mapping.yields.at(0x5101), None);
        let origins: Vec<usize> = mapping.yields.iter().map(|(_, origins)| origins.len()).collect();
        assert_eq!((origins, mapping.yields.len()), (vec![2, 1, 1], 3));
    });
}

#[test]
fn the_layout_is_that_of_the_document() {
    let written = with_mapping(|mapping| mapping.encode());
    assert_eq!((&written[..8], written[8]), (&MAGIC[..], VERSION as u8));
    let [units, tables, yields, origins] = [16, 24, 48, 64].map(|field| at(&written, field));
    assert_eq!([units, tables, yields, origins], [2, 1, 3, 4]);
    let [units, tables, yields, origins] = [32, 40, 56, 72].map(|field| at(&written, field));
    assert_eq!([units, tables, yields, origins], [112, 192, 240, 336]);
    let [labels, labels_at] = [80, 88].map(|field| at(&written, field));
    assert_eq!([labels, labels_at], [2, 368]);
    assert_eq!([0, 8].map(|field| at(&written, labels_at + field)), [0x1003, 0x1040]);
    assert_eq!(at(&written, units), 0x1000);
    let [label_tables, label_tables_at] = [96, 104].map(|field| at(&written, field));
    assert_eq!([label_tables, label_tables_at], [1, 384]);
    assert_eq!([0, 8].map(|field| at(&written, label_tables_at + field)), [0x1000, 0x9100]);
    assert_eq!(at(&written, units + 16), 384 + 16, "the first stream lies behind the label tables");
    assert_eq!(at(&written, tables), 0x1010);
    assert_eq!([0, 8, 16].map(|field| at(&written, yields + field)), [0x5100, 0x5103, 0x5010]);
    assert_eq!(at(&written, yields + 24), 2 << 32 | 1, "the kind, and the number of origins");
    assert_eq!(at(&written, origins), 0x1003);
}

#[test]
fn what_does_not_hang_together_is_refused() {
    let told = |change: fn(&mut Vec<u8>)| refused(change).what;
    let version = "no mapping of a known version";
    assert_eq!(told(|bytes| bytes[0] = b'g'), version);
    assert_eq!(told(|bytes| bytes[8] = VERSION as u8 - 1), version, "that of an older version");
    assert_eq!(told(|bytes| bytes.truncate(111)), version);
    assert_eq!(told(|bytes| put(bytes, 16, u64::MAX / 40)), "the units are not where the mapping says");
    assert_eq!(told(|bytes| put(bytes, 32, 152)), "the units are not where the mapping says");
    assert_eq!(told(|bytes| put(bytes, 40, 152)), "the jump tables are not where the mapping says");
    assert_eq!(told(|bytes| put(bytes, 56, 192)), "the yields are not where the mapping says");
    assert_eq!(told(|bytes| put(bytes, 72, 240)), "the yields' origins are not where the mapping says");
    assert_eq!(told(|bytes| bytes[112 + 24] = 0), "an empty unit or twin");
    assert_eq!(told(|bytes| put(bytes, 112, 0x1f80)), "units do not ascend, or one is listed twice");
    assert_eq!(told(|bytes| put(bytes, 112 + 8, 0x5100)), "twins do not ascend, or overlap");
    assert_eq!(told(|bytes| put(bytes, 152 + 16, 400)), "instruction streams overlap");
    assert_eq!(told(|bytes| put(bytes, 112 + 16, 112)), "instruction streams overlap");
    assert_eq!(told(|bytes| bytes[152 + 32] = 9), "an instruction stream reaches beyond the mapping");
    assert_eq!(told(|bytes| put(bytes, 192, 0x10)), "jump tables are not grouped by unit");
    assert_eq!(told(|bytes| put(bytes, 88, 336)), "the labels are not where the mapping says");
    assert_eq!(told(|bytes| put(bytes, 368, 0x1040)), "labels do not ascend, or one is listed twice");
    assert_eq!(told(|bytes| put(bytes, 368, 0x1000)), "a label that lies inside no unit");
    assert_eq!(told(|bytes| put(bytes, 376, 0x1090)), "a label that lies inside no unit");
    assert_eq!(told(|bytes| put(bytes, 104, 368)), "the label tables are not where the mapping says");
    assert_eq!(told(|bytes| put(bytes, 384, 0x1008)), "a label table of no unit");
    let yields = 240;
    assert_eq!(told(|bytes| bytes[240 + 24] = 4), "a yield of no known kind");
    assert_eq!(told(|bytes| bytes[240 + 28] = 0), "a yield without origins, or with more than there are");
    assert_eq!(told(|bytes| bytes[240 + 28] = 9), "a yield without origins, or with more than there are");
    assert_eq!(told(|bytes| bytes[240 + 28] = 1), "origins of no yield");
    assert_eq!(told(|bytes| put(bytes, 240, 0x5180)), "yields do not ascend, or one is listed twice");
    assert_eq!(told(|bytes| bytes[240 + 24] = 2), "a yield of no known kind");
    assert_eq!(told(|bytes| bytes[240 + 24] = 3), "a yield of no known kind");
    assert_eq!(told(|bytes| bytes[12] = 4), "a yield that this mode does not have");
    assert_eq!(told(|bytes| bytes[12] = 1), "a yield that this mode does not have");
    assert_eq!(refused(|bytes| bytes[yields + 32 + 24] = 4).at, 272, "where it is");
}

#[test]
fn notes() {
    let note = Note {
        mode: mode::SCAVENGER,
        map_offset: 0x1234,
        map_size: 0x99,
        original_size: 0x1000,
        vector_bytes: 32,
        quantum: 200,
    };
    let written = note.encode();
    assert_eq!(written.len(), NOTE_SIZE);
    let (head, contents) = written.split_at(20);
    assert_eq!(head, b"\x08\0\0\0\x30\0\0\0\x01\0\0\0Gleaner\0");
    assert_eq!(Note::decode(contents), Ok(note));
    assert!(note.check().is_ok() && Note::is_ours(b"Gleaner\0", 1));
    for (at, byte) in [(0, VERSION as u8 - 1), (0, VERSION as u8 + 1), (40, 1)] {
        let mut wrong = contents.to_vec();
        wrong[at] = byte;
        assert_eq!(Note::decode(&wrong).unwrap_err().what, "the note is of no known version");
    }
    assert!(Note::decode(&contents[1..]).is_err());
    assert!(
        Note { quantum: 0, ..note }.check().is_err() && Note { vector_bytes: 48, ..note }.check().is_err()
    );
    assert!(Note { mode: mode::PRIMARY, ..note }.check().is_err(), "a primary has no quantum");
    let file = [7; 0x1300];
    assert_eq!(note.mapping(&file).unwrap().len(), 0x99);
    assert!(note.mapping(&file[..0x12cc]).is_err());
    assert!(Note { map_size: u64::MAX, ..note }.mapping(&file).is_err());
}

proptest! {
    #[test]
    fn damaged(hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut written = with_mapping(|mapping| mapping.encode());
        for (at, byte) in hits {
            let at = at.index(written.len());
            written[at] = byte;
        }
        if let Ok(read) = Mapping::decode(&written) {
            let again = read.encode();
            prop_assert_eq!(Mapping::decode(&again), Ok(read.clone()));
        }
    }

    #[test]
    fn cut_short(size in any::<prop::sample::Index>()) {
        let written = with_mapping(|mapping| mapping.encode());
        prop_assert!(Mapping::decode(&written[..size.index(written.len())]).is_err());
    }
}
