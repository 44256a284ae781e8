//! What prices of a plan come from: the machine record that is named, the one that `gleaner
//! measure` left, what was measured shortly for a harvest, or those of a common machine.

use model::prices::{assumed, from_machine};
use records::ReadError;
use records::machine::Machine;
use records::plan::Prices;
use std::path::{Path, PathBuf};
use store::directory::NO_DIRECTORY;
use store::machine_record;

/// What prices come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Costs {
    /// The record in its usual place, or what was measured for a harvest; else they are assumed.
    #[default]
    Usual,
    Of(PathBuf),
    Assumed,
}

/// The prices of a plan, from a machine record if there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct MachinePrices {
    pub prices: Prices,
    /// Why the record in the usual place could not be used.
    pub damaged: Option<String>,
}

/// Reads prices from the record that was named, which must be sound. Without a name, reads the
/// record in the usual place; if that is damaged, or there is none at all, the prices are assumed.
pub fn read_prices(costs: &Costs) -> Result<MachinePrices, ReadError> {
    let read = |path: &Path| Ok(from_machine(path, &records::read::<Machine>(path)?));
    match costs {
        Costs::Of(path) => return Ok(MachinePrices { prices: read(path)?, damaged: None }),
        Costs::Assumed => return Ok(MachinePrices { prices: assumed("--assume-costs"), damaged: None }),
        Costs::Usual => {}
    }
    let Some(path) = machine_record::usual_place() else {
        let why = format!("no directory for a machine record ({NO_DIRECTORY})");
        return Ok(MachinePrices { prices: assumed(why), damaged: None });
    };
    let short = || machine_record::short().map(|(path, record)| from_machine(&path, &record));
    if !path.exists() {
        let prices = short().unwrap_or_else(|| assumed(format!("no machine record in {}", path.display())));
        return Ok(MachinePrices { prices, damaged: None });
    }
    Ok(match read(&path) {
        // What a harvest measured itself says more than a record without levels.
        Ok(prices) if !prices.knows_misses() => {
            let prices = short().filter(Prices::knows_misses).unwrap_or(prices);
            MachinePrices { prices, damaged: None }
        }
        Ok(prices) => MachinePrices { prices, damaged: None },
        Err(error) => {
            let why = error.to_string();
            MachinePrices { prices: assumed(why.clone()), damaged: Some(why) }
        }
    })
}
