//! The README's Rust lines are those of `examples/readme.rs`, which is compiled with the tests.

#[test]
fn the_rust_lines_of_the_readme_are_the_compiled_example() {
    let readme = include_str!("../../../README.md");
    let example: Vec<&str> = include_str!("../examples/readme.rs").lines().map(str::trim).collect();
    let block = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a Rust block");
    assert!(block.lines().count() > 8);
    for line in block.lines().map(str::trim).filter(|line| !line.is_empty()) {
        assert!(example.contains(&line), "not in examples/readme.rs: {line}");
    }
}
