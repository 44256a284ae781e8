#[test]
fn chase_and_adds() {
    use gleaner_kernels::{Access, Spec, assemble};
    let k = assemble(&Spec::Adds { unroll: 2 }).unwrap();
    assert_eq!(k.code.last(), Some(&0xc3));
    let k = assemble(&Spec::Chase { unroll: 2, access: Access::Read }).unwrap();
    println!("{:x?}", k.code);
    assert_eq!(k.code.last(), Some(&0xc3));
}
