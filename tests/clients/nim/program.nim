# Trees of refs, strings, sequences, tables, closures, finalizers. Argument: the size.
import std/[os, strutils, tables, algorithm, sequtils, sugar]

type
  Node = ref object
    key: int
    left, right: Node

  Counted = ref object
    id: int
    text: string

let size = parseInt(paramStr(1))

proc build(depth, key: int): Node =
  if depth == 0: nil
  else: Node(key: key, left: build(depth - 1, 2 * key), right: build(depth - 1, 2 * key + 1))

proc sum(node: Node): int =
  if node == nil: 0 else: node.key + sum(node.left) + sum(node.right)

proc trees() =
  let depth = if size > 1: 20 else: 10
  let longLived = build(depth, 1)
  var total = 0
  for d in countup(4, depth, 2):
    for i in 1 .. (1 shl (depth - d + 1)):
      total += sum(build(d, 1))
  echo "trees: ", total, ", long-lived: ", sum(longLived)

proc words() =
  var counts = initCountTable[string]()
  var seed = 7'u32
  for i in 1 .. size * 20_000:
    seed = seed * 1664525'u32 + 1013904223'u32
    counts.inc("word-" & toHex(int((seed shr 16) mod 4001), 4))
  var ranking = toSeq(counts.pairs)
  ranking.sort(proc (a, b: (string, int)): int =
    result = cmp(b[1], a[1])
    if result == 0: result = cmp(a[0], b[0]))
  echo "words: ", counts.len, ", most frequent: ", ranking[0][0], " ", ranking[1][0]
  var lengths = 0
  for round in 1 .. size * 3:
    let line = ranking.mapIt(it[0]).join(" ")
    lengths += line.split(' ').mapIt(it.toUpperAscii).filterIt(it.endsWith("F")).len
  echo "lines: ", lengths

proc sequences() =
  var rows: seq[seq[int]]
  for i in 0 ..< size * 150:
    var row: seq[int]
    for x in 0 .. i mod 400: row.add((x * i) mod 1009)
    rows.add(row)
  var total = 0
  for row in rows:
    for x in row: total += x
  echo "rows: ", total
  var nested = initTable[int, Table[string, seq[int]]]()
  for i in 0 ..< size * 300:
    nested.mgetOrPut(i mod 50, initTable[string, seq[int]]())
      .mgetOrPut($(i mod 17), @[]).add(i)
  var count = 0
  for inner in nested.values:
    for items in inner.values: count += items.len
  echo "nested: ", count

proc closures() =
  var adders: seq[proc (x: int): int {.closure.}]
  for i in 1 .. size * 2000:
    capture i:
      adders.add(proc (x: int): int = (x * 3 + i) mod 1_000_003)
  var acc = 0
  for f in adders: acc = f(acc)
  echo "closures: ", acc

var finalized = 0
proc finish(c: Counted) = inc finalized

proc drop(n: int) =
  for i in 1 .. n:
    var c: Counted
    new(c, finish)
    c.id = i
    c.text = $i

proc clobber(depth: int): int =
  var space: array[64, int]
  if depth > 0: space[depth mod 64] = clobber(depth - 1)
  space[depth mod 64]

proc finalizers() =
  var kept: seq[Counted]
  for i in 1 .. 50:
    var c: Counted
    new(c, finish)
    c.id = i
    kept.add(c)
  drop(2000)
  for i in 1 .. 20:
    discard clobber(50)
    GC_fullCollect()
    discard build(8, 1)
    if finalized > 1800: break
  # A conservative collector may keep a few.
  echo "finalizers: ", (if finalized > 1800 and finalized <= 2000: "most" else: $finalized)
  var ids = 0
  for c in kept: ids += c.id
  echo "kept: ", ids

trees()
words()
sequences()
closures()
finalizers()
