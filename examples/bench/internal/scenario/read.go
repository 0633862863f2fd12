package scenario

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/url"

	"github.com/keelson-dev/keelson/examples/bench/internal/load"
	"github.com/keelson-dev/keelson/examples/bench/internal/widget"
)

// These are the names of the read scenarios. With rv unset the answer is the newest state, with rv 0 any state that the server
// has.
const (
	GetUnset1  = "get/unset/1" // one client
	GetUnset16 = "get/unset/16"
	GetAny1    = "get/0/1"
	GetAny16   = "get/0/16"

	ListUnset = "list/unset"
	ListAny   = "list/0"
	ListPaged = "list/paged" // in pages of 500; one operation is all pages
	ListGzip  = "list/gzip"
	ListLabel = "list/label" // by a label that 1% of the objects have
	ListIndex = "list/label-index"
)

// gets measures GET of single objects, a different one each time.
func (s *session) gets(ctx context.Context) error {
	clients := s.target.DialAll(16)
	defer load.CloseAll(clients)
	for _, g := range []struct {
		scenario, query string
		clients         int
	}{{GetUnset1, "", 1}, {GetUnset16, "", 16}, {GetAny1, "?resourceVersion=0", 1}, {GetAny16, "?resourceVersion=0", 16}} {
		limit := load.Limit{For: s.plan.Get, Least: fewest}
		err := s.loop(ctx, g.scenario, clients[:g.clients], limit, func(ctx context.Context, c *load.Client, worker, n int) error {
			answer, err := c.Do(ctx, load.Request{Path: item(s.some(worker, n)) + g.query})
			if err == nil && answer.Size < 500 {
				return fmt.Errorf("%s answers %d bytes for an object", s.name, answer.Size)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// some returns the number of a widget, spread over the collection.
func (s *session) some(worker, n int) int { return (worker*7919 + n*104729) % s.objects }

// lists measures LIST of the collection.
func (s *session) lists(ctx context.Context) error {
	clients := s.target.DialAll(s.plan.Listers(s.objects))
	defer load.CloseAll(clients)
	limit := load.Limit{For: s.plan.List, Least: len(clients)}
	for _, l := range []struct {
		scenario string
		request  load.Request
		items    int
	}{
		{ListUnset, load.Request{Path: collection}, s.objects},
		{ListAny, load.Request{Path: collection + "?resourceVersion=0"}, s.objects},
		{ListGzip, load.Request{Path: collection, Gzip: true}, s.objects},
		{ListLabel, load.Request{Path: labelled()}, s.grouped()},
	} {
		if err := s.list(ctx, l.scenario, clients, limit, l.request, l.items); err != nil {
			return err
		}
	}
	if !s.plan.wants(ListPaged) {
		return nil
	}
	if items, err := s.pages(ctx, clients[0], countItems); err != nil || items != s.objects {
		return fmt.Errorf("%s: %d items instead of %d: %w", ListPaged, items, s.objects, err)
	}
	return s.loop(ctx, ListPaged, clients, limit, func(ctx context.Context, c *load.Client, _, _ int) error {
		_, err := s.pages(ctx, c, nil)
		return err
	})
}

// indexed measures LIST by label for a keelson with an index of the label.
func (s *session) indexed(ctx context.Context) error {
	clients := s.target.DialAll(s.plan.Listers(s.objects))
	defer load.CloseAll(clients)
	limit := load.Limit{For: s.plan.List, Least: len(clients)}
	return s.list(ctx, ListIndex, clients, limit, load.Request{Path: labelled()}, s.grouped())
}

// labelled returns the query for the widgets of one group.
func labelled() string {
	return collection + "?" + url.Values{"labelSelector": {"group=" + widget.GroupOf(0)}}.Encode()
}

// grouped returns the number of widgets in that group.
func (s *session) grouped() int {
	n := 0
	for i := range s.objects {
		if widget.GroupOf(i) == widget.GroupOf(0) {
			n++
		}
	}
	return n
}

// list checks one answer, and then measures requests within the limit. Their answers must have the same size.
func (s *session) list(ctx context.Context, scenario string, clients []*load.Client, limit load.Limit, r load.Request, items int) error {
	if !s.plan.wants(scenario) {
		return nil
	}
	r.Keep = load.KeepAll
	checker := s.target.Dial() // its buffer is as large as the answer
	defer checker.Close()
	answer, err := checker.Do(ctx, r)
	if err != nil {
		return fmt.Errorf("%s: %w", scenario, err)
	}
	if r.Gzip && !answer.Gzipped && answer.Size > compressible {
		return fmt.Errorf("%s: the answer of %d bytes is not compressed", scenario, answer.Size)
	}
	body := answer.Head
	if answer.Gzipped {
		if body, err = gunzip(body); err != nil {
			return fmt.Errorf("%s: %w", scenario, err)
		}
	}
	if got := countItems(body); got != items {
		return fmt.Errorf("%s: %d items instead of %d", scenario, got, items)
	}
	r.Keep = 0
	return s.loop(ctx, scenario, clients, limit, func(ctx context.Context, c *load.Client, _, _ int) error {
		again, err := c.Do(ctx, r)
		if err == nil && (again.Size < answer.Size-answer.Size/100 || again.Size > answer.Size+answer.Size/100+100) {
			return fmt.Errorf("%s has %d bytes, and had %d", r, again.Size, answer.Size)
		}
		return err
	})
}

// compressible is the minimum size of answers that kube-apiserver compresses.
const compressible = 128 << 10

// countItems counts the widgets in a list by their uids.
func countItems(list []byte) int { return bytes.Count(list, []byte(`"uid":"`)) }

func gunzip(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// pageSize is the limit of client-go's pager.
const pageSize = 500

// pages reads the collection page by page and returns the sum of count of each page; with nil it counts nothing.
func (s *session) pages(ctx context.Context, c *load.Client, count func([]byte) int) (int, error) {
	keep := int64(4 << 10) // the list's metadata precedes the items
	if count != nil {
		keep = load.KeepAll
	}
	sum, token := 0, ""
	for range s.objects/pageSize + 2 {
		path := collection + "?limit=" + fmt.Sprint(pageSize)
		if token != "" {
			path += "&continue=" + url.QueryEscape(token)
		}
		answer, err := c.Do(ctx, load.Request{Path: path, Keep: keep})
		if err != nil {
			return sum, err
		}
		if count != nil {
			sum += count(answer.Head)
		}
		if token = text(answer.Head, "continue"); token == "" {
			return sum, nil
		}
	}
	return sum, fmt.Errorf("the pages of %d objects do not end", s.objects)
}

// text returns the value of the first member with a name, which must be a string without escapes, or "".
func text(json []byte, member string) string {
	_, rest, ok := bytes.Cut(json, []byte(`"`+member+`":"`))
	if !ok {
		return ""
	}
	value, _, ok := bytes.Cut(rest, []byte(`"`))
	if !ok {
		return ""
	}
	return string(value)
}
