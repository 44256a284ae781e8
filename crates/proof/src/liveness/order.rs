//! Which bodies make one function, and the order in which functions are looked at: callees first.

use super::body::{Body, Last, Out};
use rayon::prelude::*;

/// Functions, as lists of the bodies they are made of.
pub(crate) struct Functions {
    pub(crate) members: Vec<Vec<u32>>,
    pub(crate) of_body: Vec<u32>,
    /// The functions that each one calls, or goes to in its own stead.
    pub(crate) calls: Vec<Vec<u32>>,
}

impl Functions {
    /// Bodies that lead into each other's middles, by jumps or exceptions, are one function.
    pub(crate) fn of(bodies: &[Body]) -> Self {
        let mut above: Vec<u32> = (0..bodies.len() as u32).collect();
        let find = |above: &mut [u32], mut body: u32| {
            while above[body as usize] != body {
                above[body as usize] = above[above[body as usize] as usize];
                body = above[body as usize];
            }
            body
        };
        for (own, body) in bodies.iter().enumerate() {
            let outs = body.outs.iter().filter_map(|out| match out {
                Out::Inside(place) => Some(place.body),
                _ => None,
            });
            let pads = body.pads.iter().map(|pad| pad.body).filter(|&body| (body as usize) < bodies.len());
            for other in outs.chain(pads) {
                let (a, b) = (find(&mut above, own as u32), find(&mut above, other));
                above[a.max(b) as usize] = a.min(b);
            }
        }
        let mut functions = Self { members: Vec::new(), of_body: vec![0; bodies.len()], calls: Vec::new() };
        for body in 0..bodies.len() as u32 {
            let first = find(&mut above, body);
            if first == body {
                functions.of_body[body as usize] = functions.members.len() as u32;
                functions.members.push(vec![body]);
            } else {
                let function = functions.of_body[first as usize];
                functions.of_body[body as usize] = function;
                functions.members[function as usize].push(body);
            }
        }
        functions.calls = functions.calls(bodies);
        functions
    }

    fn calls(&self, bodies: &[Body]) -> Vec<Vec<u32>> {
        let of = |members: &Vec<u32>| {
            let mut calls = Vec::new();
            for body in members.iter().map(|&body| &bodies[body as usize]) {
                calls.extend(body.blocks.iter().filter_map(|block| match block.last {
                    Last::Call(other) | Last::DeadCall(other) => Some(self.of_body[other as usize]),
                    _ => None,
                }));
                calls.extend(body.outs.iter().filter_map(|out| match out {
                    Out::Tail(other) => Some(self.of_body[*other as usize]),
                    _ => None,
                }));
            }
            calls.sort_unstable();
            calls.dedup();
            calls
        };
        self.members.par_iter().with_min_len(64).map(of).collect()
    }

    /// Functions by levels: each calls only such on lower levels, but for those that it forms a
    /// knot with by calling each other, which are on its own.
    pub(crate) fn levels(&self) -> Vec<Vec<u32>> {
        Walk::all(&self.calls).levels
    }
}

/// For each node of a graph, the number of its knot: of those that lead to it and that it leads to.
pub(crate) fn knots(graph: &[Vec<u32>]) -> Vec<u32> {
    Walk::all(graph).knot
}

/// Tarjan's search for knots, without recursion.
struct Walk<'c> {
    calls: &'c [Vec<u32>],
    /// In the order of discovery, from 1 on.
    number: Vec<u32>,
    low: Vec<u32>,
    /// Of those that are done.
    level: Vec<Option<u32>>,
    /// Likewise: which of all knots, by the order in which they are done.
    knot: Vec<u32>,
    knots: u32,
    open: Vec<u32>,
    next: u32,
    levels: Vec<Vec<u32>>,
}

impl<'c> Walk<'c> {
    fn all(calls: &'c [Vec<u32>]) -> Self {
        let mut walk = Self {
            calls,
            number: vec![0; calls.len()],
            low: vec![0; calls.len()],
            level: vec![None; calls.len()],
            knot: vec![0; calls.len()],
            knots: 0,
            open: Vec::new(),
            next: 0,
            levels: Vec::new(),
        };
        for root in 0..calls.len() {
            walk.from(root);
        }
        walk
    }

    fn from(&mut self, root: usize) {
        let mut path: Vec<(usize, usize)> = Vec::new();
        if self.number[root] == 0 {
            self.enter(root, &mut path);
        }
        while let Some(last) = path.last_mut() {
            let at = last.0;
            if let Some(&to) = self.calls[at].get(last.1) {
                last.1 += 1;
                let to = to as usize;
                if self.number[to] == 0 {
                    self.enter(to, &mut path);
                } else if self.level[to].is_none() {
                    self.low[at] = self.low[at].min(self.number[to]);
                }
                continue;
            }
            path.pop();
            if let Some(&(above, _)) = path.last() {
                self.low[above] = self.low[above].min(self.low[at]);
            }
            if self.low[at] == self.number[at] {
                self.close(at);
            }
        }
    }
    fn enter(&mut self, at: usize, path: &mut Vec<(usize, usize)>) {
        self.next += 1;
        (self.number[at], self.low[at]) = (self.next, self.next);
        self.open.push(at as u32);
        path.push((at, 0));
    }
    fn close(&mut self, at: usize) {
        let first = self.open.iter().rposition(|&open| open as usize == at).unwrap_or(0);
        let knot = self.open.split_off(first);
        let below = knot.iter().flat_map(|&function| &self.calls[function as usize]);
        let level = below.filter_map(|&to| self.level[to as usize]).max().map_or(0, |level| level + 1);
        for &function in &knot {
            self.level[function as usize] = Some(level);
            self.knot[function as usize] = self.knots;
        }
        self.knots += 1;
        if self.levels.len() <= level as usize {
            self.levels.resize(level as usize + 1, Vec::new());
        }
        self.levels[level as usize].extend(knot);
    }
}
