package dialect

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// The requests to give up a hold, which other programs write into its node.
const (
	revokeCurator = "__REVOKE__" // Curator
	revokePlain   = "unlock"     // ZooKeeper's recipe page
)

// Request returns the data that ask a claim of the dialect to give up. They
// keep the claim's own data, which stand behind the request; without any, or if
// these are large, the request stands alone.
func Request(d Dialect, own []byte) []byte {
	request := revokeCurator
	if d == Kazoo {
		request = revokePlain
	}
	if len(own) == 0 || len(own) > mostKept {
		return []byte(request)
	}
	return slices.Concat([]byte(request), []byte("\n"), own)
}

// mostKept is the size up to which data are kept behind a request: the node
// must stay smaller than the largest packet.
const mostKept = 1 << 16

// IsRequest reports whether data are a request of either dialect: the request
// alone, as other programs write it, or as the first line, before the data that
// the claim had.
func IsRequest(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return string(line) == revokeCurator || string(line) == revokePlain
}

// Kept returns what stands behind a request to give up, or the data as they are
// where there is none. Nil: the request took their place.
func Kept(data []byte) []byte {
	if IsRequest(data) {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return data
}

// underLine begins the last line of the data of a claim that was made under
// holds. It has the names of their nodes, the outermost first, between slashes,
// which no name contains. Curator and Kazoo do not read the data of claims.
const underLine = "\nCOORD_HELD="

// Under adds the names of the nodes of holds to the data of a claim.
func Under(data []byte, nodes []string) []byte {
	if len(nodes) == 0 {
		return data
	}
	return slices.Concat(data, []byte(underLine), []byte(strings.Join(nodes, "/")))
}

// Split takes the names that Under has added from data.
func Split(data []byte) (own []byte, under []string) {
	own, line, found := bytes.Cut(data, []byte(underLine))
	if found {
		under = strings.Split(string(line), "/")
	}
	return own, under
}

// Own returns the data that a claim was made with, also where they stand behind
// a request to give up. Nil: the request took their place.
func Own(data []byte) []byte {
	own, _ := Split(Kept(data))
	return own
}

// NamesOwner reports whether data begin with an identity, "name host pid", as
// claims of this module do. Curator obeys only a bare request. Its revocable
// locks have no data, its other nodes an address, so neither looks like an
// identity. Kazoo obeys none.
func NamesOwner(data []byte) bool {
	line, _, _ := strings.Cut(string(data), "\n")
	words := strings.Split(line, " ")
	_, err := strconv.ParseUint(words[len(words)-1], 10, 32)
	return len(words) >= 3 && err == nil
}

// Notice returns the path of the node into which requests to a claim are
// written: its own node, except for the leader of an election in Curator's
// dialect, whose notice has the node's name without the number.
func Notice(node string) string {
	self, _ := Parse(node[strings.LastIndexByte(node, '/')+1:], nil)
	if self.Kind != Latch || self.Dialect != Curator {
		return node
	}
	marker := Curator.marker(Latch)
	return node[:strings.LastIndex(node, marker)+len(marker)]
}
