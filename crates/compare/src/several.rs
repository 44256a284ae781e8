//! Many figures judged together: of a hundred that are the same, five differ by chance at the level
//! of 5%.

/// Probabilities such that no figure at all is called different by chance with more than the level
/// (Holm): for a gate.
pub(crate) fn holm(p: &[f64]) -> Vec<f64> {
    let order = ascending(p);
    let mut adjusted = vec![1.0; p.len()];
    let mut least: f64 = 0.0;
    for (rank, &at) in order.iter().enumerate() {
        least = least.max((p[at] * (p.len() - rank) as f64).min(1.0));
        adjusted[at] = least;
    }
    adjusted
}

/// Probabilities such that at most a share of the level of those called different is so by chance
/// (Benjamini and Hochberg): for display.
pub(crate) fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let order = ascending(p);
    let mut adjusted = vec![1.0; p.len()];
    let mut most: f64 = 1.0;
    for (rank, &at) in order.iter().enumerate().rev() {
        most = most.min(p[at] * p.len() as f64 / (rank + 1) as f64);
        adjusted[at] = most;
    }
    adjusted
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: &[f64], expected: &[f64]) {
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    }

    #[test]
    fn adjusted_as_by_hand() {
        let p = [0.01, 0.04, 0.03, 0.005];
        close(&holm(&p), &[0.03, 0.06, 0.06, 0.02]);
        close(&benjamini_hochberg(&p), &[0.02, 0.04, 0.04, 0.02]);
        assert!(holm(&[]).is_empty() && benjamini_hochberg(&[]).is_empty());
    }
}
