package otel_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/zkcoord/zkcoord/contrib/otel"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestWaitAndHoldAreSpans(t *testing.T) {
	srv, err := zkembed.Start()
	require.NoError(t, err)
	t.Cleanup(func() { _ = srv.Close() })
	client, err := coord.Open(t.Context(), srv.ConnectString())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	m, err := lock.New(client, "/jobs")
	require.NoError(t, err)

	spans := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))
	tracer := provider.Tracer("test")
	ended := func(n int) tracetest.SpanStubs {
		require.Eventually(t, func() bool { return len(spans.GetSpans()) >= n }, 20*time.Second, time.Millisecond)
		defer spans.Reset()
		return spans.GetSpans()
	}

	ctx, caller := tracer.Start(t.Context(), "caller")
	h, err := otel.Acquire(ctx, tracer, "/jobs", m.Acquire)
	require.NoError(t, err)
	wait := ended(1)[0]
	require.Equal(t, "zkcoord.wait", wait.Name)
	require.Equal(t, caller.SpanContext().SpanID(), wait.Parent.SpanID())
	require.NoError(t, h.Release(t.Context()))
	hold := ended(1)[0]
	require.Equal(t, "zkcoord.hold", hold.Name)
	require.Equal(t, caller.SpanContext().SpanID(), hold.Parent.SpanID())
	require.Equal(t, wait.SpanContext.SpanID(), hold.Links[0].SpanContext.SpanID())
	require.False(t, hold.StartTime.After(hold.EndTime))
	require.Equal(t, codes.Unset, hold.Status.Code)
	about := map[string]any{}
	for _, a := range hold.Attributes {
		about[string(a.Key)] = a.Value.AsInterface()
	}
	require.Equal(t, "/jobs", about["zkcoord.path"])
	require.Equal(t, h.Node(), about["zkcoord.node"])
	require.Equal(t, h.Token(), about["zkcoord.token"])

	h, err = otel.Acquire(ctx, tracer, "/jobs", m.Acquire)
	require.NoError(t, err)
	ended(1)
	_, err = otel.Acquire(ctx, tracer, "/jobs", m.TryAcquire)
	require.ErrorIs(t, err, coord.ErrBusy)
	failed := ended(1)[0]
	require.Equal(t, "zkcoord.wait", failed.Name)
	require.Equal(t, codes.Error, failed.Status.Code)
	require.NoError(t, srv.ExpireSession(h.Session()))
	lost := ended(1)[0]
	require.Equal(t, "zkcoord.hold", lost.Name)
	require.Equal(t, codes.Error, lost.Status.Code)
	require.Contains(t, lost.Status.Description, "expired")
	require.Len(t, lost.Events, 1, "the cause is recorded")
}
