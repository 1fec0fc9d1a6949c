package zktest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

// superUser may do anything on real test servers, so that clean-up is not
// stopped by a test's ACLs. superDigest is how a server's configuration names
// it: user:base64(sha1(user:password)).
const (
	superUser   = "super:zktest"
	superDigest = "super:/h+gcH12ycQxBhZ4ZIb28S4Njto="
)

// walk visits root and everything below it, parents first. Nodes that are
// deleted meanwhile are passed over.
func walk(conn *zk.Conn, root string, visit func(path string, stat *zk.Stat)) error {
	children, stat, err := conn.Children(root)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", root, err)
	}
	visit(root, stat)
	for _, child := range children {
		if err := walk(conn, root+"/"+child, visit); err != nil {
			return err
		}
	}
	return nil
}

// removeTree deletes root and everything below it, deepest first.
func removeTree(conn *zk.Conn, root string) error {
	var paths []string
	if err := walk(conn, root, func(path string, _ *zk.Stat) { paths = append(paths, path) }); err != nil {
		return err
	}
	slices.Reverse(paths)
	for batch := range slices.Chunk(paths, 500) {
		if err := removeAll(conn, batch); err != nil {
			return err
		}
	}
	return nil
}

// removeAll deletes nodes in one transaction, or one by one if some of them go
// by themselves.
func removeAll(conn *zk.Conn, paths []string) error {
	var ops []any
	for _, path := range paths {
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
	}
	if _, err := conn.Multi(ops...); err == nil {
		return nil
	}
	for _, path := range paths {
		if err := conn.Delete(path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return fmt.Errorf("deleting %s: %w", path, err)
		}
	}
	return nil
}
