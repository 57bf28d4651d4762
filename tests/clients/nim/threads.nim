# Threads that allocate for themselves and report through a channel. Argument: the size.
import std/[os, strutils]

type Node = ref object
  left, right: Node

var channel: Channel[int]

proc build(depth: int): Node =
  if depth == 0: nil else: Node(left: build(depth - 1), right: build(depth - 1))

proc count(node: Node): int =
  if node == nil: 0 else: 1 + count(node.left) + count(node.right)

proc work(arg: tuple[id, rounds: int]) {.thread.} =
  var kept: seq[string]
  var total = 0
  for i in 1 .. arg.rounds:
    total += count(build(6 + i mod 6))
    kept.add("thread " & $arg.id & " round " & $i)
  for text in kept: total += text.len
  channel.send(total)

let size = parseInt(paramStr(1))
channel.open()
var total = 0
for generation in 1 .. 3:
  var threads: array[4, Thread[tuple[id, rounds: int]]]
  for i in 0 ..< 4: createThread(threads[i], work, (i, size * 20))
  joinThreads(threads)
  for i in 0 ..< 4: total += channel.recv()
echo "threads: ", total
