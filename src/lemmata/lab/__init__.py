"""Carries a sweep out. Nothing is imported here: a worker must set its threads before anything heavy is loaded."""
