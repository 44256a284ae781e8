//! What is rewritten again, with other sites, is as if it were the first time.

use crate::common::{self, compile, programs};
use gleaner_twin::{
    Bounds, Knowledge, LoadReach, Mode, Optimisations, Rewriter, Site, SiteChoice, Sites, VectorWidth,
    rewrite,
};
use std::collections::BTreeMap;

fn original() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    let source = programs().into_iter().find(|source| source.ends_with("structs.c")).expect("a program");
    compile(&source, "gcc", &["-O2"], &path).expect("it compiles");
    std::fs::read(path).unwrap()
}

fn sites(which: SiteChoice) -> Sites {
    Sites {
        which,
        width: VectorWidth::of_this_machine(),
        knowledge: Knowledge::OfCallers,
        save_all_at: <_>::default(),
        optimisations: Optimisations::ALL,
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
        sites(SiteChoice::Listed(kept.map(|(_, load)| load).collect()))
    };
    let save_all_at = |every: usize| loads.keys().copied().step_by(every).collect();
    let all = listed(|_| true);
    let few = listed(|number| number % 4 == 0);
    // Only one of the three changes from one step to the next, first.
    let steps = [
        all.clone(),
        Sites { save_all_at: save_all_at(3), ..all.clone() },
        Sites { save_all_at: save_all_at(2), ..all.clone() },
        all.clone(),
        listed(|number| number % 4 != 0),
        few.clone(),
        listed(|_| false),
        few,
        Sites { knowledge: Knowledge::Cautious, ..all.clone() },
        Sites { optimisations: Optimisations { hoisted_saves: false, ..Optimisations::ALL }, ..all.clone() },
        Sites { optimisations: Optimisations { live_registers: false, ..Optimisations::ALL }, ..all.clone() },
        Sites { optimisations: Optimisations { sunk_restores: false, ..Optimisations::ALL }, ..all.clone() },
        Sites {
            optimisations: Optimisations { load_store_balance: false, ..Optimisations::ALL },
            ..all.clone()
        },
        sites(SiteChoice::EveryLoad(LoadReach::Usual)),
        sites(SiteChoice::EveryLoad(LoadReach::All)),
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
    same(Mode::Identity);
    same(Mode::Primary(&steps[1]));
    assert!(different > 20, "{different}");
}
