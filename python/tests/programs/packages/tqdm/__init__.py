"""The parts of a progress bar that are patched."""
