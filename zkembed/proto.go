package zkembed

import (
	"fmt"
	"maps"
	"slices"
)

// Op is a ZooKeeper operation code (ZooKeeper's ZooDefs.OpCode).
type Op int32

// The operations this server knows. OpNotify and OpCreateSession are never
// sent by clients: the first stands for watch events in a [Match], the second
// for a new session in counts.
const (
	OpNotify               Op = 0
	OpCreate               Op = 1
	OpDelete               Op = 2
	OpExists               Op = 3
	OpGetData              Op = 4
	OpSetData              Op = 5
	OpGetACL               Op = 6
	OpSetACL               Op = 7
	OpGetChildren          Op = 8
	OpSync                 Op = 9
	OpPing                 Op = 11
	OpGetChildren2         Op = 12
	OpCheck                Op = 13
	OpMulti                Op = 14
	OpCreate2              Op = 15
	OpCheckWatches         Op = 17
	OpRemoveWatches        Op = 18
	OpCreateContainer      Op = 19
	OpCreateTTL            Op = 21
	OpMultiRead            Op = 22
	OpAuth                 Op = 100
	OpSetWatches           Op = 101
	OpSASL                 Op = 102
	OpGetEphemerals        Op = 103
	OpGetAllChildrenNumber Op = 104
	OpSetWatches2          Op = 105
	OpAddWatch             Op = 106
	OpWhoAmI               Op = 107
	OpCreateSession        Op = -10
	OpCloseSession         Op = -11
)

var opNames = map[Op]string{
	OpNotify: "notify", OpCreate: "create", OpDelete: "delete", OpExists: "exists",
	OpGetData: "getData", OpSetData: "setData", OpGetACL: "getACL", OpSetACL: "setACL",
	OpGetChildren: "getChildren", OpSync: "sync", OpPing: "ping", OpGetChildren2: "getChildren2",
	OpCheck: "check", OpMulti: "multi", OpCreate2: "create2", OpCheckWatches: "checkWatches",
	OpRemoveWatches: "removeWatches", OpCreateContainer: "createContainer", OpCreateTTL: "createTTL",
	OpMultiRead: "multiRead", OpAuth: "auth", OpSetWatches: "setWatches", OpSASL: "sasl",
	OpGetEphemerals: "getEphemerals", OpGetAllChildrenNumber: "getAllChildrenNumber",
	OpSetWatches2: "setWatches2", OpAddWatch: "addWatch", OpWhoAmI: "whoAmI",
	OpCreateSession: "createSession", OpCloseSession: "closeSession",
}

// String is ZooKeeper's own name for the operation.
func (o Op) String() string {
	if n, ok := opNames[o]; ok {
		return n
	}
	return fmt.Sprintf("op(%d)", int32(o))
}

// Ops are all operations, by number.
func Ops() []Op { return slices.Sorted(maps.Keys(opNames)) }

// write reports whether the operation takes a zxid, also when it fails.
func (o Op) write() bool {
	switch o {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData,
		OpSetACL, OpCheck, OpMulti, OpCloseSession:
		return true
	}
	return false
}

// Code is a ZooKeeper error code (ZooKeeper's KeeperException.Code).
type Code int32

// The error codes that this server sends, or that [ReplyError] is useful for.
const (
	CodeOK                      Code = 0
	CodeSystemError             Code = -1
	CodeRuntimeInconsistency    Code = -2
	CodeConnectionLoss          Code = -4
	CodeMarshallingError        Code = -5
	CodeUnimplemented           Code = -6
	CodeOperationTimeout        Code = -7
	CodeBadArguments            Code = -8
	CodeUnknownSession          Code = -12
	CodeNoNode                  Code = -101
	CodeNoAuth                  Code = -102
	CodeBadVersion              Code = -103
	CodeNoChildrenForEphemerals Code = -108
	CodeNodeExists              Code = -110
	CodeNotEmpty                Code = -111
	CodeSessionExpired          Code = -112
	CodeInvalidACL              Code = -114
	CodeAuthFailed              Code = -115
	CodeSessionMoved            Code = -118
	CodeNotReadOnly             Code = -119
	CodeNoWatcher               Code = -121
	CodeQuotaExceeded           Code = -125
	CodeThrottledOp             Code = -127
)

