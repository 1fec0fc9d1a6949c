package zkembed

// result is the outcome of one operation of a write request.
type result struct {
	op   Op
	code Code
	path string
	stat Stat
}

// write carries out a write request under one zxid, which it takes whether it
// succeeds or not. mu is held.
func (s *Server) write(c *conn, r request) response {
	if r.op == OpCloseSession {
		c.closing = true
		s.endSession(c.session)
		return response{last: true}
	}
	by := author{c.session.id, c.ids}
	d := &decoder{b: r.body}
	ops, multi := []operation(nil), r.op == OpMulti
	if multi {
		ops = d.multi()
	} else {
		ops = []operation{d.operation(r.op)}
	}
	t := s.begin()
	resp := response{}
	if d.err != nil {
		s.commit(t)
		resp.code = CodeMarshallingError
		return resp
	}
	results, changes := s.leader.tree.perform(ops, by, t)
	t.changes = changes
	s.commit(t)
	if multi {
		resp.body = multiBody(results)
	} else {
		e := encoder{}
		e.result(results[0])
		resp.code, resp.body = results[0].code, e.b
	}
	return resp
}

// perform carries out all the operations or none.
func (t *tree) perform(ops []operation, by author, tx txn) ([]result, []change) {
	results := make([]result, len(ops))
	var changes []change
	var undo []func()
	for i, o := range ops {
		ch, code := t.prepare(o, by)
		if code != CodeOK {
			for j := len(undo) - 1; j >= 0; j-- {
				undo[j]()
			}
			return rolledBack(ops, i, code), nil
		}
		undo = append(undo, t.apply(ch, tx.zxid, tx.ms))
		results[i] = result{op: o.op, path: ch.path}
		if n := t.get(ch.path); n != nil {
			results[i].stat = n.stat()
		}
		if ch.op != OpCheck {
			changes = append(changes, ch)
		}
	}
	return results, changes
}

// rolledBack are the results of a request whose operation i failed.
func rolledBack(ops []operation, i int, code Code) []result {
	results := make([]result, len(ops))
	for j := range results {
		results[j].op = ops[j].op
		if j > i {
			results[j].code = CodeRuntimeInconsistency
		}
	}
	results[i].code = code
	return results
}

// result writes the body that answers one successful operation.
func (e *encoder) result(r result) {
	switch r.op {
	case OpCreate:
		e.string(r.path)
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		e.string(r.path)
		e.stat(r.stat)
	case OpSetData, OpSetACL:
		e.stat(r.stat)
	}
}
