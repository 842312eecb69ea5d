#!/usr/bin/env bash
# What people read in Chinese: no English sentence is left in it, and JSON does not change with the language.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
"$UNIDLE_BIN/../tests/unidle_sample_records" "$folder" || fail "no records"

# page_text FILE: what a page shows, one line a text, without code and the style sheet.
page_text() {
  python3 - "$1" <<'PY'
import html.parser
import sys


class Text(html.parser.HTMLParser):
    hidden = 0

    def handle_starttag(self, tag, attributes):
        self.hidden += tag in ("style", "code")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("style", "code")

    def handle_data(self, data):
        if not self.hidden and data.strip():
            print(data.strip())


Text().feed(open(sys.argv[1], encoding="utf-8").read())
PY
}

# same_json CODE ARGUMENTS...: the command's JSON is the same in both languages.
same_json() {
  expect "$@" --format json --lang en
  cp out english
  expect "$@" --format json --lang zh
  cmp -s english out || fail "JSON differs with the language: ${*:2}"
}

export COLUMNS=100

for pair in "superres-naive superres-tuned" "short superres-tuned" "empty superres-tuned"; do
  # shellcheck disable=SC2086
  expect 0 compare $pair --lang zh
  all_chinese out
  # shellcheck disable=SC2086
  same_json 0 compare $pair
done
expect 1 compare superres-tuned superres-naive --lang zh
all_chinese out
same_json 1 compare superres-tuned superres-naive
same_json 0 compare superres-naive optimise
LC_ALL=zh_CN.UTF-8 "$unidle" compare superres-naive superres-tuned >out
all_chinese out

for records in superres-naive keypoint-h100 empty short "superres-naive superres-tuned keypoint-h100" "empty empty"; do
  # shellcheck disable=SC2086
  expect 0 report $records -o page.html --lang zh
  grep -q '<html lang="zh-CN">' page.html || fail "$records: the page does not tell its language"
  page_text page.html >text
  all_chinese text
done
expect 0 report superres-naive -o page.html --lang en
grep -q '<html lang="en">' page.html || fail "the English page does not tell its language"

for arguments in "--folder ." "--folder nowhere" "--folder nowhere --bad"; do
  # shellcheck disable=SC2086
  expect 0 runs $arguments --lang zh
  all_chinese out
done
same_json 0 runs --folder .
expect 0 runs rm --folder . --before 1h --lang zh
all_chinese err

# Wide characters take two columns.
for width in 40 80 120; do
  COLUMNS=$width "$unidle" compare superres-naive superres-tuned --lang zh >out
  python3 -c "
import sys, unicodedata
columns = lambda line: sum(2 if unicodedata.east_asian_width(c) in 'WF' else 1 for c in line.rstrip('\n'))
sys.exit(max(map(columns, open('out', encoding='utf-8'))) > $width)" || fail "wider than $width columns: $(cat out)"
done

finish
