#!/usr/bin/env bash
# unidle data inspect: answers, exit codes, and input that is not data.
subcommand=data
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

printf 'a,b\n1,x\n2,"y ""z"""\n' >good.csv
expect 0 inspect good.csv
has out "good.csv: table, 2 rows"
lacks out PROBLEMS
expect 0 inspect good.csv --rows 1 --format json
[ "$(tr -d ' \n' <out)" = '{"kind":"table","rows":2,"columns":[{"name":"a","type":"integer","missing":0},{"name":"b","type":"text","missing":0}],"problems":[],"sample":[["1","x"]]}' ] ||
  fail "the document: $(cat out)"
[ ! -s err ] || fail "words on stderr: $(cat err)"

mkdir several && cp good.csv several/ && touch several/a.npy several/b.npy several/notes
expect 0 inspect several
has out "passed over: 3 files (1 without extension, 2 .npy)"

printf 'a,b\n1,x\n2\n' >log_part1.csv
printf 'a,b\n3,\x1b[31mred\nfour,y\n5,z\n6,z\n' >log_part2.csv
expect 1 inspect log.csv
has out "log_part1.csv:3: has 1 columns; expected 2"
has out 'log_part2.csv:3: column a: expected a number'
lacks out $'\x1b'
expect 1 inspect log_part1.csv log_part2.csv --format json
has out '"at": "log_part1.csv:3"'

refused inspect none.csv
refused inspect good.csv good.fasta
refused inspect good.csv --rows -1
refused inspect
refused inspect .unidle/none
mkfifo pipe
refused inspect pipe
mkdir empty
refused inspect empty
finish
