package zkembed

// multi reads the operations of a multi. Those that cannot be part of one
// make the packet malformed.
func (d *decoder) multi() []operation {
	return d.operations(func(op Op) bool {
		switch op {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck:
			return true
		}
		return false
	})
}

func (d *decoder) multiRead() []operation {
	return d.operations(func(op Op) bool { return op == OpGetData || op == OpGetChildren })
}

func (d *decoder) operations(fits func(Op) bool) []operation {
	var ops []operation
	for d.err == nil {
		op, done := Op(d.int()), d.bool()
		d.int()
		if done {
			break
		}
		if !fits(op) {
			d.fail()
			break
		}
		o := d.operation(op).inMulti()
		d.refuse(o.path)
		ops = append(ops, o)
	}
	return ops
}

// inMulti: the flags of a create inside a multi, rather than its operation
// code, say what it makes, and create2 is answered as create.
func (o operation) inMulti() operation {
	switch o.op {
	case OpCreate, OpCreate2, OpCreateContainer:
		o.op = OpCreate
		if o.flags == flagContainer {
			o.op = OpCreateContainer
		}
	}
	return o
}

func (e *encoder) multiHeader(op Op, done bool, code Code) {
	e.int(int32(op))
	e.bool(done)
	e.int(int32(code))
}

// multiBody is the reply to a multi. When one operation failed, all results
// are errors: 0 stands before the one that failed.
func multiBody(results []result) []byte {
	e := encoder{}
	ok := true
	for _, r := range results {
		ok = ok && r.code == CodeOK
	}
	for _, r := range results {
		if !ok {
			e.multiHeader(-1, false, r.code)
			e.int(int32(r.code))
			continue
		}
		switch r.op {
		case OpCreateContainer, OpCreateTTL:
			e.multiHeader(OpCreate2, false, CodeOK)
		default:
			e.multiHeader(r.op, false, CodeOK)
		}
		e.result(r)
	}
	e.multiHeader(-1, true, -1)
	return e.b
}

// readMulti answers a multiRead: each part succeeds or fails by itself.
func (c *conn) readMulti(body []byte) response {
	d := &decoder{b: body}
	ops := d.multiRead()
	if d.err != nil {
		return failed(CodeMarshallingError)
	}
	e := encoder{}
	for _, o := range ops {
		if len(e.b) > maxUnread {
			return response{code: CodeSystemError, last: true}
		}
		o.watch = false
		if resp := c.readPath(o); resp.code != CodeOK {
			e.multiHeader(-1, false, resp.code)
			e.int(int32(resp.code))
		} else {
			e.multiHeader(o.op, false, CodeOK)
			e.b = append(e.b, resp.body...)
		}
	}
	e.multiHeader(-1, true, -1)
	return response{body: e.b}
}
