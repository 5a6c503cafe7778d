"""Looks for trainings that meet a theorem's conditions and violate what it says, and for the number that a user needs.

`space` says what is varied, `problem` makes points of it and measures them, `engine` proposes points, `shrink` and `decide`
turn a violation into a counter-example or drop it, `refute`, `frontier` and `plan` are the commands.
"""
