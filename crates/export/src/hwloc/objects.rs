//! The tree of objects: packages, nodes, caches, cores, processing units, one inside the other by
//! their CPUs.

use super::set::Set;
use records::host::{Cache, CacheKind, Host};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Object {
    /// As hwloc calls it.
    pub(super) kind: &'static str,
    pub(super) os_index: u32,
    pub(super) cpus: Set,
    pub(super) nodes: Set,
    /// Further attributes of its element.
    pub(super) attributes: Vec<(&'static str, String)>,
    pub(super) children: Vec<Object>,
    /// Its number in the file, which memory attributes refer to.
    pub(super) number: u32,
}

impl Object {
    fn new(kind: &'static str, os_index: u32, cpus: Set) -> Self {
        let (nodes, attributes, children) = (Set::default(), Vec::new(), Vec::new());
        Self { kind, os_index, cpus, nodes, attributes, children, number: 0 }
    }

    /// Puts an object inside the smallest one of the tree that has all its CPUs. Of equal sets the
    /// one that came first is outside.
    fn insert(&mut self, object: Self) {
        match self
            .children
            .iter_mut()
            .find(|child| child.kind != "NUMANode" && child.cpus.includes(&object.cpus))
        {
            Some(child) => child.insert(object),
            None => self.children.push(object),
        }
    }

    /// Memory hangs from the outermost object with exactly its CPUs.
    fn hang(&mut self, node: Self) {
        let mut inside = self.children.iter_mut().filter(|child| child.kind != "NUMANode");
        let smaller = inside.find(|child| !node.cpus.is_empty() && child.cpus.includes(&node.cpus));
        match smaller {
            Some(child) if self.cpus != node.cpus => child.hang(node),
            _ => {
                let memory = self.children.iter().filter(|child| child.kind == "NUMANode").count();
                self.children.insert(memory, node);
            }
        }
    }

    fn finish(&mut self, nodes: &[(u32, Set)], next: &mut u32) {
        self.number = *next;
        *next += 1;
        if self.kind != "NUMANode" {
            let local = nodes.iter().filter(|(_, cpus)| cpus.meets(&self.cpus)).map(|(id, _)| *id);
            self.nodes = local.collect();
        }
        self.children.iter_mut().for_each(|child| child.finish(nodes, next));
    }

    /// The node of this number, in this object or below.
    pub(super) fn node(&self, id: u32) -> Option<&Self> {
        let itself = (self.kind == "NUMANode" && self.os_index == id).then_some(self);
        itself.or_else(|| self.children.iter().find_map(|child| child.node(id)))
    }
}

/// None where no CPU is known.
pub(super) fn tree(host: &Host) -> Option<Object> {
    let online: Set = host.cpus.iter().filter(|cpu| cpu.online).map(|cpu| cpu.id).collect();
    online.first()?;
    let mut machine = Object::new("Machine", 0, online.clone());
    let nodes = nodes(host, &online);
    // Larger sets first; of equal ones, the order of the levels.
    let mut objects = packages(host);
    let known: Vec<Set> =
        objects.iter().map(|package| package.cpus.clone()).chain([online.clone()]).collect();
    let caches = host.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction);
    let mut caches: Vec<&Cache> = caches.collect();
    caches.sort_by_key(|cache| std::cmp::Reverse(cache.level));
    objects.extend(caches.into_iter().filter_map(|cache| object_of(cache, &online)));
    let alike = |cpus: &Set| objects.iter().any(|object| object.cpus == *cpus) || known.contains(cpus);
    let groups = nodes.iter().filter(|node| !node.cpus.is_empty() && !alike(&node.cpus));
    let groups: Vec<Object> =
        groups.map(|node| Object::new("Group", node.os_index, node.cpus.clone())).collect();
    objects.extend(groups);
    objects.sort_by_key(|object| std::cmp::Reverse(object.cpus.len()));
    objects.extend(cores(host));
    for cpu in host.cpus.iter().filter(|cpu| cpu.online) {
        objects.push(Object::new("PU", cpu.id, Set::from_iter([cpu.id])));
    }
    for object in objects {
        machine.insert(object);
    }
    let by_node: Vec<(u32, Set)> = nodes.iter().map(|node| (node.os_index, node.cpus.clone())).collect();
    for node in nodes {
        machine.hang(node);
    }
    machine.finish(&by_node, &mut 1);
    machine.nodes = by_node.iter().map(|(id, _)| *id).collect();
    Some(machine)
}

/// A host without nodes is one node.
fn nodes(host: &Host, online: &Set) -> Vec<Object> {
    let node = |id: u32, cpus: Set, bytes: Option<u64>| {
        let mut node = Object::new("NUMANode", id, cpus);
        node.nodes = Set::from_iter([id]);
        node.attributes.extend(bytes.map(|bytes| ("local_memory", bytes.to_string())));
        node
    };
    if host.nodes.is_empty() {
        return vec![node(0, online.clone(), host.memory.total.value().map(|bytes| bytes.0))];
    }
    let each = host.nodes.iter().map(|known| {
        let cpus: Set = known.cpus.iter().collect();
        node(known.id, cpus.within(online), known.total.value().map(|bytes| bytes.0))
    });
    each.collect()
}

fn packages(host: &Host) -> Vec<Object> {
    grouped(host, "Package", |cpu| cpu.package.value().map(|package| (package, 0)))
}

fn cores(host: &Host) -> Vec<Object> {
    grouped(host, "Core", |cpu| Some((cpu.core.value()?, cpu.package.value().unwrap_or(0))))
}

/// One object for each value of this key; its first part is the object's own number.
fn grouped(
    host: &Host,
    kind: &'static str,
    key: impl Fn(&records::host::Cpu) -> Option<(u32, u32)>,
) -> Vec<Object> {
    let mut keys: Vec<(u32, u32)> = Vec::new();
    let online = || host.cpus.iter().filter(|cpu| cpu.online);
    for known in online().filter_map(&key) {
        if !keys.contains(&known) {
            keys.push(known);
        }
    }
    let members =
        |wanted: (u32, u32)| online().filter(|cpu| key(cpu) == Some(wanted)).map(|cpu| cpu.id).collect();
    keys.into_iter().map(|key| Object::new(kind, key.0, members(key))).collect()
}

fn object_of(cache: &Cache, online: &Set) -> Option<Object> {
    let kind = match cache.level {
        1 => "L1Cache",
        2 => "L2Cache",
        3 => "L3Cache",
        4 => "L4Cache",
        _ => return None,
    };
    let cpus: Set = cache.shared_by.iter().collect::<Set>().within(online);
    let mut object = Object::new(kind, cpus.first()?, cpus);
    let size = cache.size.value().map_or(0, |bytes| bytes.0);
    // hwloc's numbers: 0 unified, 1 data.
    let holds = if cache.kind == CacheKind::Data { "1" } else { "0" };
    object.attributes = vec![
        ("cache_size", size.to_string()),
        ("depth", cache.level.to_string()),
        ("cache_linesize", cache.line.value().map_or(0, |bytes| bytes.0).to_string()),
        ("cache_associativity", cache.ways.value().unwrap_or(0).to_string()),
        ("cache_type", holds.to_owned()),
    ];
    Some(object)
}
