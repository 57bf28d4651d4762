-- `rounds` is set by what is put before this text.
R = ZZ/32003[x_0..x_6]
I = ideal(x_0^4-x_1*x_2^3, x_1^4+x_3*x_4*x_5^2, x_2^4-x_6^4, x_3^3-x_0*x_5^2)
print betti res I

S = QQ[a,b,c,d,e]
cyclic = ideal(a+b+c+d+e, a*b+b*c+c*d+d*e+e*a, a*b*c+b*c*d+c*d*e+d*e*a+e*a*b,
  a*b*c*d+b*c*d*e+c*d*e*a+d*e*a*b+e*a*b*c, a*b*c*d*e-1)
print (#(flatten entries gens gb cyclic))
print degree cyclic

total = 0
for round from 1 to rounds do (
  squares = new MutableHashTable;
  for i from 0 to 25000 do squares#(toString (i*round)) = {i, i^2};
  total = total + #(keys squares);
  ordered = sort for i from 1 to 25000 list ((i*7919*round) % 25013);
  total = total + ordered#500)
print total

for k from 1 to rounds do (
  T = ZZ/101[t_0..t_(4 + k % 2)];
  J = monomialCurveIdeal(T, if k % 2 == 0 then {1,3,4,7} else {1,2,5,6,9});
  print (numgens J, degree J))
