//! The figures of a recipe record: what it gains, and what it costs.

use crate::figure::{Better, Figure, Figures};
use records::recipe::Recipe;

use Better::{Higher, Lower};

pub(crate) fn figures(recipe: &Recipe) -> Vec<Figure> {
    let mut figures = Figures::default();
    figures.headline("times as fast with what is kept", Higher, &recipe.faster);
    figures.headline("time as it is", Lower, &recipe.without);
    figures.headline("time with what is kept", Lower, &recipe.with);
    figures.detail("more memory at its peak", Lower, &recipe.memory);
    for tried in &recipe.tried {
        figures.detail(format!("{} {}, times as fast", tried.says, tried.form), Higher, &tried.faster);
    }
    figures.0
}