var codeNames = map[Code]string{
	CodeOK: "OK", CodeSystemError: "SystemError", CodeRuntimeInconsistency: "RuntimeInconsistency",
	CodeConnectionLoss: "ConnectionLoss", CodeMarshallingError: "MarshallingError", CodeUnimplemented: "Unimplemented",
	CodeOperationTimeout: "OperationTimeout", CodeBadArguments: "BadArguments", CodeUnknownSession: "UnknownSession",
	CodeNoNode: "NoNode", CodeNoAuth: "NoAuth", CodeBadVersion: "BadVersion",
	CodeNoChildrenForEphemerals: "NoChildrenForEphemerals", CodeNodeExists: "NodeExists", CodeNotEmpty: "NotEmpty",
	CodeSessionExpired: "SessionExpired", CodeInvalidACL: "InvalidACL", CodeAuthFailed: "AuthFailed",
	CodeSessionMoved: "SessionMoved", CodeNotReadOnly: "NotReadOnly", CodeNoWatcher: "NoWatcher",
	CodeQuotaExceeded: "QuotaExceeded", CodeThrottledOp: "ThrottledOp",
}

// String is the code's name in Java's KeeperException.
func (c Code) String() string {
	if n, ok := codeNames[c]; ok {
		return n
	}
	return fmt.Sprintf("code(%d)", int32(c))
}

// Codes are all codes, by number.
func Codes() []Code { return slices.Sorted(maps.Keys(codeNames)) }

// Stat is a node's metadata, with ZooKeeper's field names and meanings. Times
// are milliseconds since 1970.
type Stat struct {
	Czxid, Mzxid            int64
	Ctime, Mtime            int64
	Version, Cversion       int32
	Aversion                int32
	EphemeralOwner          int64
	DataLength, NumChildren int32
	Pzxid                   int64
}

func (e encoder) stat(s Stat) encoder {
	e = e.long(s.Czxid).long(s.Mzxid).long(s.Ctime).long(s.Mtime).int(s.Version).int(s.Cversion).int(s.Aversion)
	return e.long(s.EphemeralOwner).int(s.DataLength).int(s.NumChildren).long(s.Pzxid)
}

// ACL grants the permission bits (read 1, write 2, create 4, delete 8,
// admin 16) to one identity.
type ACL struct {
	Perms      int32
	Scheme, ID string
}

func (e encoder) acls(v []ACL) encoder {
	e = e.int(int32(len(v)))
	for _, a := range v {
		e = e.int(a.Perms).string(a.Scheme).string(a.ID)
	}
	return e
}

// acls reads a list of ACLs; one that is null is empty, and refused as such. An
// id counts only where its scheme looks at it.
func (d *decoder) acls() []ACL {
	n := d.Int32()
	if n < -1 || int(n) > len(d.Rest)/12 {
		d.Fail()
	}
	var v []ACL
	for ; n > 0 && d.Err == nil; n-- {
		a := ACL{d.Int32(), d.String(), d.String()}
		switch a.Scheme {
		case "world", "digest", "ip":
			d.Refuse(a.ID)
		}
		v = append(v, a)
	}
	return v
}

// operation is one decoded request on a path, alone or inside a multi. Which
// fields count depends on op.
type operation struct {
	op      Op
	path    string
	data    []byte
	acl     []ACL
	flags   int32
	ttl     int64
	version int32
	watch   bool
}

// operation reads the body of a request that is about one path.
func (d *decoder) operation(op Op) operation {
	o := operation{op: op, path: d.String()}
	switch op {
	case OpCheck, OpSetData, OpSetACL, OpAddWatch, OpRemoveWatches:
	default:
		d.Refuse(o.path)
	}
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		o.data, o.acl, o.flags = d.Buffer(), d.acls(), d.Int32()
		if op == OpCreateTTL {
			o.ttl = d.Int64()
		} else {
			o.ttl = -1
		}
	case OpDelete, OpCheck:
		o.version = d.Int32()
	case OpSetData:
		o.data, o.version = d.Buffer(), d.Int32()
	case OpSetACL:
		o.acl, o.version = d.acls(), d.Int32()
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		o.watch = d.Bool()
	case OpAddWatch, OpCheckWatches, OpRemoveWatches:
		o.flags = d.Int32()
	}
	return o
}
