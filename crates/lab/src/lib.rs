//! The lab: runs a measuring kernel and says how far its figure can be trusted.
//!
//! From the bottom up:
//!
//! - [`stop`]: one flag that Ctrl-C sets; [`inherited`]: signals and descriptors at the start
//! - [`out_of_memory`]: what is said where memory ends
//! - [`starter`]: a process that becomes another program, which finds these as they were
//! - [`pin`]: threads that stay on a CPU; [`claim`]: other measurements leave it alone
//! - [`tsc`]: the time stamp counter
//! - [`code`]: machine code made executable; `fault`: which may die without ending the run
//! - [`arena`]: memory whose pages are verified; [`chain`]: pointer cycles in it, checked
//! - [`rigs`]: a kernel with its memory, safe to run
//! - [`core_clock`]: core cycles per tick; `core_width`: does another hyperthread use this core
//! - [`interference`]: what else happened during a block
//! - [`campaign`]: blocks of all settings, interleaved at random, voided and repeated
//! - [`crew`]: several threads at once
//! - [`stats`] and [`grade`]: intervals, and the run's verdict on itself
//! - [`settings`] and [`watchdog`]: host settings that are put back whatever happens
//!
//! ```no_run
//! use gleaner_lab::arena::{PageKind, Placement};
//! use gleaner_lab::{campaign, chain, code::Loaded, rigs::ChaseRig, rng::Rng, stop::Stop, tsc};
//! use kernels::{Access, Spec};
//! use std::time::Duration;
//!
//! let ticks_per_second = tsc::calibrate(Duration::from_millis(30)).value;
//! let mut rng = Rng::new(1);
//! let layout = chain::Layout::random(units::Bytes::kib(64), 64);
//! let placement = Placement::FirstTouch;
//! let chain = chain::build(&[layout], PageKind::Small, &placement, &mut rng)?.remove(0);
//! let kernel = Loaded::of(&Spec::Chase { unroll: 64, access: Access::Read })?;
//! let warm_nodes = chain.nodes();
//! let rig = ChaseRig::new(kernel, chain, warm_nodes, 10_000_000);
//!
//! let mut station = campaign::Station::new(0, ticks_per_second)?;
//! let mut executor = station.with(vec![Box::new(rig)], Duration::from_micros(500));
//! let second = Duration::from_secs(1);
//! let goal = campaign::CampaignGoal { blocks: 31, time: second, most: second, whole_core: false };
//! let result =
//!     campaign::run(&mut executor, &goal, &mut rng, Stop::never(), &mut units::Silent);
//! println!("{:?} cycles a load", result.series[0].cycles(&mut rng));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The example `chase` does the same with an area of any size, and prints the figures.
//!
//! `unsafe` lives in `sys`, `inherited`, `starter`, `code`, `fault`, `arena`, `chain`, `tsc`,
//! `core_clock`, `core_width` and `rigs`; everything above them is safe code.
//!
//! To add a rig: a file in `rigs/` that checks in its constructor what the kernel's contract
//! demands.

pub mod arena;
pub mod campaign;
pub mod chain;
pub mod child;
pub mod claim;
pub mod code;
pub mod core_clock;
mod core_width;
pub mod crew;
mod fault;
pub mod grade;
pub mod inherited;
pub mod interference;
pub mod out_of_memory;
pub mod pin;
pub mod probe;
pub mod rigs;
pub mod rng;
mod setting_place;
pub mod settings;
pub mod smt;
pub mod starter;
pub mod stats;
pub mod stop;
mod sys;
pub mod tsc;
pub mod watchdog;

pub use sys::{SysError, effective_uid, peak_memory};
