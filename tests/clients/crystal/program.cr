# Binary trees, strings and hashes, arrays that grow, big numbers, fibers and channels, finalizers and weak
# references, fork and exec. Argument: the size.
require "big"
require "weak_ref"

SIZE = ARGV[0].to_i

class Node
  getter key : Int32
  getter left : Node?
  getter right : Node?

  def initialize(@key, @left, @right)
  end

  def self.build(depth : Int32, key : Int32) : Node?
    return nil if depth == 0
    Node.new(key, build(depth - 1, 2 * key), build(depth - 1, 2 * key + 1))
  end

  def count : Int32
    1 + (@left.try(&.count) || 0) + (@right.try(&.count) || 0)
  end
end

depth = SIZE > 1 ? 20 : 10
long_lived = Node.build(depth, 1).not_nil!
total = 0_i64
4.step(to: depth, by: 2) do |d|
  (1 << (depth - d + 2)).times { total += Node.build(d, 1).not_nil!.count }
end
puts "trees: #{total}, long-lived: #{long_lived.count}"

# Text.
counts = Hash(String, Int32).new(0)
seed = 7_u64
(SIZE * 20_000).times do
  seed = (seed &* 6364136223846793005_u64) &+ 1442695040888963407_u64
  counts["word-#{((seed >> 40) % 5003).to_s(36)}-é"] += 1
end
top = counts.to_a.sort_by { |(word, n)| {-n, word} }.first(3)
puts "words: #{counts.size}, most frequent: #{top.map { |(w, _)| w }.join(' ')}"
text = String.build do |io|
  counts.keys.sort.each_with_index { |word, i| io << i << ':' << word << ' ' }
end
puts "text: #{text.size} characters, #{text.split(' ').map(&.size).max} in the longest word"

# Arrays of arrays, closures, big numbers.
rows = Array(Array(Int32)).new
(SIZE * 200).times { |i| rows << (0..i % 500).map { |x| (x * i) % 1009 } }
puts "rows: #{rows.sum { |row| row.sum.to_i64 }}"
adders = (1..SIZE * 1000).map { |i| ->(x : Int64) { (x * 3 + i) % 1_000_003 } }
puts "closures: #{adders.reduce(1_i64) { |acc, f| f.call(acc) }}"
product = (1..SIZE * 100).reduce(BigInt.new(1)) { |acc, i| acc * i }
puts "bignum: #{product.to_s.size} digits, #{product % 1_000_000_007}"

# Fibers: their stacks are the only place that refers to most of what they make.
channel = Channel(Array(String)).new(16)
results = Channel(Int64).new
workers = 40
workers.times do |id|
  spawn do
    sum = 0_i64
    SIZE.times do |round|
      tree = Node.build(9, 1).not_nil!
      words = Array.new(20) { |i| "fiber #{id} round #{round} item #{i}" }
      channel.send(words)
      Fiber.yield if round % 3 == 0
      sum += tree.count + words.sum(&.size)
    end
    results.send(sum)
  end
end
received = 0_i64
spawn do
  (workers * SIZE).times { received += channel.receive.join(' ').size }
  results.send(0_i64)
end
sums = (0..workers).map { results.receive }
puts "fibers: #{sums.sum}, received: #{received}"

# Deep recursion in a fiber, with collections at its bottom.
deep = Channel(Int32).new
spawn do
  deep.send(descend(2000))
end

def descend(n : Int32) : Int32
  items = [n, n + 1]
  if n == 0
    GC.collect
    return 0
  end
  below = descend(n - 1)
  below + items.sum - 2 * n
end

puts "deep fiber: #{deep.receive}"

# Finalizers and weak references. A conservative collector may keep a few: most must go.
class Counted
  @@finalized = 0
  class_getter finalized

  def initialize(@id : Int32)
  end

  def id
    @id
  end

  def finalize
    @@finalized += 1
  end
end

def drop(n)
  n.times { |i| Counted.new(i) }
end

kept = Array.new(100) { |i| Counted.new(-i) }
refs = kept.map { |object| WeakRef.new(object) }
drop(2000)
20.times do
  break if Counted.finalized > 1800
  GC.collect
  Node.build(8, 1)
end
puts "finalizers: #{1800 < Counted.finalized <= 2000 ? "most" : Counted.finalized}"
puts "weak references: #{refs.all? { |ref| ref.value }} #{kept.sum(&.id)}"

# fork and exec while there is a heap.
answers = (1..3).map do |i|
  io = IO::Memory.new
  Process.run("/bin/echo", ["child", i.to_s], output: io)
  io.to_s.chomp
end
puts answers.join(", ")
