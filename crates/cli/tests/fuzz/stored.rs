//! Files of samples that other profilers wrote: those of `crates/sampler/fixtures`, damaged.

use crate::random::Random;
use crate::targets::{Case, Made};
use records::profile::FileFormat;
use sampler::stored::{StoredRequest, of_source};
use std::path::Path;

/// The files, with the format that they are read as.
const FILES: [(&[u8], FileFormat); 6] = [
    (include_bytes!("../../../sampler/fixtures/go.pb"), FileFormat::Pprof),
    (include_bytes!("../../../sampler/fixtures/pprof-rs.pb"), FileFormat::Pprof),
    (include_bytes!("../../../sampler/fixtures/gperftools.prof"), FileFormat::Pprof),
    (include_bytes!("../../../sampler/fixtures/opentelemetry.pb"), FileFormat::Otlp),
    (include_bytes!("../../../sampler/fixtures/opentelemetry.json"), FileFormat::Otlp),
    (include_bytes!("../../../sampler/fixtures/async-profiler.folded"), FileFormat::Collapsed),
];

pub(crate) fn spoilt(random: &mut Random) -> Case {
    let choice = random.below(FILES.len());
    let mut data = without_files_of_here(FILES[choice].0);
    for _ in 0..random.below(12) {
        let at = random.below(data.len().max(1));
        let end = (at + 1 + random.below(24)).min(data.len());
        match random.below(6) {
            _ if data.is_empty() => {}
            // Sizes and numbers of any size.
            0 => data[at] |= 0x80,
            1 => data[at..end].fill(0xff),
            2 => data.truncate(at),
            3 => {
                let piece = data[at..end].to_vec();
                let to = random.below(data.len());
                data.splice(to..to, piece);
            }
            4 => {
                data.drain(at..end);
            }
            _ => random.fill(&mut data[at..end]),
        }
    }
    Case { files: vec![data], choice }
}

pub(crate) fn noise(random: &mut Random) -> Case {
    let choice = random.below(FILES.len());
    let mut data = vec![0; random.below(4096)];
    random.fill(&mut data);
    // It goes on behind what tells the format.
    let begin = FILES[choice].0;
    let kept = random.below(40).min(begin.len()).min(data.len());
    data[..kept].copy_from_slice(&begin[..kept]);
    Case { files: vec![data], choice }
}

/// Libraries that are mapped are not read: what they take is not the file's.
fn without_files_of_here(file: &[u8]) -> Vec<u8> {
    const FOLDER: &[u8] = b"/usr/lib/";
    let mut file = file.to_vec();
    while let Some(at) = file.windows(FOLDER.len()).position(|piece| piece == FOLDER) {
        file[at..at + FOLDER.len()].copy_from_slice(b"/not/her/");
    }
    file
}

pub(crate) fn read(case: &Case) -> Option<Made> {
    let format = FILES[case.choice].1;
    let request = StoredRequest { path: Path::new("-"), format, stacks: true, binaries: &[], home: None };
    of_source(&case.files[0][..], &request).ok().map(|_| Made::default())
}
