package contract

import (
	"math/rand/v2"
	"regexp"
	"strings"
)

// Generator makes random requests over few paths, so the requests often meet.
type Generator struct {
	Zxid int64 // the last one that a client saw

	r    *rand.Rand
	made []string // sequential nodes made lately
}

// NewGenerator returns a generator that draws its requests from r.
func NewGenerator(r *rand.Rand) *Generator { return &Generator{r: r} }

func pick[T any](g *Generator, v ...T) T { return v[g.r.IntN(len(v))] }

// chance is true in n of 100 cases.
func (g *Generator) chance(n int) bool { return g.r.IntN(100) < n }

var numbered = regexp.MustCompile(`/[/a-z-]*-?\d{10}`)

// Learn remembers the names that a server made up.
func (g *Generator) Learn(outcome string) {
	g.made = append(g.made, numbered.FindAllString(outcome, -1)...)
	g.made = g.made[max(0, len(g.made)-8):]
}

func (g *Generator) path() string {
	if len(g.made) > 0 && g.chance(20) {
		return pick(g, g.made...)
	}
	if g.chance(3) {
		return pick(g, "", "a", "/a/", "//", "/a//b", "/a/.", "/a/../b", "/.", "/a\x00b", "/a\x01", "/\u00e9", "/\u007f",
			"/\ue000", "/a/b\ufff5", "/...", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", "/zookeeper/x")
	}
	if g.chance(4) {
		return "/"
	}
	p := "/" + pick(g, "a", "b", "c")
	for g.chance(45) && len(p) < 8 {
		p += "/" + pick(g, "a", "b", "c")
	}
	return p
}

func (g *Generator) data() []byte {
	switch g.r.IntN(4) {
	case 0:
		return nil
	case 1:
		return []byte{}
	}
	return []byte(strings.Repeat("x", g.r.IntN(20)))
}

func (g *Generator) version() int32 { return pick[int32](g, -1, -1, -1, -1, 0, 0, 1, 2, -2) }

// The digest identities of u:p and v:q.
const (
	digestU = "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ="
	digestV = "v:Mfy8apI9YguGKmh+AxUmAFSwkII="
)

func (g *Generator) acl() []acl {
	if g.chance(80) {
		return open
	}
	perms := int32(g.r.IntN(32))
	switch g.r.IntN(12) {
	case 0:
		return []acl{{perms, "world", "anyone"}}
	case 1:
		return []acl{{perms, "digest", digestU}, {31, "digest", digestV}}
	case 2:
		return []acl{{perms, "auth", pick(g, "", "x")}, {1, "world", "anyone"}}
	case 3:
		return []acl{{perms, "ip", pick(g, "127.0.0.1", "127.0.0.0/8", "10.0.0.0/8", "10.1.2.3")}}
	case 4:
		return nil
	case 5:
		return []acl{
			{31, pick(g, "world", "digest", "ip", "nosuch", ""), pick(g, "", "x", "a:b:c", "1.2.3", "1.2.3.4/33", "a:", ":a")},
		}
	case 6:
		return []acl{{31, "world", "anyone"}, {31, "world", "anyone"}, {perms, "digest", digestU}}
	case 7, 8:
		return g.mixed(perms)
	}
	return []acl{{perms, "world", "anyone"}, {31, "digest", digestU}}
}

// mixed is a list in which the same turns up as it was sent, or only after
// auth has been expanded.
func (g *Generator) mixed(perms int32) []acl {
	list := []acl{{31, "world", "anyone"}}
	for range 1 + g.r.IntN(4) {
		list = append(list, pick(g, acl{31, "auth", ""}, acl{31, "auth", ""}, acl{31, "auth", "x"}, acl{perms, "auth", ""},
			acl{31, "digest", digestU}, acl{31, "digest", digestV}, acl{31, "world", "anyone"}))
	}
	g.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// create leaves out, inside a multi, TTL flags without a time to live: they
// make a real server stumble over its own classes.
func (g *Generator) create(inMulti bool) part {
	path := g.path()
	if g.chance(30) {
		path += "-"
	}
	flags := pick[int32](g, persistent, persistent, persistent, ephemeral, ephemeral, sequential, ephemeralSq)
	op := pick[int32](g, opCreate, opCreate, opCreate2)
	if g.chance(5) {
		flags = pick[int32](g, container, ttlNode, ttlSeq, 7, -1)
		if inMulti {
			flags = container
		}
	}
	body := create(path, g.data(), g.acl(), flags)
	switch {
	case g.chance(8):
		op, body = opContainer, create(path, g.data(), g.acl(), container)
	case g.chance(8):
		op = opTTL
		body = createTTL(path, g.data(), g.acl(), pick[int32](g, ttlNode, ttlSeq),
			pick[int64](g, 1, 1000, 1<<40-1, 1<<40, 0, -1, -5))
	}
	return part{op, body}
}

func (g *Generator) write(inMulti bool) part {
	switch g.r.IntN(8) {
	case 0, 1, 2:
		return g.create(inMulti)
	case 3, 4:
		return part{opDelete, versioned(g.path(), g.version())}
	case 5:
		return part{opCheck, versioned(g.path(), g.version())}
	}
	return part{opSetData, setData(g.path(), g.data(), g.version())}
}

func (g *Generator) parts(make func() part) []part {
	var ps []part
	for range g.r.IntN(5) {
		ps = append(ps, make())
	}
	return ps
}

func (g *Generator) read() part {
	op := pick[int32](g, opGetData, opGetData, opGetChildren)
	return part{op, watched(g.path(), g.chance(20))}
}

func (g *Generator) paths() []string {
	var ps []string
	for range g.r.IntN(3) {
		ps = append(ps, g.path())
	}
	return ps
}

// Request returns a request's operation code and its body.
func (g *Generator) Request() (op int32, body []byte) {
	p := g.request()
	return p.op, p.body
}

func (g *Generator) request() part {
	switch n := g.r.IntN(99); {
	case n < 32:
		p := g.write(false)
		// A check by itself that succeeds is left out: a real server never
		// answers it, and no client sends it outside a multi.
		if p.op == opCheck {
			p.body = versioned(g.path(), -2)
		}
		return p
	case n < 42:
		return part{opMulti, multi(g.parts(func() part { return g.write(true) }))}
	case n < 50:
		return part{opExists, watched(g.path(), g.chance(50))}
	case n < 58:
		return part{opGetData, watched(g.path(), g.chance(50))}
	case n < 66:
		return part{pick[int32](g, opGetChildren, opGetChildren2), watched(g.path(), g.chance(50))}
	case n < 69:
		return part{opSetACL, enc{}.str(g.path()).acls(g.acl()).i32(g.version())}
	}
	return g.rare()
}

func (g *Generator) rare() part {
	switch g.r.IntN(13) {
	case 0:
		return part{opGetACL, enc{}.str(g.path())}
	case 1:
		return part{opSync, enc{}.str(g.path())}
	case 2:
		return part{opPing, nil}
	case 3:
		return part{opMultiRead, multi(g.parts(g.read))}
	case 4:
		return part{opSetWatches, enc{}.i64(g.since()).strs(g.paths()).strs(g.paths()).strs(g.paths())}
	case 5:
		return part{
			opSetWatches2, enc{}.i64(g.since()).strs(g.paths()).strs(g.paths()).strs(g.paths()).strs(g.paths()).strs(g.paths()),
		}
	case 6:
		return part{opGetEphemerals, enc{}.str(pick(g, "", "/", g.path()))}
	case 7:
		return part{opAllChildren, enc{}.str(g.path())}
	case 8:
		return part{opWhoAmI, nil}
	case 9:
		return part{opAddWatch, enc{}.str(g.path()).i32(int32(g.r.IntN(2)))}
	case 10:
		return part{opRemoveWatches, enc{}.str(g.path()).i32(int32(1 + g.r.IntN(3)))}
	case 11:
		if g.chance(40) {
			return part{opAuth, enc{}.i32(0).str("digest").buf([]byte(pick(g, "u:p", "v:q", "w")))}
		}
	}
	return part{opExists, watched(g.path(), false)}
}

// since is a zxid that a reconnecting client may have seen last: of the nodes
// that it watched some have changed, and some have not.
func (g *Generator) since() int64 { return g.Zxid - int64(g.r.IntN(60)) }
