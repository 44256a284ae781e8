//! The views of all groups of a module, and the passes that go over them.
//!
//! Views take about as much memory as what is found in the end. A small file that is crowded with
//! functions has more of them than its size is worth: some of its groups are decoded by each pass
//! anew.

use super::callees::call_graph;
use super::step::StepEffect;
use super::view::{GroupView, Numbering, View};
use super::{Summary, Work};
use crate::code::groups::{Groups, RelyOn};
use crate::flow::order::bottom_up;
use crate::module::Module;
use iced_x86::InstructionInfoFactory;
use rayon::prelude::*;

/// All groups of a module.
pub(super) struct GroupViews<'a, 'd> {
    pub(super) module: &'a Module<'d>,
    pub(super) groups: &'a Groups,
    relied_on: &'a RelyOn<'a>,
    /// One for each group, as far as there is space. Boxed: a group without one is to take a word.
    views: Vec<Option<Box<GroupView<'a>>>>,
    /// What steps refer to by number.
    effects: Vec<StepEffect>,
    /// For each group, the groups it calls or jumps to, ascending.
    pub(super) calls: Vec<Vec<u32>>,
    /// All groups, callees first; those that call each other are on one level.
    pub(super) levels: Vec<Vec<u32>>,
}

/// How much memory views may take, for each byte of the file: no more than what is found in the
/// end. Groups behind that are decoded by each pass anew.
const VIEWS_PER_BYTE: usize = 8;
/// What a view takes: about so much for each instruction, and besides.
const VIEW_PER_INSTRUCTION: usize = 80;
const VIEW_BESIDES: usize = 600;

impl<'a, 'd> GroupViews<'a, 'd> {
    pub(super) fn of(module: &'a Module<'d>, groups: &'a Groups, relied_on: &'a RelyOn<'a>) -> Self {
        /// Groups that share a numbering while they are decoded.
        const CHUNK: usize = 256;
        let mut left = VIEWS_PER_BYTE * module.image.data().len();
        let mut fits = |members: &Vec<u32>| {
            let insns: usize = members.iter().map(|&unit| module.decoded[unit as usize].insns.len()).sum();
            let size = VIEW_PER_INSTRUCTION * insns + VIEW_BESIDES;
            let fits = size <= left;
            left -= if fits { size } else { 0 };
            fits
        };
        let fit: Vec<bool> = groups.members.iter().map(&mut fits).collect();
        let parts: Vec<(Numbering, Vec<Option<Box<GroupView<'a>>>>)> = groups
            .members
            .par_chunks(CHUNK)
            .zip(fit.par_chunks(CHUNK))
            .map(|(chunk, fit)| {
                let mut numbering = Numbering::default();
                let mut factory = InstructionInfoFactory::new();
                let mut view = |members: &'a Vec<u32>| {
                    Box::new(View::of(module, members, relied_on, &mut numbering, &mut factory))
                };
                let views =
                    chunk.iter().zip(fit).map(|(members, &fits)| fits.then(|| view(members))).collect();
                (numbering, views)
            })
            .collect();
        let mut all = Numbering::default();
        let renumbering: Vec<Vec<u32>> = parts
            .iter()
            .map(|(part, _)| part.effects.iter().map(|&effect| all.number(effect)).collect())
            .collect();
        let views = parts
            .into_par_iter()
            .zip(renumbering)
            .flat_map_iter(|((_, mut views), numbers)| {
                let views_made = views.iter_mut().flatten();
                for step in views_made.flat_map(|view| &mut view.steps).flatten() {
                    step.effect = numbers[step.effect as usize];
                }
                views
            })
            .collect();
        let calls = call_graph(module, groups);
        let levels = bottom_up(&calls);
        Self { module, groups, relied_on, views, effects: all.effects, calls, levels }
    }

    /// A pass over a group.
    pub(super) fn with<T>(
        &self,
        group: usize,
        summaries: &[Summary],
        pass: impl FnOnce(Work<'_, 'd>) -> T,
    ) -> T {
        match &self.views[group] {
            Some(view) => pass(Work::new(self.module, view, &self.effects, summaries)),
            None => self.anew(group, summaries, pass),
        }
    }

    /// The last pass over all groups, which gives back the memory of each view; by group.
    pub(super) fn last<T: Send>(
        mut self,
        summaries: &[Summary],
        pass: impl Fn(usize, Work<'_, 'd>) -> T + Sync,
    ) -> Vec<T> {
        let views = std::mem::take(&mut self.views);
        views
            .into_par_iter()
            .enumerate()
            .with_min_len(8)
            .map(|(group, view)| match view {
                Some(view) => pass(group, Work::new(self.module, &view, &self.effects, summaries)),
                None => self.anew(group, summaries, |work| pass(group, work)),
            })
            .collect()
    }

    fn anew<T>(&self, group: usize, summaries: &[Summary], pass: impl FnOnce(Work<'_, 'd>) -> T) -> T {
        let (mut numbering, mut factory) = (Numbering::default(), InstructionInfoFactory::new());
        let members = &self.groups.members[group];
        let view = View::of(self.module, members, self.relied_on, &mut numbering, &mut factory);
        pass(Work::new(self.module, &view, &numbering.effects, summaries))
    }
}
