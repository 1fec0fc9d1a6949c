package calls

import (
	"context"
	"reflect"
	"time"
)

// Sleep returns when one of the channels is closed, and at a time unless that
// is zero. With more channels than [reflect.Select] takes, it also returns
// every second.
func Sleep(ctx context.Context, wake []<-chan struct{}, at time.Time) {
	if !at.IsZero() {
		due, cancel := context.WithDeadline(ctx, at)
		defer cancel()
		wake = append(wake, due.Done())
	}
	receive(wake)
}

// most is how many channels reflect.Select takes.
const most = 1 << 16

// receive returns when there is something to receive from one of the channels.
func receive(from []<-chan struct{}) {
	var few [6]<-chan struct{}
	if copy(few[:], from) == len(from) {
		select {
		case <-few[0]:
		case <-few[1]:
		case <-few[2]:
		case <-few[3]:
		case <-few[4]:
		case <-few[5]:
		}
		return
	}
	cases := make([]reflect.SelectCase, 0, len(from))
	receives := func(c any) {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)})
	}
	for _, c := range from[:min(len(from), most-1)] {
		receives(c)
	}
	if len(from) >= most {
		receives(time.After(time.Second))
	}
	reflect.Select(cases)
}
