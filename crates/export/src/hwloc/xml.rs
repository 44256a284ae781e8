//! The tree and the attributes as text, in version 2 of hwloc's format.

use super::attributes::Attribute;
use super::objects::Object;
use std::fmt::Write;

pub(super) fn text(machine: &Object, attributes: &[Attribute]) -> String {
    let mut text = String::from(HEAD);
    object(&mut text, machine, 1);
    for attribute in attributes {
        let _ = writeln!(text, "  <memattr name=\"{}\" flags=\"{}\">", attribute.name, attribute.flags);
        for value in &attribute.values {
            let Some(node) = machine.node(value.target) else { continue };
            let _ = writeln!(
                text,
                "    <memattr_value target_obj_type=\"NUMANode\" target_obj_gp_index=\"{}\" value=\"{}\" \
                 initiator_cpuset=\"{}\"/>",
                node.number,
                value.value,
                value.initiator.text()
            );
        }
        text.push_str("  </memattr>\n");
    }
    text.push_str("</topology>\n");
    text
}

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n\
                    <topology version=\"2.0\">\n";

fn object(text: &mut String, object: &Object, depth: usize) {
    let indent = "  ".repeat(depth);
    let (cpus, nodes) = (object.cpus.text(), object.nodes.text());
    let _ = write!(
        text,
        "{indent}<object type=\"{}\" os_index=\"{}\" cpuset=\"{cpus}\" complete_cpuset=\"{cpus}\" \
         nodeset=\"{nodes}\" complete_nodeset=\"{nodes}\" gp_index=\"{}\"",
        object.kind, object.os_index, object.number
    );
    if object.kind == "Machine" {
        let _ = write!(text, " allowed_cpuset=\"{cpus}\" allowed_nodeset=\"{nodes}\"");
    }
    for (name, value) in &object.attributes {
        let _ = write!(text, " {name}=\"{value}\"");
    }
    if object.children.is_empty() {
        text.push_str("/>\n");
        return;
    }
    text.push_str(">\n");
    object.children.iter().for_each(|child| self::object(text, child, depth + 1));
    let _ = writeln!(text, "{indent}</object>");
}
