"""Observing a training through the callbacks of its framework. Each module imports its framework; this one
imports none."""
