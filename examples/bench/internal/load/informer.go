package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Synced describes how an informer received all objects of a collection.
type Synced struct {
	Took  time.Duration // since Sync was called
	Asked int           // number of requests
	// Objects is the number of objects that it received.
	Objects int
}

// Sync starts n informers at once, each with a connection of its own, and returns when all of them have all objects of a
// collection. Each sends the requests of client-go's reflector: a watch that begins with the state and stays open, or pages if
// the server does not support such a watch. A request that is refused for a while is repeated when the server says so.
func (t Target) Sync(ctx context.Context, collection string, n int) ([]Synced, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := make([]Synced, n)
	began := time.Now()
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() { // ends with ctx
			f := &informer{target: t, collection: collection, transport: t.transport()}
			defer f.close()
			if err := f.sync(ctx); err != nil {
				stop(fmt.Errorf("informer %d, after %d requests: %w", i, f.asked, err))
				return
			}
			out[i] = Synced{Took: time.Since(began), Asked: f.asked, Objects: f.objects}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return out, nil
}

// informer is one client that reads all objects.
type informer struct {
	target     Target
	collection string
	transport  *http.Transport
	stream     io.Closer // nil if none is open
	asked      int
	objects    int
}

func (f *informer) close() {
	if f.stream != nil {
		f.stream.Close()
	}
	f.transport.CloseIdleConnections()
}

const (
	reflectorPause = 800 * time.Millisecond // pause of client-go's reflector after a failure
	reflectorPage  = 500                    // objects per page
	maxAsked       = 1000                   // maximum number of requests of an informer
)

// errNoStream says that the server does not support watches that begin with the state.
var errNoStream = errors.New("no watch begins with the state")

func (f *informer) sync(ctx context.Context) error {
	ask := f.watch
	for {
		wait, err := ask(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errNoStream):
			ask = f.list
			continue
		case ctx.Err() != nil || f.asked >= maxAsked:
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// send sends a request. After an error it returns how long to wait before the next one.
func (f *informer) send(ctx context.Context, query string) (*http.Response, time.Duration, error) {
	f.asked++
	r := Request{Path: f.collection + "?" + query}
	resp, err := f.target.send(ctx, f.transport, r)
	if err != nil {
		return nil, reflectorPause, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, 0, nil
	}
	defer resp.Body.Close()
	wait := reflectorPause
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		wait = time.Duration(seconds) * time.Second
	}
	return nil, wait, statusError(r, resp)
}

// watch reads the state from a stream.
func (f *informer) watch(ctx context.Context) (wait time.Duration, err error) {
	resp, wait, err := f.send(ctx, "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	if refused := new(StatusError); errors.As(err, &refused) && (refused.Code == http.StatusBadRequest || refused.Code == http.StatusUnprocessableEntity) {
		return 0, errNoStream
	}
	if err != nil {
		return wait, err
	}
	f.objects = 0
	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case err != nil:
			resp.Body.Close()
			return reflectorPause, fmt.Errorf("a stream after %d objects: %w", f.objects, err)
		case bytes.HasPrefix(line, []byte(`{"type":"ADDED"`)):
			f.objects++
		case bytes.HasPrefix(line, []byte(`{"type":"ERROR"`)):
			resp.Body.Close()
			return reflectorPause, &eventError{line: string(line[:min(len(line), 300)])}
		case bytes.Contains(line, []byte(`"k8s.io/initial-events-end":"true"`)):
			f.stream = resp.Body
			return 0, nil
		}
	}
}

// list reads the state in pages.
func (f *informer) list(ctx context.Context) (wait time.Duration, err error) {
	f.objects = 0
	query := fmt.Sprintf("resourceVersion=0&limit=%d", reflectorPage)
	for {
		resp, wait, err := f.send(ctx, query)
		if err != nil {
			return wait, err
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return reflectorPause, err
		}
		f.objects += bytes.Count(body, []byte(`"uid":`))
		next, ok := bytes.CutPrefix(body[bytes.Index(body, []byte(`"continue":"`))+1:], []byte(`continue":"`))
		if !ok {
			return 0, nil
		}
		token, _, _ := bytes.Cut(next, []byte(`"`))
		query = fmt.Sprintf("limit=%d&continue=%s", reflectorPage, token)
	}
}
