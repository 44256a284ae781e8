//! Wrong insertions: poison in what lives, and what is no poison.

use crate::Wrong;
use crate::specimen::{Item, Specimen, Unit};
use gleaner_proof::Rule::Inserted;
use iced_x86::{
    Code, Decoder, DecoderOptions, Encoder, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    Register, RflagsBits,
};

fn decode(bytes: &[u8]) -> Instruction {
    Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode()
}

/// Puts something else in the place of the first inserted instruction of `size` bytes for which
/// there is something.
fn exchange(
    it: &Specimen,
    new: &mut [u8],
    size: usize,
    other: impl Fn(&Unit, &Item, &Instruction) -> Option<Vec<u8>>,
) -> Option<()> {
    for (unit, item) in it.items().filter(|(_, item)| item.inserted >= size) {
        let from = it.offset(item.copy) - item.inserted;
        let mut decoder = Decoder::with_ip(64, &new[from..from + item.inserted], 0, DecoderOptions::NONE);
        let mut at = from;
        let mut found = None;
        while decoder.can_decode() {
            let inserted = decoder.decode();
            if inserted.len() == size {
                if let Some(bytes) = other(unit, item, &inserted) {
                    found = Some((at, bytes));
                    break;
                }
            }
            at += inserted.len();
        }
        if let Some((at, bytes)) = found {
            assert_eq!(bytes.len(), size);
            new[at..at + size].copy_from_slice(&bytes);
            return Some(());
        }
    }
    None
}

fn is_move(inserted: &Instruction) -> bool {
    inserted.mnemonic() == Mnemonic::Mov
}

/// `mov register, imm32`, in the place of another one.
fn fill(register: Register) -> Vec<u8> {
    let number = register.full_register().number() as u8;
    vec![0x48 | number >> 3, 0xc7, 0xc0 | number & 7, 1, 2, 3, 4]
}

/// Exchanges a `mov` of poison.
fn exchange_move(
    it: &Specimen,
    new: &mut [u8],
    other: impl Fn(&Unit, &Item) -> Option<Vec<u8>>,
) -> Option<()> {
    exchange(it, new, 7, |unit, item, inserted| is_move(inserted).then(|| other(unit, item)).flatten())
}

fn original(it: &Specimen, item: &Item) -> Instruction {
    decode(it.pair(item).0)
}

/// A register that an instruction reads.
fn read(insn: &Instruction, wanted: impl Fn(Register) -> bool) -> Option<Register> {
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(insn).used_registers().iter();
    let mut read = used.filter(|used| matches!(used.access(), OpAccess::Read | OpAccess::ReadWrite));
    read.find(|used| wanted(used.register())).map(iced_x86::UsedRegister::register)
}

fn is_written(it: &Specimen, unit: &Unit, register: Register) -> bool {
    let mut factory = InstructionInfoFactory::new();
    unit.items.iter().any(|item| {
        let insn = original(it, item);
        factory.info(&insn).used_registers().iter().any(|used| {
            used.register().is_gpr()
                && used.register().full_register() == register
                && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
        })
    })
}

fn assemble(insn: Instruction) -> Vec<u8> {
    let mut encoder = Encoder::new(64);
    encoder.encode(&insn, 0).expect("an instruction");
    encoder.take_buffer()
}

/// Before a direct call of a function.
fn exchange_at_call(it: &Specimen, new: &mut [u8], callee: &str, register: Register) -> Option<()> {
    let callee = it.named(callee)?;
    exchange_move(it, new, |_, item| {
        let insn = Decoder::with_ip(64, it.pair(item).0, item.at, DecoderOptions::NONE).decode();
        (insn.is_call_near() && insn.near_branch64() == callee).then(|| fill(register))
    })
}

const CMP_RSP: [u8; 7] = [0x48, 0x81, 0xfc, 1, 2, 3, 4];

