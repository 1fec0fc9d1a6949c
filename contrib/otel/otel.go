// Package otel makes OpenTelemetry spans of waits and holds.
//
//	m, err := lock.New(client, "/locks/report")
//	...
//	h, err := otel.Acquire(ctx, tracer, "/locks/report", m.Acquire)
//
// works for everything that is acquired with a context and lasts: mutexes,
// sides of read/write locks, semaphores, multi-locks, terms of an election.
//
// # Spans
//
//	zkcoord.wait    child of the caller's span: from the call to the grant, or
//	                to the error, which is recorded
//	zkcoord.hold    child of the caller's span, with a link to the wait: from
//	                the grant to the end of the hold. A loss is an error, and
//	                its cause is recorded
//
// Both have the attribute zkcoord.path, and for a [coord.Hold] also
// zkcoord.node, zkcoord.session and, if it is exclusive, zkcoord.token.
//
// Not guaranteed: that the hold's span ends before the caller's does. If a hold
// outlasts its caller, its span does so, too.
package otel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/zkcoord/zkcoord/coord"
)

// Held is what was acquired.
type Held interface {
	Done() <-chan struct{}
	Err() error
}

// Acquire acquires in a span, and has the hold in another until it ends.
func Acquire[H Held](
	ctx context.Context, tracer trace.Tracer, path string, acquire func(context.Context) (H, error),
) (H, error) {
	at := trace.WithAttributes(attribute.String("zkcoord.path", path))
	waiting, wait := tracer.Start(ctx, "zkcoord.wait", at)
	h, err := acquire(waiting)
	if err != nil {
		fail(wait, err)
		wait.End()
		return h, err
	}
	_, hold := tracer.Start(ctx, "zkcoord.hold", at, trace.WithLinks(trace.LinkFromContext(waiting)))
	about := attributes(h)
	wait.SetAttributes(about...)
	wait.End()
	hold.SetAttributes(about...)
	go func() {
		defer hold.End()
		<-h.Done()
		if err := h.Err(); errors.Is(err, coord.ErrLost) {
			fail(hold, err)
		}
	}()
	return h, nil
}

func fail(span trace.Span, err error) {
	span.RecordError(err)
	span.SetStatus(codes.Error, err.Error())
}

func attributes(held any) []attribute.KeyValue {
	h, ok := held.(coord.Held)
	if !ok {
		return nil
	}
	about := []attribute.KeyValue{
		attribute.String("zkcoord.node", h.Node()),
		attribute.String("zkcoord.session", fmt.Sprintf("0x%x", uint64(h.Session()))),
	}
	if token := h.Token(); token != 0 {
		about = append(about, attribute.Int64("zkcoord.token", token))
	}
	return about
}
