package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Client asks a server of another process. Its methods may be called from any
// goroutine.
type Client struct{ base string }

// NewClient takes the URL that `zkcoord server --control` printed.
func NewClient(url string) *Client { return &Client{strings.TrimSuffix(url, "/")} }

// Inject puts a fault in force.
func (c *Client) Inject(ctx context.Context, f Fault) (State, error) {
	return ask[State](ctx, c, http.MethodPost, "/faults", f)
}

// Fault is a fault in force, with how often it has struck.
func (c *Client) Fault(ctx context.Context, id int) (State, error) {
	return ask[State](ctx, c, http.MethodGet, fmt.Sprintf("/faults/%d", id), nil)
}

// Faults are all in force, in the order in which they began.
func (c *Client) Faults(ctx context.Context) ([]State, error) {
	return ask[[]State](ctx, c, http.MethodGet, "/faults", nil)
}

// Remove ends a fault, and returns how often it struck.
func (c *Client) Remove(ctx context.Context, id int) (State, error) {
	return ask[State](ctx, c, http.MethodDelete, fmt.Sprintf("/faults/%d", id), nil)
}

// RemoveAll ends all faults.
func (c *Client) RemoveAll(ctx context.Context) ([]State, error) {
	return ask[[]State](ctx, c, http.MethodDelete, "/faults", nil)
}

// Sessions are the live sessions, oldest first.
func (c *Client) Sessions(ctx context.Context) ([]SessionInfo, error) {
	return ask[[]SessionInfo](ctx, c, http.MethodGet, "/sessions", nil)
}

// ExpireSession ends a session, with its ephemeral nodes.
func (c *Client) ExpireSession(ctx context.Context, s Session) error {
	_, err := ask[any](ctx, c, http.MethodDelete, "/sessions/"+s.String(), nil)
	return err
}

// DropConn cuts a session's connection.
func (c *Client) DropConn(ctx context.Context, s Session) error {
	_, err := ask[any](ctx, c, http.MethodDelete, "/sessions/"+s.String()+"/connection", nil)
	return err
}

// DropConns cuts all connections, and returns how many there were.
func (c *Client) DropConns(ctx context.Context) (int, error) {
	answer, err := ask[map[string]int](ctx, c, http.MethodDelete, "/connections", nil)
	return answer["cut"], err
}

// Requests are the numbers of requests since the start, by operation.
func (c *Client) Requests(ctx context.Context) (map[string]int, error) {
	return ask[map[string]int](ctx, c, http.MethodGet, "/requests", nil)
}

// Watches are all clients' watches.
func (c *Client) Watches(ctx context.Context) (Watches, error) {
	return ask[Watches](ctx, c, http.MethodGet, "/watches", nil)
}

// Nodes are the nodes whose paths begin so, sorted by path; all, if it is
// empty.
func (c *Client) Nodes(ctx context.Context, pathPrefix string) ([]Node, error) {
	return ask[[]Node](ctx, c, http.MethodGet, "/nodes?path_prefix="+url.QueryEscape(pathPrefix), nil)
}

// ask writes v as JSON unless it is nil, and reads the answer.
func ask[T any](ctx context.Context, c *Client, method, path string, v any) (answer T, err error) {
	if err = c.exchange(ctx, method, path, v, &answer); err != nil {
		err = fmt.Errorf("control: %s %s: %w", method, path, err)
	}
	return answer, err
}

// plain uses no proxy, and leaves no connection behind.
var plain = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func (c *Client) exchange(ctx context.Context, method, path string, v, answer any) error {
	var body bytes.Buffer
	if v != nil {
		if err := json.NewEncoder(&body).Encode(v); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, &body)
	if err != nil {
		return withoutToken(err)
	}
	response, err := plain.Do(r)
	if err != nil {
		return withoutToken(err)
	}
	defer func() { _ = response.Body.Close() }()
	decoder := json.NewDecoder(response.Body)
	if response.StatusCode == http.StatusOK {
		return decoder.Decode(answer)
	}
	var refused struct {
		Error string `json:"error"`
	}
	if decoder.Decode(&refused) != nil || refused.Error == "" {
		refused.Error = response.Status
	}
	return errors.New(refused.Error)
}

// withoutToken drops the URL from an error: a test's output is for everybody.
func withoutToken(err error) error {
	if in := (*url.Error)(nil); errors.As(err, &in) {
		return in.Err
	}
	return err
}
