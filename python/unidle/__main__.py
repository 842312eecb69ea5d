"""`python -m unidle` is the program `unidle`."""

from unidle._program import main

main()
