"""Fits the polynomials of math_coefficients.h: minimax (Remez) on the relative error of the function they are part of.

Needs mpmath. Prints the tables; the words of 2/pi are its binary digits.
"""
from mpmath import *  # noqa: F403
mp.dps=50
def remez(f, basis, w, a, b, n, iters=12):
    # minimise max |w(x) (f(x) - sum c_k basis(k,x))|
    N=n+1
    xs=[(a+b)/2+(b-a)/2*cos(pi*(mpf(2*i+1)/(2*N)))*mpf('0.99999') for i in range(N)][::-1]
    grid=[(a+b)/2-(b-a)/2*cos(pi*mpf(i)/(40*N)) for i in range(40*N+1)]
    fg=[f(x) for x in grid]; wg=[w(x) for x in grid]
    bg=[[basis(k,x) for k in range(n)] for x in grid]
    best=None
    for it in range(iters):
        A=matrix(N,N); B=matrix(N,1)
        for i,x in enumerate(xs):
            wi=w(x)
            for k in range(n): A[i,k]=basis(k,x)*wi
            A[i,n]=(-1)**i; B[i]=f(x)*wi
        c=lu_solve(A,B)
        err=[wg[i]*(fg[i]-fdot([(c[k],bg[i][k]) for k in range(n)])) for i in range(len(grid))]
        m=max(abs(e) for e in err)
        if best is None or m<best[0]: best=(m,[c[k] for k in range(n)])
        # alternating extrema
        ext=[]
        i=0
        cur=None
        for i,e in enumerate(err):
            if cur is None or (e>0)!=(cur[1]>0):
                if cur is not None: ext.append(cur)
                cur=(i,e)
            elif abs(e)>abs(cur[1]): cur=(i,e)
        ext.append(cur)
        while len(ext)>N:
            if len(ext)>N+1:
                j=min(range(len(ext)),key=lambda q:abs(ext[q][1]))
                if j in (0,len(ext)-1): ext.pop(j)
                else:
                    k=j-1 if abs(ext[j-1][1])<abs(ext[j+1][1]) else j+1
                    for q in sorted((j,k),reverse=True): ext.pop(q)
            else:
                ext.pop(0 if abs(ext[0][1])<abs(ext[-1][1]) else -1)
        if len(ext)<N: break
        if m/abs(c[n])<mpf('1.02'): break
        xs=[grid[i] for i,_ in ext]
    return best
P=lambda k,x:x**k
def out(name,f,w,a,b,n,basis=P):
    m,c=remez(f,basis,w,mpf(a),mpf(b),n)
    print("// %s: 2^%.1f"%(name,float(log(m,2))))
    print("constexpr double %s[] = {%s};"%(name,", ".join(repr(float(x)) for x in c)),flush=True)
L=log(2)/2*mpf('1.0005')
fe=lambda r:(exp(r)-1-r)/r**2 if abs(r)>1e-12 else mpf(1)/2+r/6
we=lambda r:r**2/exp(r)
out("kExp32",fe,we,-L,L,5)
out("kExp64",fe,we,-L,L,10)
# expm1: relative error
wm=lambda r:abs(r)
out("kExpm1_32",fe,wm,-L,L,5)
out("kExpm1_64",fe,wm,-L,L,11)
fl=lambda f:(log1p(f)-f+f*f/2)/f**3 if abs(f)>1e-10 else mpf(1)/3-f/4
wl=lambda f:abs(f)**2
out("kLog32",fl,wl,sqrt(mpf(.5))-1,sqrt(mpf(2))-1,8)
at=lambda z:(2*atanh(sqrt(z))/sqrt(z)-2)/z if z>1e-20 else mpf(2)/3+2*z/5
out("kLog64",at,lambda z:z,'1e-30',(sqrt(mpf(2))-1)**2/(1+sqrt(mpf(2)))**2*mpf('1.01'),7)
at2=lambda z:((2*atanh(sqrt(z))/sqrt(z)-2)/z-mpf(2)/3)/z if z>1e-15 else mpf(2)/5+2*z/7
out("kLogTail64",at2,lambda z:z*z,'1e-14',(sqrt(mpf(2))-1)**2/(1+sqrt(mpf(2)))**2*mpf('1.01'),7)
ft=lambda z:(tanh(sqrt(z))/sqrt(z)-1)/z if z>1e-20 else -mpf(1)/3+2*z/15
out("kTanh32",ft,lambda z:z*sqrt(z)/tanh(sqrt(z)) if z>0 else 0,'1e-20',mpf('0.63')**2,5)
Z=(pi/4)**2*mpf('1.003')
fs=lambda z:(sin(sqrt(z))/sqrt(z)-1)/z if z>1e-20 else -mpf(1)/6+z/120
fc=lambda z:(cos(sqrt(z))-1+z/2)/z**2 if z>1e-14 else mpf(1)/24-z/720
out("kSin32",fs,lambda z:z,'1e-20',Z,3)
out("kSinHalf32",fs,lambda z:z*sqrt(z)/sin(sqrt(z)),'1e-20',(pi/2)**2*mpf('1.003'),4)
out("kSin64",fs,lambda z:z,'1e-20',Z,6)
out("kCos32",fc,lambda z:z*z,'1e-12',Z,3)
out("kCos64",fc,lambda z:z*z,'1e-12',Z,6)
fa=lambda z:(asin(sqrt(z))/sqrt(z)-1)/z if z>1e-20 else mpf(1)/6+3*z/40
out("kAsin32",fa,lambda z:z,'1e-20','0.25',5)
out("kAsin64",fa,lambda z:z,'1e-20','0.25',12)
ft=lambda z:(atan(sqrt(z))/sqrt(z)-1)/z if z>1e-20 else -mpf(1)/3+z/5
T=(sqrt(mpf(2))-1)**2*mpf('1.001')
out("kAtan32",ft,lambda z:z,'1e-20',T,5)
out("kAtan64",ft,lambda z:z,'1e-20',T,10)
fr=lambda z:erf(sqrt(z))/sqrt(z) if z>1e-20 else 2/sqrt(pi)*(1-z/3)
out("kErf32",fr,lambda z:1,'1e-20',mpf('0.95')**2,6)
out("kErf64",fr,lambda z:1,'1e-20','1.0',13)
out("kErfLog32",lambda a:log(erfc(a)),lambda a:erfc(a)/erf(a),'0.9','4.0',9)
out("kErfcLog2",lambda a:log(erfc(a),2)/a,lambda a:a*(erfc(a)+mpf('1e-3'))*log(2),'1e-9','4.0',8)
out("kErfcRoot",lambda a:(erfc(a)**(-mpf(1)/16)-1)/a,lambda a:16*a*(erfc(a)+mpf('1e-3'))*erfc(a)**(mpf(1)/16),'1e-9','4.0',8)
K=mpf('3.75')
def fg(t):
    x=K*(1+t)/(1-t)
    return (1+2*x)*exp(x*x)*erfc(x)
