import json, threading, re, hashlib, random, zlib, collections, os, subprocess
random.seed(7)
d = {str(i): [random.random() for _ in range(5)] for i in range(20000)}
s = json.dumps(d); e = json.loads(s)
assert e == d
out=[]
def work(n):
    x = {}
    for i in range(3000):
        x[i] = bytes(random.randrange(2000)) + str(i).encode()
        if i % 3 == 0: x.pop(i//2, None)
    out.append(sum(len(v) for v in x.values()) > 0)
ts=[threading.Thread(target=work,args=(i,)) for i in range(8)]
[t.start() for t in ts]; [t.join() for t in ts]
print(len(out), all(out))
print(hashlib.sha256(s.encode()).hexdigest())
print(len(zlib.compress(s.encode())))
print(len(re.findall(r'\d+\.\d+', s)))
print(subprocess.run(['/bin/echo','child'],capture_output=True).stdout)
pid=os.fork()
if pid==0:
    z=[bytearray(1000) for _ in range(10000)]
    os._exit(3)
print(os.waitpid(pid,0)[1]>>8)
