"""A hook of mkdocs: the site holds docs/ alone, so links to other files of the tree become their path."""

import re

OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)]+)\)")


def on_page_markdown(markdown, **_):
    return OUTSIDE.sub(lambda found: f"{found[1]} (`{found[2]}`)", markdown)
