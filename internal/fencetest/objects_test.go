package fencetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/fence"
)

// put writes a small object in an object store. Its first line is the token of
// who wrote it: in the bytes, because the store makes the ETag of them.
func put(ctx context.Context, c *http.Client, object string, token int64, body []byte) error {
	for {
		newest, etag, err := newestOf(ctx, c, object)
		if err != nil {
			return err
		}
		if token <= 0 || token < newest {
			return fmt.Errorf("%s: token %d after %d: %w", object, token, newest, fence.ErrStale)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, object,
			bytes.NewReader(fmt.Appendf(nil, "%d\n%s", token, body)))
		if err != nil {
			return err
		}
		if etag == "" {
			req.Header.Set("If-None-Match", "*") // unless there is one by now
		} else {
			req.Header.Set("If-Match", etag) // unless it is another by now
		}
		resp, err := c.Do(req) // signed, with a real store
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK:
			return nil
		case http.StatusPreconditionFailed, http.StatusConflict:
			continue // somebody has written: a newer holder, or this one, whose reply was lost
		}
		return fmt.Errorf("put %s: %s", object, resp.Status)
	}
}

// newestOf reads an object's token, and the ETag of what has this token, or
// none if there is no such object.
func newestOf(ctx context.Context, c *http.Client, object string) (token int64, etag string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, object, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotFound:
		return 0, "", nil
	case http.StatusOK:
		_, err = fmt.Fscanf(resp.Body, "%d\n", &token)
		return token, resp.Header.Get("ETag"), err
	}
	return 0, "", fmt.Errorf("get %s: %s", object, resp.Status)
}

// objectStore starts one that refuses what its conditions exclude, and returns
// the address of an object there.
func objectStore(t *testing.T) (object string) {
	t.Helper()
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("bucket"))
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	return server.URL + "/bucket/manifest"
}

func bodyOf(t *testing.T, object string) string {
	t.Helper()
	resp, err := http.Get(object) //nolint:gosec // the test's own
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

// paused is a transport that is paused before its first write.
type paused struct {
	meanwhile func()
	once      sync.Once
}

func (p *paused) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPut {
		p.once.Do(p.meanwhile)
	}
	return http.DefaultTransport.RoundTrip(req)
}

// The former holder has looked at the object when the next one writes: the
// same, even.
func TestAnObjectStoreRefusesAPausedHoldersWrite(t *testing.T) {
	object := objectStore(t)
	for former := int64(1); former < 80; former += 2 { // in the first round, there is no object
		next := former + 1
		late := &http.Client{Transport: &paused{meanwhile: func() {
			require.NoError(t, put(t.Context(), http.DefaultClient, object, next, []byte("the same")))
		}}}
		require.ErrorIs(t, put(t.Context(), late, object, former, []byte("the same")), fence.ErrStale)
		require.Equal(t, fmt.Sprintf("%d\nthe same", next), bodyOf(t, object))
	}
	require.NoError(t, fence.Check(t.Context(), 1<<40, func(ctx context.Context, token int64) error {
		return put(ctx, http.DefaultClient, object, token, nil)
	}))
}

func TestTheNewestOfManyWritersOfAnObjectStays(t *testing.T) {
	object := objectStore(t)
	writeByMany(t, func(token int64) error { return put(t.Context(), http.DefaultClient, object, token, []byte("x")) })
	require.Equal(t, "16\nx", bodyOf(t, object))
}
