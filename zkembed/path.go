package zkembed

import "strings"

// parentOf returns the parent's path; the parent of a top-level node is "/".
func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

func nameOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// splittable is the first check on a path that is to be created or deleted:
// it has a parent to look for. ZooKeeper looks for the parent before it looks
// at the rest of the path, and so the order of errors depends on it.
func splittable(path string) bool {
	return strings.Contains(path, "/") && !strings.Contains(path, "\x00")
}

// validPath is ZooKeeper's rule for paths.
func validPath(path string) bool {
	if path == "/" {
		return true
	}
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return false
	}
	for seg := range strings.SplitSeq(path[1:], "/") {
		if seg == "" || seg == "." || seg == ".." {
			return false
		}
	}
	return strings.IndexFunc(path, forbiddenRune) < 0
}

// forbiddenRune follows Java's view of characters: everything outside the
// basic plane is a pair of surrogates there, and surrogates are forbidden.
func forbiddenRune(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}

// special are the nodes that are always there and cannot be deleted.
func special(path string) bool {
	switch path {
	case "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return true
	}
	return false
}
