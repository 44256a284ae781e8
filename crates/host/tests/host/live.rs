//! The machine the tests run on: what must hold on any Linux.

use std::path::Path;

#[test]
fn this_machine_can_be_read() {
    let host = gleaner_host::read(Path::new("/"));
    let usable = host.usable_cpus();
    assert!(!usable.is_empty(), "{:?}", host.topology);
    assert!(usable.iter().all(|c| host.cpu(*c).is_some_and(|c| c.online)));
    let base = host.pages.base.value().expect("the auxiliary vector always has the page size");
    assert!(base.0.is_power_of_two() && base.0 >= 4096, "{base}");
    assert!(host.memory.usable().is_some_and(|m| m.0 > 0), "{:?}", host.memory);
    for cpu in usable {
        for cache in host.caches_of(cpu) {
            assert!(cache.shared_by.contains(cpu));
        }
    }
    for node in &host.nodes {
        assert!(node.distances.get().is_none_or(|d| d.len() == host.nodes.len()), "{node:?}");
    }
    let text = serde_json::to_string(&host).unwrap();
    assert_eq!(serde_json::from_str::<gleaner_host::Host>(&text).unwrap(), host);
    if std::env::var_os("GLEANER_SHOW").is_some() {
        println!("{}", serde_json::to_string_pretty(&host).unwrap());
    }
}
