//! Which loads of a loop wait for one another, and which only wait for those.

use crate::built::assembled;
use gleaner_image::Module;
use gleaner_image::loads::{Classes, Unit};

const SOURCE: &str = r"
    .text
    .macro function name
    .globl \name
    .type \name, @function
    \name:
    .cfi_startproc
    .endm
    .macro end name
    dec %edx
    jne \name
    ret
    .cfi_endproc
    .size \name, . - \name
    .endm

    function by_a_table
    mov (%rdi), %rax
    mov (%rsi,%rax,8), %rdi
    end by_a_table

    function two_lists
    mov (%rdi), %rdi
    mov (%rsi), %rsi
    end two_lists

    function a_list_and_its_data
    mov (%rdi), %rdi
    mov 8(%rdi), %rax
    end a_list_and_its_data

    function an_array
    mov (%rdi), %rax
    add $8, %rdi
    end an_array
";

#[test]
fn loads_of_one_circle_are_told_from_others() {
    let data = assembled(SOURCE);
    let module = Module::analyse(&data, None).expect("a sound file");
    let circles = |name: &str| {
        let symbol = module.symbols.all().iter().find(|symbol| symbol.name == name.as_bytes());
        let symbol = symbol.expect("a symbol");
        let unit = Unit::of(&module, module.unit_at(symbol.address).expect("a unit"));
        let mut classes = Classes::new(&unit, false);
        [0, 1].map(|load| classes.circle(load))
    };
    assert_eq!(circles("by_a_table"), [0, 0]);
    assert_eq!(circles("two_lists"), [0, 1]);
    assert_eq!(circles("a_list_and_its_data"), [0, 1]);
    assert_eq!(circles("an_array")[0], 0);
}
