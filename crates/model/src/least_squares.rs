//! Least squares with coefficients that are not negative: the active set method of Lawson and
//! Hanson on the normal equations.

/// The sums that the method needs: `AᵀA`, `Aᵀb` and `bᵀb`.
pub(crate) struct Normal {
    square: Vec<Vec<f64>>,
    right: Vec<f64>,
    target: f64,
}

impl Normal {
    pub(crate) fn new(columns: usize) -> Self {
        Self { square: vec![vec![0.0; columns]; columns], right: vec![0.0; columns], target: 0.0 }
    }

    pub(crate) fn from_sums(square: Vec<Vec<f64>>, right: Vec<f64>, target: f64) -> Self {
        Self { square, right, target }
    }

    pub(crate) fn add(&mut self, row: &[f64], target: f64) {
        for (i, &x) in row.iter().enumerate() {
            for (sum, &y) in self.square[i].iter_mut().zip(row) {
                *sum += x * y;
            }
            self.right[i] += x * target;
        }
        self.target += target * target;
    }

    /// The sums where each column of this one counts as the sum of others, by its row of `map`.
    pub(crate) fn combined(&self, map: &[Vec<f64>]) -> Self {
        let columns = map.first().map_or(0, Vec::len);
        let mut of = Self::new(columns);
        for (i, from) in map.iter().enumerate() {
            for (a, &x) in from.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                of.right[a] += x * self.right[i];
                for (j, to) in map.iter().enumerate() {
                    for (sum, &y) in of.square[a].iter_mut().zip(to) {
                        *sum += x * y * self.square[i][j];
                    }
                }
            }
        }
        of.target = self.target;
        of
    }

    fn residual(&self, x: &[f64]) -> f64 {
        let mut sum = self.target;
        for (i, &xi) in x.iter().enumerate() {
            let product: f64 = self.square[i].iter().zip(x).map(|(a, b)| a * b).sum();
            sum += xi * (product - 2.0 * self.right[i]);
        }
        sum.max(0.0)
    }

    /// The coefficients, and the sum of squared residuals.
    pub(crate) fn solve(&self) -> (Vec<f64>, f64) {
        let n = self.right.len();
        let (mut x, mut free) = (vec![0.0; n], vec![false; n]);
        // Each round frees one coefficient; the bound only guards against rounding errors.
        for _ in 0..3 * n {
            let gradient = |i: usize| {
                let product: f64 = self.square[i].iter().zip(&x).map(|(a, b)| a * b).sum();
                (self.right[i] - product) / self.square[i][i].sqrt().max(f64::MIN_POSITIVE)
            };
            let steepest = (0..n).filter(|&i| !free[i]).max_by(|&a, &b| gradient(a).total_cmp(&gradient(b)));
            let Some(next) = steepest.filter(|&i| gradient(i) > 1e-10) else { break };
            free[next] = true;
            while let Some(trial) = self.solve_free(&free) {
                let blocked = |i: &usize| free[*i] && trial[*i] <= 0.0;
                let step = (0..n).filter(blocked).map(|i| x[i] / (x[i] - trial[i])).fold(1.0, f64::min);
                let whole = !(0..n).any(|i| blocked(&i));
                for i in 0..n {
                    x[i] += step * (trial[i] - x[i]);
                }
                if whole {
                    break;
                }
                for i in 0..n {
                    if free[i] && trial[i] <= 0.0 && x[i] <= 1e-12 {
                        (free[i], x[i]) = (false, 0.0);
                    }
                }
            }
        }
        let residual = self.residual(&x);
        (x, residual)
    }

    /// The solution in the free coefficients, the others being zero: Cholesky's decomposition.
    fn solve_free(&self, free: &[bool]) -> Option<Vec<f64>> {
        let index: Vec<usize> = (0..free.len()).filter(|&i| free[i]).collect();
        let n = index.len();
        let mut lower = vec![vec![0.0; n]; n];
        for i in 0..n {
            for j in 0..=i {
                let known: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
                let rest = self.square[index[i]][index[j]] - known;
                if i == j {
                    // Columns that are nearly equal would make it singular.
                    let diagonal = self.square[index[i]][index[i]];
                    lower[i][i] = rest.max(diagonal * 1e-12).sqrt();
                    if lower[i][i] == 0.0 {
                        return None;
                    }
                } else {
                    lower[i][j] = rest / lower[j][j];
                }
            }
        }
        let mut y = vec![0.0; n];
        for i in 0..n {
            let known: f64 = (0..i).map(|k| lower[i][k] * y[k]).sum();
            y[i] = (self.right[index[i]] - known) / lower[i][i];
        }
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|k| lower[k][i] * y[k]).sum();
            y[i] = (y[i] - known) / lower[i][i];
        }
        let mut x = vec![0.0; free.len()];
        for (i, value) in index.into_iter().zip(y) {
            x[i] = value;
        }
        Some(x)
    }
}
