package coord_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

// shuffledNames are n names of mutex claims in no order, as a listing has them.
func shuffledNames(d coord.Dialect, n int) []string {
	random := rand.New(rand.NewPCG(1, 2))
	names := make([]string, n)
	for i := range names {
		high, low := random.Uint64(), random.Uint64()
		switch d {
		case coord.Kazoo:
			names[i] = fmt.Sprintf("%016x%016x__lock__%010d", high, low, i)
		default:
			names[i] = fmt.Sprintf("_c_%08x-%04x-4%03x-8%03x-%012x-lock-%010d",
				high>>32, high>>16&0xffff, high&0xfff, low>>52, low&0xffffffffffff, i)
		}
	}
	random.Shuffle(n, func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

// BenchmarkTheRuleOnALineOf10000 is what a claim at the end of a long line does
// with a listing: it reads the names, orders them, and asks the rule.
func BenchmarkTheRuleOnALineOf10000(b *testing.B) {
	names, line := shuffledNames(coord.Curator, 10_000), inspect.LockLine("/lock")
	b.ReportAllocs()
	for b.Loop() {
		ordered := line.Order(names, coord.Curator)
		if wait, granted := coord.First(ordered[:len(ordered)-1]); granted || len(wait) == 0 {
			b.Fatal("the last in line was granted")
		}
	}
}

// BenchmarkParsing reads one name.
func BenchmarkParsing(b *testing.B) {
	for _, d := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		b.Run(string(d), func(b *testing.B) {
			names, line := shuffledNames(d, 1), inspect.LockLine("/lock")
			b.ReportAllocs()
			for b.Loop() {
				if len(line.Order(names, d)) != 1 {
					b.Fatal(names[0], "is not known")
				}
			}
		})
	}
}
