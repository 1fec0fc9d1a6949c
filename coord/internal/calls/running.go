package calls

// Running counts calls under way. Its owner's lock guards it.
type Running struct {
	n    int
	idle chan struct{}
}

// Begin notes that a call has begun.
func (r *Running) Begin() {
	r.n++
	if r.n == 1 {
		r.idle = make(chan struct{})
	}
}

// End notes that a call has ended.
func (r *Running) End() {
	r.n--
	if r.n == 0 {
		close(r.idle)
		r.idle = nil
	}
}

// Idle is closed when no call is under way any more; nil if none is now.
func (r *Running) Idle() <-chan struct{} { return r.idle }
