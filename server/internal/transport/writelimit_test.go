package transport

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// patient is a ResponseWriter that records when its write was ended.
type patient struct {
	http.ResponseWriter
	at time.Time
	n  atomic.Int32
}

func (p *patient) SetWriteDeadline(time.Time) error {
	p.at = time.Now()
	p.n.Add(1)
	return nil
}

// TestWriteLimit checks that each write has the limit from its own start, to the nanosecond, whatever other writes do.
func TestWriteLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 10 * time.Second
		p := &WriteLimit{Limit: limit}
		var w [4]Write
		var to [4]patient
		for i := range w {
			p.Join(&w[i], http.NewResponseController(&to[i]))
		}
		start := time.Now()
		at := func(d time.Duration) { time.Sleep(time.Until(start.Add(d))); synctest.Wait() }
		p.Begins(&w[0])
		at(3 * time.Second)
		p.Begins(&w[1])
		at(4 * time.Second)
		if !p.Ends(&w[0]) {
			t.Error("the first is given up")
		}
		p.Begins(&w[0]) // anew
		at(13*time.Second - 1)
		if to[1].n.Load() != 0 {
			t.Error("the second is given up too early")
		}
		p.Begins(&w[2])
		at(time.Minute)
		for i, want := range []time.Duration{14 * time.Second, 13 * time.Second, 23*time.Second - 1, 0} {
			switch {
			case want == 0 && to[i].n.Load() != 0, want != 0 && (to[i].n.Load() != 1 || to[i].at.Sub(start) != want):
				t.Errorf("%d was given up %d times, after %v, want %v", i, to[i].n.Load(), to[i].at.Sub(start), want)
			}
			if p.Ends(&w[i]) != (want == 0) {
				t.Errorf("%d is not told whether it was given up", i)
			}
		}
		p.Begins(&w[3]) // the timer was not set
		p.Leave(&w[1])
		p.Leave(&w[0])
		p.Leave(&w[2])
		if at(time.Minute + limit); to[3].n.Load() != 1 {
			t.Error("the last is not given up")
		}
		p.Leave(&w[3])
		if p.timer != nil || p.writes != nil || p.armed.Load() {
			t.Error("something is left when all are gone")
		}
		p.Join(&w[0], http.NewResponseController(&to[0]))
		p.Begins(&w[0])
		p.Leave(&w[0])
		if time.Sleep(2 * limit); to[0].n.Load() != 1 {
			t.Error("one that has left is given up")
		}
	})
}

// TestWriteLimitForEver checks that without a limit no write is ended.
func TestWriteLimitForEver(t *testing.T) {
	p := &WriteLimit{Limit: -1}
	var w Write
	p.Join(&w, http.NewResponseController(httptest.NewRecorder()))
	p.Begins(&w)
	if p.timer != nil || !p.Ends(&w) {
		t.Error("there is a limit")
	}
	p.Leave(&w)
}

// TestWriteLimitOfMany checks that writes that end in time are not ended by the limit, in whatever order they begin and end.
func TestWriteLimitOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &WriteLimit{Limit: time.Second}
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				for j := range 20 {
					var w Write
					to := &patient{}
					p.Join(&w, http.NewResponseController(to))
					for k := range 5 {
						late := (i+j+k)%7 == 0
						p.Begins(&w)
						if late {
							time.Sleep(p.Limit + time.Duration(i)*time.Millisecond + 1)
						} else {
							time.Sleep(time.Duration((i*37+k*101)%999) * time.Millisecond)
						}
						if p.Ends(&w) == late {
							t.Errorf("late: %v, given up: %v", late, !late)
						}
					}
					p.Leave(&w)
				}
			})
		}
		all.Wait()
	})
}
