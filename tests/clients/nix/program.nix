# A pure expression: naive recursion, big lists and sets folded, strings split and joined, JSON, sorting.
{ size }:
let
  inherit (builtins)
    genList foldl' length elemAt listToAttrs attrNames attrValues mapAttrs toString concatStringsSep
    stringLength substring replaceStrings sort hashString toJSON fromJSON filter partition
    groupBy split isString;

  range = first: last: genList (n: first + n) (last - first + 1);
  sum = foldl' (a: b: a + b) 0;
  mod = a: b: a - b * (a / b);

  fib = n: if n < 2 then n else fib (n - 1) + fib (n - 2);

  numbers = range 1 (2000 * size);

  people = map
    (n: {
      name = "person-${toString (mod (n * 7919) 10007)}";
      age = mod (n * 31) 90;
      tags = genList (i: "tag${toString (mod (n + i) 13)}") 3;
    })
    numbers;

  byName = listToAttrs (map (p: { inherit (p) name; value = p; }) people);
  older = mapAttrs (_: p: p // { age = p.age + 1; }) byName;
  byAge = groupBy (p: toString p.age) people;

  tree = depth: if depth == 0 then null else { left = tree (depth - 1); right = tree (depth - 1); };
  count = t: if t == null then 0 else 1 + count t.left + count t.right;

  # A fixpoint with overlays, as packages are built from.
  fix = f: let x = f x; in x;
  extend = overlay: base: self: let super = base self; in super // overlay self super;
  layers = foldl'
    (base: n: extend (self: super: { "attr${toString n}" = n + (super.last or 0); last = n; }) base)
    (self: { total = sum (filter builtins.isInt (attrValues (removeAttrs self [ "total" ]))); })
    (range 1 60);

  text = concatStringsSep " " (map toString numbers);
  words = filter isString (split " " (substring 0 6000 text));
in
{
  fib = fib (if size > 1 then 25 else 14);
  numbers = sum (map (n: mod (n * n) 1000) numbers);
  names = length (attrNames byName);
  ages = sum (map (p: p.age) (attrValues older));
  groups = mapAttrs (_: length) (removeAttrs byAge (filter (a: stringLength a > 1) (attrNames byAge)));
  youngest = (elemAt (sort (a: b: a.age < b.age || (a.age == b.age && a.name < b.name)) people) 0).name;
  trees = sum (genList (_: count (tree (if size > 1 then 14 else 8))) (2 + size));
  overlays = sum (genList (_: (fix layers).total) (5 * size));
  text = hashString "sha256" text;
  words = length words;
  replaced = stringLength (replaceStrings [ "1" "22" ] [ "one" "twenty-two" ] text);
  json = length (attrNames (fromJSON (toJSON byName)));
  even = length (partition (n: mod n 2 == 0) numbers).right;
}