pub(crate) const ALL: &[Wrong] = &[
    Wrong {
        name: "poison in a register that is read next",
        rule: Inserted,
        make: |it, _, new| {
            exchange_move(it, new, |_, item| {
                let general = |register: Register| register.is_gpr64() && register != Register::RSP;
                read(&original(it, item), general).map(fill)
            })
        },
    },
    Wrong {
        name: "poison in a callee-saved register at the entry",
        rule: Inserted,
        make: |it, _, new| {
            exchange_move(it, new, |unit, item| (item.at == unit.start).then(|| fill(Register::RBX)))
        },
    },
    Wrong {
        name: "poison in the stack pointer",
        rule: Inserted,
        make: |it, _, new| exchange_move(it, new, |_, _| Some(fill(Register::RSP))),
    },
    Wrong {
        name: "poison in a result",
        rule: Inserted,
        make: |it, _, new| {
            exchange_move(it, new, |_, item| (it.pair(item).0 == [0xc3]).then(|| fill(Register::RAX)))
        },
    },
    Wrong {
        name: "poison at a return in a register that the function never writes",
        rule: Inserted,
        make: |it, _, new| {
            exchange_move(it, new, |unit, item| {
                let kept = [Register::R11, Register::R10, Register::R9, Register::RSI];
                let kept = kept.into_iter().find(|&register| !is_written(it, unit, register));
                kept.filter(|_| it.pair(item).0 == [0xc3]).map(fill)
            })
        },
    },
    Wrong {
        name: "poison in flags that a branch reads",
        rule: Inserted,
        make: |it, _, new| {
            exchange_move(it, new, |_, item| {
                matches!(it.pair(item).0, [0x70..=0x7f, _]).then(|| CMP_RSP.to_vec())
            })
        },
    },
    Wrong {
        name: "poison in the carry that a sum takes",
        rule: Inserted,
        make: |it, _, new| {
            exchange_move(it, new, |_, item| {
                let insn = original(it, item);
                let takes = matches!(insn.mnemonic(), Mnemonic::Adc | Mnemonic::Sbb);
                (takes && insn.rflags_read() & RflagsBits::CF != 0).then(|| CMP_RSP.to_vec())
            })
        },
    },
    Wrong {
        name: "poison in a vector register that is read next",
        rule: Inserted,
        make: |it, _, new| {
            exchange(it, new, 7, |_, item, inserted| {
                if inserted.code() != Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8 {
                    return None;
                }
                let xmm = read(&original(it, item), iced_x86::Register::is_xmm)?;
                let zmm = Register::ZMM0 + xmm.number() as u32;
                Instruction::with4(inserted.code(), zmm, zmm, zmm, 0xffu32).ok().map(assemble)
            })
        },
    },
    Wrong {
        name: "poison in the upper half of a vector that is read next",
        rule: Inserted,
        make: |it, _, new| {
            exchange(it, new, 7, |_, item, inserted| {
                if inserted.code() != Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8 {
                    return None;
                }
                let ymm = read(&original(it, item), iced_x86::Register::is_ymm)?;
                let zmm = Register::ZMM0 + ymm.number() as u32;
                Instruction::with4(inserted.code(), zmm, zmm, zmm, 0xffu32).ok().map(assemble)
            })
        },
    },
    Wrong {
        name: "poison in a mask register that is read next",
        rule: Inserted,
        make: |it, _, new| {
            exchange(it, new, 4, |_, item, inserted| {
                if inserted.code() != Code::VEX_Kxnorw_kr_kr_kr {
                    return None;
                }
                let mask = read(&original(it, item), iced_x86::Register::is_k)?;
                Instruction::with3(inserted.code(), mask, mask, mask).ok().map(assemble)
            })
        },
    },
    Wrong {
        name: "poison in the red zone while it is in use",
        rule: Inserted,
        make: |it, _, new| {
            let reaches = |unit: &Unit| {
                unit.items.iter().any(|item| {
                    let insn = original(it, item);
                    insn.memory_base() == Register::RSP && (insn.memory_displacement64() as i64) < 0
                })
            };
            let (unit, item) = it.items().find(|(unit, item)| {
                let at = it.offset(item.copy) - item.inserted;
                item.inserted >= 14
                    && matches!(new[at..at + 3], [0x48, 0xc7, 0xc0..=0xc3 | 0xc5..=0xc7])
                    && matches!(new[at + 7..at + 9], [0x48 | 0x49, 0xc7])
                    && reaches(unit)
            })?;
            assert!(unit.twin <= item.copy);
            let at = it.offset(item.copy) - item.inserted;
            let low = new[at + 2] - 8;
            new[at..at + 9].copy_from_slice(&[0x48, 0xc7, 0x44, 0x24, 0xf8, 1, 2, 3, 4]);
            new[at + 9..at + 14].copy_from_slice(&[low, 1, 2, 3, 4]);
            Some(())
        },
    },
    Wrong {
        name: "a store above the stack pointer",
        rule: Inserted,
        make: |it, _, new| exchange_move(it, new, |_, _| Some(vec![0xc7, 0x04, 0x24, 1, 2, 3, 4])),
    },
    Wrong {
        name: "another MXCSR",
        rule: Inserted,
        make: |it, _, new| {
            exchange_move(it, new, |_, _| Some(vec![0x0f, 0xae, 0x54, 0x24, 0xf8, 0x66, 0x90]))
        },
    },
    Wrong {
        name: "a comparison of numbers, which leaves its mark in MXCSR",
        rule: Inserted,
        make: |it, _, new| {
            // vcmpps zmm-sized poison's place: ymm15, and a byte of padding
            exchange(it, new, 7, |_, _, inserted| {
                (!is_move(inserted)).then(|| vec![0xc4, 0x41, 0x04, 0xc2, 0xff, 0x0f, 0xf5])
            })
        },
    },
    Wrong {
        name: "a number more on the x87 stack",
        rule: Inserted,
        make: |it, _, new| {
            exchange_move(it, new, |_, _| Some(vec![0xd9, 0xeb, 0xd9, 0xeb, 0x0f, 0x1f, 0x00]))
        },
    },
    Wrong {
        name: "an MMX register, which is x87's",
        rule: Inserted,
        make: |it, _, new| {
            exchange_move(it, new, |_, _| Some(vec![0x0f, 0x76, 0xc0, 0x0f, 0x76, 0xc0, 0xf5]))
        },
    },
    Wrong {
        name: "the direction flag inverted",
        rule: Inserted,
        make: |it, _, new| exchange_move(it, new, |_, _| Some(vec![0xfd; 7])),
    },
    Wrong {
        name: "a jump over what was inserted",
        rule: Inserted,
        make: |it, _, new| exchange_move(it, new, |_, _| Some(vec![0xeb, 0x05, 0xb8, 1, 2, 3, 4])),
    },
    Wrong {
        name: "a push that is popped again",
        rule: Inserted,
        make: |it, _, new| {
            exchange_move(it, new, |_, _| Some(vec![0x50, 0x58, 0x50, 0x58, 0x66, 0x66, 0x90]))
        },
    },
    Wrong {
        name: "inserted code that swallows the instruction behind it",
        rule: Inserted,
        make: |it, _, new| {
            let (_, item) = it.items().find(|(_, item)| {
                let at = it.offset(item.copy);
                item.inserted >= 7 && matches!(new[at - 7..at - 5], [0x48 | 0x49, 0xc7])
            })?;
            let at = it.offset(item.copy);
            new[at - 7..at].copy_from_slice(&[0x48, 0xb8, 1, 2, 3, 4, 5]);
            Some(())
        },
    },
    Wrong {
        name: "poison in what is kept over a call that comes back by running on in what lies behind",
        rule: Inserted,
        make: |it, _, new| exchange_at_call(it, new, "leads", Register::RBX),
    },
    Wrong {
        name: "poison in what a function reads that never comes back",
        rule: Inserted,
        make: |it, _, new| exchange_at_call(it, new, "__fortify_fail", Register::RDI),
    },
    Wrong {
        name: "poison in what is kept over a call of a function that is named like one that never comes back",
        rule: Inserted,
        make: |it, _, new| exchange_at_call(it, new, "err", Register::RDI),
    },
    Wrong {
        name: "poison in what only the other part of a function reads",
        rule: Inserted,
        make: |it, _, new| {
            let start = it.named("in_two")?;
            exchange_move(it, new, |_, item| (item.at == start).then(|| fill(Register::RCX)))
        },
    },
    Wrong {
        name: "poison in what only another function writes, which goes on in this one's middle",
        rule: Inserted,
        make: |it, _, new| {
            let start = it.named("entered")?;
            exchange_move(it, new, |unit, item| {
                (unit.start == start && it.pair(item).0 == [0xc3]).then(|| fill(Register::R10))
            })
        },
    },
];