out("kErfc64",fg,lambda t:1,-1,(mpf('27.5')-K)/(mpf('27.5')+K),23)
K=mpf('2')
out("kErfc32",fg,lambda t:1/fg(t),-1,(mpf('10.2')-K)/(mpf('10.2')+K),10)
g=euler
fgm=lambda z:(loggamma(2+z).real-(1-g)*z)/z**2 if abs(z)>1e-12 else (zeta(2)-1)/2
mp.dps=40
out("kLgamma64",fgm,lambda z:abs(z),'-0.5','0.5',20)
def ei(w):
    y=sqrt(-expm1(-w)) if w>0 else mpf(0)
    if w<1e-15: return sqrt(pi)/2
    if w<5: return erfinv(y)/y
    # solve erfc(x) = 1 - y
    q=1-y
    q=exp(-w)/(1+y)
    x=sqrt(w)*mpf('0.95')
    for _ in range(40):
        e=erfc(x)-q
        x+=e/(2/sqrt(pi)*exp(-x*x))*(1) if abs(e/q)<0.5 else (log(erfc(x)/q))/(2*x+1/x)
        if abs(e/q)<mpf(10)**-30: break
    return x/y
def near(w):
    if w<1e-12: return sqrt(pi)/2
    a=sqrt(-expm1(-w)); q=exp(-w)/(1+a)
    x=erfinv(a) if q>1e-8 else sqrt(w)-log(w+1)/sqrt(w)/2
    for _ in range(60):  # Halley's method
        e=(erfc(x)-q)*exp(x*x)*sqrt(pi)/2
        x+=e/(1-x*e)
        if abs(e)<mpf(10)**-45: break
    return x/a
mp.dps=60
def segment(name,g,a,b,mid,n): out(name,lambda t:g(t+mid),lambda t:1/g(t+mid),mpf(a)-mid,mpf(b)-mid,n)
segment("kErfinvCentre64",near,'0','6.25',mpf('3.125'),25)
segment("kErfinvTail64",lambda s:near(s*s),'2.5','4',mpf('3.25'),21)
segment("kErfinvFar64",lambda s:near(s*s),'4','6.05',mpf(5),19)
mp.dps=34
out("kErfinvCentre32",lambda u:ei(u+mpf('2.5')),lambda u:1/ei(u+mpf('2.5')),'-2.5','2.5001',10)
out("kErfinvTail32",lambda s:ei((s+mpf('3.1'))**2),lambda s:1/ei((s+mpf('3.1'))**2),mpf('-0.865'),mpf('0.9'),10)

mp.prec = 1500
value, words = 2 / pi, []
for _ in range(42):
    value *= 2**32
    words.append(int(floor(value)))
    value -= words[-1]
print("constexpr int64_t kTwoOverPiWords[] = {%s};" % ", ".join("0x%08x" % w for w in words))
