package request_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/request"
)

func TestLatencyAddsUpThePartsOfARequest(t *testing.T) {
	var l request.Latency
	ctx := request.WithLatency(t.Context(), &l)
	if request.LatencyFrom(ctx) != &l || request.LatencyFrom(t.Context()) != nil {
		t.Error("the context has another Latency")
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { request.LatencyFrom(ctx).Add(request.Storing, time.Millisecond) })
	}
	all.Wait()
	request.Took(ctx, request.Decoding, time.Now().Add(-time.Second))
	request.Took(context.Background(), request.Decoding, time.Now().Add(-time.Second))
	l.Add(request.Writing, math.MaxInt64)
	l.Add(request.Writing, math.MaxInt64)
	l.Add(request.Encoding, -time.Second)
	l.Add(-1, time.Second)
	l.Add(99, time.Second)
	var names []string
	for p, took := range l.All {
		names = append(names, p.String())
		if took != l.Of(p) {
			t.Errorf("%s took %v and %v", p, took, l.Of(p))
		}
	}
	if want := []string{"decode", "storage", "write"}; !slices.Equal(names, want) {
		t.Errorf("the parts are %q, want %q", names, want)
	}
	if got := l.Of(request.Storing); got != 10*time.Millisecond {
		t.Errorf("the storage took %v", got)
	}
	if got := l.Of(request.Decoding); got < time.Second || got > time.Hour {
		t.Errorf("decoding took %v", got)
	}
	if got := l.Of(request.Writing); got < time.Hour || got > 2*time.Hour {
		t.Errorf("writing took %v", got)
	}
	if request.Part(99).String() != "unknown" || l.Of(99) != 0 {
		t.Error("part 99 is known")
	}
}

func TestNoLatencyRecordsNothing(t *testing.T) {
	var none *request.Latency
	none.Add(request.Storing, time.Second)
	for range none.All {
		t.Error("it has a part")
	}
}
