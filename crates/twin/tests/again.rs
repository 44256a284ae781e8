//! What is rewritten again, with other sites, is as if it were the first time.

mod common;

use common::{compile, programs};
use gleaner_twin::{
    Bounds, Knowledge, Mode, Reach, Rewriter, Site, Sites, Spares, VectorWidth, Which, rewrite,
};
use std::collections::BTreeMap;

fn original() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    let source = programs().into_iter().find(|source| source.ends_with("structs.c")).expect("a program");
    compile(&source, "gcc", &["-O2"], &path).expect("it compiles");
    std::fs::read(path).unwrap()
}

fn sites(which: Which) -> Sites {
    Sites {
        which,
        width: VectorWidth::of_this_machine(),
        knowledge: Knowledge::OfCallers,
        wary: <_>::default(),
        spares: Spares::ALL,
        spins: <_>::default(),
    }
}

#[test]
fn only_what_other_sites_change_is_done_anew() {
    let original = original();
    let copy = rewrite(&original, None, Mode::Identity).unwrap().bytes;
    // All instructions: those that load nothing are left out, and told of.
    let loads: BTreeMap<u64, Site> = common::units(&copy)
        .iter()
        .flat_map(|unit| unit.pairs.iter().map(|pair| (pair.original, Site::default())))
        .collect();
    assert!(loads.len() > 100, "{}", loads.len());
    let listed = |keep: fn(usize) -> bool| {
        let kept = loads.clone().into_iter().enumerate().filter(|(number, _)| keep(*number));
        sites(Which::Listed(kept.map(|(_, load)| load).collect()))
    };
    let wary = |every: usize| loads.keys().copied().step_by(every).collect();
    let all = listed(|_| true);
    let few = listed(|number| number % 4 == 0);
    // Only one of the three changes from one step to the next, first.
    let steps = [
        all.clone(),
        Sites { wary: wary(3), ..all.clone() },
        Sites { wary: wary(2), ..all.clone() },
        all.clone(),
        listed(|number| number % 4 != 0),
        few.clone(),
        Sites { spins: loads.keys().copied().take(9).collect(), ..few.clone() },
        few.clone(),
        listed(|_| false),
        few,
        Sites { knowledge: Knowledge::Cautious, ..all.clone() },
        Sites { spares: Spares { ahead: false, ..Spares::ALL }, ..all.clone() },
        Sites { spares: Spares { dead: false, ..Spares::ALL }, ..all.clone() },
        Sites { spares: Spares { left: false, ..Spares::ALL }, ..all.clone() },
        Sites { spares: Spares { even: false, ..Spares::ALL }, ..all.clone() },
        sites(Which::EveryLoad(Reach::Usual)),
        sites(Which::EveryLoad(Reach::All)),
        all,
    ];
    let bounds = |quantum| Bounds { quantum, ..Bounds::default() };
    let mut again = Rewriter::of(&original, None).unwrap();
    let mut last = Vec::new();
    let mut different = 0;
    let mut same = |mode: Mode<'_>| {
        let (anew, first) = (again.rewrite(mode).unwrap(), rewrite(&original, None, mode).unwrap());
        assert!(anew.bytes == first.bytes, "{mode:?}");
        assert_eq!(anew.coverage.harvest, first.coverage.harvest, "{mode:?}");
        different += usize::from(last != anew.bytes);
        last = anew.bytes;
    };
    for step in &steps {
        same(Mode::Primary(step));
    }
    for step in &steps {
        same(Mode::Scavenger(step, bounds(100)));
    }
    same(Mode::Scavenger(&steps[0], bounds(20)));
    same(Mode::Sibling(&steps[1], bounds(20)));
    same(Mode::Identity);
    same(Mode::Primary(&steps[1]));
    assert!(different > 20, "{different}");
}
