create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i+1 from n where i<60000) insert into t select i, hex(zeroblob(i%50))||i, i*1.5 from n;
create index tb on t(b);
select count(*), sum(c), max(b), group_concat(a) from t where a%5000=0;
select b, count(*) from t group by substr(b,1,3) order by 2 desc, 1 limit 5;
update t set b=b||'x' where a%3=0;
delete from t where a%7=0;
select count(*), sum(length(b)) from t;
vacuum;
