package coordtest

import (
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

// UnknownRecipes are what the nodes of contenders of recipes that are not known
// begin with, before the number that the server appends.
var UnknownRecipes = []string{
	"",                     // Hadoop's and others' bare numbers
	"x-72057602234810369-", // ZooKeeper's own WriteLock
	"n_",                   // elections after the recipes' page
	"lock-",                // locks after the recipes' page
	"e8bd1c07b1a3-n_",      // Apache Helix' and others' elections
	"zlock#0b1f7a3c-98aa-4a53-8d0b-5f2f3d1c2e4a#", // zookeeper clients for Node.js
	"72057602234810369-10.0.0.7:8983_solr-n_",     // Solr's elections
	"_c_0b1f7a3c-98aa-4a53-8d0b-5f2f3d1c2e4a-n_",  // protected nodes of Curator's
	"test1_lock_", // Vitess and others with a name of one's own
}

// Described are dialects of the shapes in [UnknownRecipes], by what names begin
// with.
var Described = map[string]coord.Dialect{
	"":                     coord.Numbers,
	"x-72057602234810369-": coord.ZooKeeper,
	"n_":                   coord.Description{Prefix: "n_"}.Dialect(),
	"lock-":                coord.Description{Prefix: "lock-"}.Dialect(),
	"e8bd1c07b1a3-n_":      coord.Description{Prefix: "{label:me}-n_"}.Dialect(),
	"zlock#0b1f7a3c-98aa-4a53-8d0b-5f2f3d1c2e4a#": coord.Description{Prefix: "zlock#{guid}#"}.Dialect(),
	"72057602234810369-10.0.0.7:8983_solr-n_": coord.Description{
		Prefix: "{session}-{label:10.0.0.8:8983_solr}-n_",
	}.Dialect(),
	"_c_0b1f7a3c-98aa-4a53-8d0b-5f2f3d1c2e4a-n_": coord.Description{Prefix: "_c_{guid}-n_"}.Dialect(),
	"test1_lock_": coord.Named("test1"),
}

// Unknown puts a contender of an unknown recipe at the end of a directory, and
// returns its node and what removes it.
func (b Bubble) Unknown(dir, begins string) (node string, remove func()) {
	b.Helper()
	c := b.Open()
	require.NoError(b, c.EnsureDir(b.Context(), dir))
	made, err := c.Txn(b.Context(), coord.AppendOp(dir+"/"+begins, nil))
	require.NoError(b, err)
	return made[0].Path, func() { require.NoError(b, c.Delete(b.Context(), made[0].Path, -1)) }
}
