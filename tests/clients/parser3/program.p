# Parser: hashes, arrays in tables, strings, regular expressions, JSON, objects. SIZE and ROUNDS come
# from the environment; Parser ends a loop of more than 20000 turns, so work grows by rounds.
@main[]
$size($env:SIZE)
^for[round](1;$env:ROUNDS){
	^numbers[$size]
	^words[$size]
	^texts[$size]
	^objects[$size]
}

@numbers[size][locals]
$table[^hash::create[]]
^for[i](1;$size * 2000){
	$key[key-^eval($i * 31 % 997)]
	$table.$key($table.$key + $i)
}
$sum(0)
^table.foreach[key;value]{^sum.inc($value)}
numbers: ^table._count[] ^sum.format[%.0f]

@words[size][locals]
$list[^table::create{word	n}]
^for[i](1;$size * 300){^list.append{word-^eval($i * 7919 % 10007)	$i}}
^list.sort{$list.word}[asc]
$seen[^list.hash[word][$.distinct(true)]]
words: ^list.count[] ^seen._count[] $list.word

@texts[size][locals]
$total(0)
^for[i](1;$size * 20){
	$parts[^for[k](1;60){item $i-$k}[, ]]
	$upper[^parts.upper[]]
	$changed[^upper.match[ITEM (\d+)][g]{<$match.1>}]
	$pieces[^changed.split[,]]
	^total.inc(^changed.length[] + ^pieces.count[])
}
texts: $total
$tree[^json:parse[^json:string[$.a[$.b[$.c[deep]]] $.list[1,2,3]]]]
json: $tree.a.b.c $tree.list

@objects[size][locals]
$chain[]
^for[i](1;$size * 300){$chain[$.value($i) $.next[$chain]]}
$sum(0)
$walk[$chain]
^while(def $walk.value){
	^sum.inc($walk.value)
	$walk[$walk.next]
}
objects: $sum
