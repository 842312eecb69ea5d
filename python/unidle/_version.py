# The one place of the version: CMake and the wheel read it from here.
__version__ = "0.1.0"
