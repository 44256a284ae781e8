//! The order in which functions are looked at: callees first.

/// Nodes of a graph by levels: each node comes after all nodes it points to, but for those it forms
/// a cycle with, which are on its own level. Nodes of a level do not otherwise depend on each
/// other.
pub fn bottom_up(graph: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let component = components(graph);
    let count = component.iter().map(|&c| c as usize + 1).max().unwrap_or(0);
    let mut nodes: Vec<Vec<u32>> = vec![Vec::new(); count];
    for (node, &component) in component.iter().enumerate() {
        nodes[component as usize].push(node as u32);
    }
    // Components are numbered callees first.
    let mut level = vec![0usize; count];
    let mut levels: Vec<Vec<u32>> = Vec::new();
    for number in 0..count {
        let below = nodes[number].iter().flat_map(|&node| &graph[node as usize]);
        level[number] = below
            .map(|&next| component[next as usize] as usize)
            .filter(|&next| next != number)
            .map(|next| level[next] + 1)
            .max()
            .unwrap_or(0);
        if levels.len() <= level[number] {
            levels.resize(level[number] + 1, Vec::new());
        }
        levels[level[number]].extend(&nodes[number]);
    }
    levels
}

/// The strongly connected component of each node (Tarjan, without recursion), numbered in the order
/// of completion.
fn components(graph: &[Vec<u32>]) -> Vec<u32> {
    const UNSEEN: u32 = u32::MAX;
    let mut index = vec![UNSEEN; graph.len()];
    let mut low = vec![0u32; graph.len()];
    let mut component = vec![UNSEEN; graph.len()];
    let (mut stack, mut path): (Vec<u32>, Vec<(u32, usize)>) = (Vec::new(), Vec::new());
    let (mut next_index, mut next_component) = (0, 0);
    for root in 0..graph.len() as u32 {
        if index[root as usize] != UNSEEN {
            continue;
        }
        path.push((root, 0));
        while let Some(&mut (node, ref mut edge)) = path.last_mut() {
            let at = node as usize;
            if *edge == 0 {
                index[at] = next_index;
                low[at] = next_index;
                next_index += 1;
                stack.push(node);
            }
            if let Some(&next) = graph[at].get(*edge) {
                *edge += 1;
                if index[next as usize] == UNSEEN {
                    path.push((next, 0));
                } else if component[next as usize] == UNSEEN {
                    low[at] = low[at].min(index[next as usize]);
                }
                continue;
            }
            if *edge == 0 {
                *edge = 1;
            }
            path.pop();
            if let Some(&(above, _)) = path.last() {
                low[above as usize] = low[above as usize].min(low[at]);
            }
            if low[at] == index[at] {
                while let Some(member) = stack.pop() {
                    component[member as usize] = next_component;
                    if member == node {
                        break;
                    }
                }
                next_component += 1;
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callees_come_first_and_cycles_together() {
        // 0 -> 1 -> 2 -> 1, 2 -> 3; 4 -> 3; 5 alone
        let graph = [vec![1], vec![2], vec![1, 3], vec![], vec![3], vec![5]];
        let mut levels = bottom_up(&graph);
        for level in &mut levels {
            level.sort_unstable();
        }
        assert_eq!(levels, [vec![3, 5], vec![1, 2, 4], vec![0]]);
        assert!(bottom_up(&[]).is_empty());
    }
}
