//! Other programs in the waits of one: what they get done, and what it pays. Rounds of the program
//! alone and with the others, in turns, all on one CPU.

use units::{Estimate, Quantity, Rng, Unit, median_interval};

/// What one round showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    pub alone_seconds: f64,
    pub together_seconds: f64,
    /// Look-ups of the program, and of the others while it ran with them.
    pub own: f64,
    pub others: f64,
}

impl Round {
    /// How much longer the program's look-ups took with the others.
    fn slowdown(&self) -> f64 {
        self.together_seconds / self.alone_seconds - 1.0
    }

    /// Look-ups of the others, by its own.
    fn others(&self) -> f64 {
        self.others / self.own
    }

    /// Pace of the program with others, by that alone.
    fn own_pace(&self) -> f64 {
        1.0 / (1.0 + self.slowdown())
    }

    /// That of the others.
    fn others_pace(&self) -> f64 {
        self.others() * self.own_pace()
    }

    fn pace(&self) -> f64 {
        self.own_pace() + self.others_pace()
    }
}

/// Medians over rounds, each a share of what the program does alone.
#[derive(Clone, Debug, PartialEq)]
pub struct HarvestFigures {
    pub slowdown: Quantity,
    pub others: Quantity,
    /// Paces by that of the program alone: its own with others, the others', and both together.
    pub alone: Quantity,
    pub own_pace: Quantity,
    pub others_pace: Quantity,
    pub pace: Quantity,
}

/// Whether the CPU did more than alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gain {
    Pays,
    DoesNotPay,
    NotResolved,
}

impl HarvestFigures {
    pub fn of(rounds: &[Round]) -> Self {
        let figure = |of: fn(&Round) -> f64| {
            if rounds.is_empty() {
                return Quantity::unresolved("no round was run");
            }
            let values: Vec<f64> = rounds.iter().map(of).collect();
            Quantity::measured(median_interval(&values, &mut Rng::new(1)), Unit::Ratio)
        };
        Self {
            slowdown: figure(Round::slowdown),
            others: figure(Round::others),
            alone: Quantity::measured(Estimate::exact(1.0), Unit::Ratio),
            own_pace: figure(Round::own_pace),
            others_pace: figure(Round::others_pace),
            pace: figure(Round::pace),
        }
    }

    /// Others in its waits make no program faster: by as much as it seems to be, and in either
    /// direction, runs differ by chance. Only what the others did beyond that can be a gain.
    pub fn gain(&self) -> Gain {
        let (Some(own), Some(others)) = (self.own_pace.estimate(), self.others_pace.estimate()) else {
            return Gain::NotResolved;
        };
        if others.value <= own.hi - 1.0 {
            return Gain::NotResolved;
        }
        match self.pace.estimate() {
            Some(pace) if pace.lo > 1.0 => Gain::Pays,
            Some(pace) if pace.hi < 1.0 => Gain::DoesNotPay,
            _ => Gain::NotResolved,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(alone_seconds: f64, together_seconds: f64, others: f64) -> Round {
        Round { alone_seconds, together_seconds, own: 1000.0, others }
    }

    #[test]
    fn shares_are_by_the_look_ups_of_the_program_alone() {
        let round = round(1.0, 1.25, 1500.0);
        let shares = [round.own_pace(), round.others_pace(), round.pace()];
        assert!(shares.iter().zip([0.8, 1.2, 2.0]).all(|(is, should)| (is - should).abs() < 1e-9));
    }

    #[test]
    fn figures_are_medians_with_the_range_of_few_rounds() {
        let rounds = [round(1.0, 1.2, 900.0), round(1.0, 1.1, 1000.0), round(1.0, 1.4, 1300.0)];
        let figures = HarvestFigures::of(&rounds);
        let slowdown = figures.slowdown.estimate().unwrap();
        assert!((slowdown.value - 0.2).abs() < 1e-9 && slowdown.lo < 0.11 && slowdown.hi > 0.39);
        assert_eq!(figures.others.estimate().unwrap(), Estimate::new(1.0, 0.9, 1.3));
        assert_eq!(figures.alone.value(), Some(1.0));
        let none = HarvestFigures::of(&[]);
        assert!(none.pace.estimate().is_none() && none.gain() == Gain::NotResolved);
    }

    #[test]
    fn a_gain_is_claimed_only_where_it_is_one() {
        let gain = |rounds: &[Round]| HarvestFigures::of(rounds).gain();
        assert_eq!(gain(&[round(1.0, 1.0, 200.0), round(1.0, 1.1, 500.0)]), Gain::Pays);
        assert_eq!(gain(&[round(1.0, 2.0, 100.0), round(1.0, 2.0, 200.0)]), Gain::DoesNotPay);
        assert_eq!(gain(&[round(1.0, 2.0, 100.0), round(1.0, 1.0, 500.0)]), Gain::NotResolved);
        // A program that was faster with others, which did next to nothing.
        assert_eq!(
            gain(&[round(1.4, 1.0, 3.0), round(1.4, 1.2, 3.0), round(1.4, 0.4, 3.0)]),
            Gain::NotResolved
        );
    }
}
