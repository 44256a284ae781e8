"""What runs the cases of bench/cases: a primary beside scavengers, in several ways, in turns.

`main` is the command line, `cases` reads the data, `rounds` runs what a case asks for, `beside`
starts one primary with its scavengers in one way, `windows` and `whole` measure it,
`figures` makes ratios with intervals of it, and `tables` prints them.

To add a case: a file in bench/cases; its keys are explained in `cases`. To add a program: an entry
in bench/cases/programs.toml. To add a way: its name in `ways`, and what it does in `beside`.
"""
