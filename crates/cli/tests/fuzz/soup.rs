//! Machine code that means nothing, but has the shapes that decoders look for.
//!
//! To add a shape: an arm in [`piece`].

use crate::random::Random;

pub(crate) fn fill(bytes: &mut [u8], random: &mut Random) {
    let mut at = 0;
    while at < bytes.len() {
        let piece = piece(random);
        let size = piece.len().min(bytes.len() - at);
        bytes[at..at + size].copy_from_slice(&piece[..size]);
        at += size;
    }
}

fn piece(random: &mut Random) -> Vec<u8> {
    let near = |random: &mut Random| (random.below(600) as i32 - 300).to_le_bytes();
    let with = |head: &[u8], tail: &[u8]| [head, tail].concat();
    match random.below(20) {
        0 | 1 => {
            let size = 1 + random.below(15);
            random.bytes(size)
        }
        2 => vec![*random.pick(&[0xeb, 0x70, 0x74, 0x75, 0x7f, 0xe2, 0xe3, 0xe0]), random.next() as u8],
        3 => with(&[*random.pick(&[0xe8, 0xe9])], &near(random)),
        4 => with(&[0x0f, 0x80 | random.next() as u8 & 15], &near(random)),
        5 => vec![0xff, *random.pick(&[0xe0, 0xd0, 0x20, 0x60, 0xe6, 0x24])],
        // jmp [rax*8 + table]
        6 => with(&[0xff, 0x24, 0xc5], &near(random)),
        7 | 8 => offsets(random),
        9 => vec![0xc3],
        10 => vec![0x0f, 0x0b],
        // Prefixes, more than fit and less
        11 => {
            let mut bytes = vec![*random.pick(&[0x66, 0x2e, 0xf2, 0xf3, 0xf0, 0x48, 0x67, 0x64, 0x65])];
            bytes.resize(1 + random.below(16), 0x66);
            bytes.extend(random.bytes(3));
            bytes
        }
        // VEX, EVEX, XOP, REX2
        12 => {
            let tail = random.bytes(6);
            with(&[*random.pick(&[0xc5, 0xc4, 0x62, 0x8f, 0xd5])], &tail)
        }
        13 => with(&[0x48, 0x8b, 5 | (random.next() as u8 & 7) << 3], &near(random)),
        14 => vec![0x50 | random.next() as u8 & 15],
        15 => with(&[0xe8], &[0, 0, 0, 0]),
        16 => vec![0xf3, 0x0f, 0x1e, 0xfa],
        17 => with(&[0xc7, 0xf8], &near(random)),
        18 => vec![0x48, random.next() as u8 & 0x3f, 0xc0 | random.next() as u8],
        _ => vec![0x90; 1 + random.below(12)],
    }
}

/// A `switch` by a table of offsets: cmp, ja, lea, movsxd, add, jmp.
fn offsets(random: &mut Random) -> Vec<u8> {
    let mut code = if random.once_in(3) {
        let most = (random.next() as u32) >> random.below(30);
        [&[0x3d][..], &most.to_le_bytes()].concat()
    } else {
        vec![0x83, 0xf8, random.next() as u8 & 0x7f]
    };
    code.extend([0x77, random.next() as u8, 0x48, 0x8d, 0x15]);
    code.extend((random.below(9000) as i32 - 3000).to_le_bytes());
    code.extend([0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0]);
    if random.once_in(4) {
        code.push(0x3e);
    }
    code.extend([0xff, 0xe0]);
    code
}
