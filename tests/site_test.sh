#!/usr/bin/env bash
# The documentation as a site: built without a warning (dead links and anchors are some), complete, and with
# nothing from elsewhere, so that it works from file:// too.
subcommand=
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mkdocs=$UNIDLE_SOURCE/.venv/bin/mkdocs
if [ ! -x "$mkdocs" ] || ! "$UNIDLE_SOURCE/.venv/bin/python" -c 'import material' 2>/dev/null; then
  echo "skipped: mkdocs-material is not installed"
  exit 77
fi
NO_MKDOCS_2_WARNING=1 "$mkdocs" build --quiet --strict -f "$UNIDLE_SOURCE/mkdocs.yml" -d "$PWD/site" >out 2>err ||
  fail "mkdocs build --strict: $(cat out err)"
[ ! -s err ] || fail "warnings: $(cat err)"
for page in "$UNIDLE_SOURCE"/docs/*.md; do
  [ -s "site/$(basename "${page%.md}").html" ] || fail "no page of $page"
done
python3 - <<'PY' || fail "links of the site"
import html.parser, pathlib, sys, urllib.parse

class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.loaded, self.ids = [], [], set()

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids.add(values.get("id"))
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        for name in ("src", "href"):
            if values.get(name) and tag in ("script", "img", "link"):
                self.loaded.append((tag, values.get("rel"), values[name]))

site, pages, wrong = pathlib.Path("site").resolve(), {}, []
for path in site.rglob("*.html"):
    pages[path] = Links()
    pages[path].feed(path.read_text(encoding="utf-8"))
assert len(pages) > 30, len(pages)
for path, page in pages.items():
    for tag, kind, address in page.loaded:
        if urllib.parse.urlsplit(address).netloc and kind != "canonical":
            wrong.append(f"{path.name} loads {address}")
    for link in page.links:
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc or path.name == "404.html":
            continue
        target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
        if not target.exists():
            wrong.append(f"{path.name}: {link} is not there")
        elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].ids:
            wrong.append(f"{path.name}: {link} names no place")
print("\n".join(wrong[:20]), file=sys.stderr)
sys.exit(bool(wrong))
PY
finish
