# Built with -Dpreview_mt: fibers on several threads, each allocating, stacks switched under the
# collector's eyes. Argument: the size.
SIZE = ARGV[0].to_i

class Node
  getter left : Node?
  getter right : Node?

  def initialize(@left, @right)
  end

  def self.build(depth : Int32) : Node?
    depth == 0 ? nil : Node.new(build(depth - 1), build(depth - 1))
  end

  def count : Int32
    1 + (@left.try(&.count) || 0) + (@right.try(&.count) || 0)
  end
end

work = Channel({Int32, Array(Int32)}).new(32)
done = Channel(Int64).new(32)

8.times do
  spawn do
    while message = work.receive?
      number, items = message
      tree = Node.build(6 + number % 6).not_nil!
      text = items.map { |i| "#{i}/#{number}" }.join(',')
      done.send(tree.count.to_i64 + text.size + items.sum)
    end
  end
end

spawn do
  (SIZE * 200).times { |i| work.send({i, Array.new(10 + i % 50) { |x| x * i % 97 }}) }
  work.close
end

sum = 0_i64
(SIZE * 200).times { sum += done.receive }
puts "messages: #{sum}"
