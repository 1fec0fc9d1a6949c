package coord

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// The requests to give up a hold that other programs write into its node.
const (
	revokeCurator = "__REVOKE__" // Curator
	revokePlain   = "unlock"     // ZooKeeper's recipe page
)

// IsRevocation reports whether a claim's data are a request to give up what it
// holds, in either dialect: the request alone, as other programs write it, or
// as the first line, before the data that the claim had. No claim of your own
// may have such data.
func IsRevocation(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return string(line) == revokeCurator || string(line) == revokePlain
}

// OwnData returns the data that a claim was made with, also where they stand
// behind a request to give up. Nil: the request took their place.
func OwnData(data []byte) []byte {
	if IsRevocation(data) {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return data
}

// mostKept is the size up to which data are kept behind a request, so that the
// node stays smaller than the largest packet.
const mostKept = 1 << 16

// requestKeeping returns a request to the claim of these data that keeps them.
func requestKeeping(data []byte, request string) []byte {
	if len(data) == 0 || len(data) > mostKept {
		return []byte(request)
	}
	return slices.Concat([]byte(request), []byte("\n"), data)
}

// namesOwner reports whether data begin with an [Client.Identity], "name host
// pid", as those of this module's claims do. What heeds only the bare request
// does not: a lock of Curator's that can be revoked has no data, an address
// otherwise; Kazoo heeds none.
func namesOwner(data []byte) bool {
	line, _, _ := strings.Cut(string(data), "\n")
	words := strings.Split(line, " ")
	_, err := strconv.ParseUint(words[len(words)-1], 10, 32)
	return len(words) >= 3 && err == nil
}
