package etcd

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func TestPages(t *testing.T) {
	for s, want := range map[sizing]int64{
		{}: pageFirst, {100, 3}: 96, {100, 32}: 1024, {100, 1000}: 10_000, {4 << 10, 1000}: 4096, {1 << 20, 1000}: 16, {8 << 20, 1000}: 4,
	} {
		if got := s.page(pageBytes); got != want {
			t.Errorf("%+v: %d keys in a page, want %d", s, got, want)
		}
	}
}

func TestSizesAreBounded(t *testing.T) {
	s := sizes{byTo: map[string]sizing{}}
	for i := range 3 * maxSizes {
		s.learn(fmt.Sprint(i), sizing{1, 1})
	}
	if n := len(s.byTo); n > maxSizes {
		t.Errorf("%d intervals are remembered, want at most %d", n, maxSizes)
	}
	s.learn("a", sizing{1 << 20, 1000})
	s.learn("a", sizing{10, 2})
	if got, want := s.of("a"), (sizing{1 << 19, 500}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestLeaseLength(t *testing.T) {
	for _, test := range []struct{ ttl, reuse, want time.Duration }{
		{time.Hour, time.Minute, time.Hour + time.Minute},
		{10 * time.Minute, time.Minute, 10*time.Minute + 30*time.Second},
		{15 * time.Second, time.Minute, 15 * time.Second},
		{time.Second, time.Minute, time.Second},
		{time.Millisecond, time.Minute, time.Second},
		{1500 * time.Millisecond, time.Minute, 2 * time.Second},
		{time.Hour, 0, time.Hour},
		{time.Hour, 90 * time.Second, time.Hour + 90*time.Second},
		{math.MaxInt64, time.Minute, maxTTL},
		{maxTTL - time.Second, math.MaxInt64, maxTTL},
	} {
		if got := granted(test.ttl, test.reuse); got != test.want {
			t.Errorf("TTL %v, reuse %v: %v, want %v", test.ttl, test.reuse, got, test.want)
		}
	}
}

func TestLeaseFits(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		l    lease
		want bool
	}{
		"new":               {lease{ttl: time.Hour, expires: now.Add(time.Hour + time.Minute), wall: now.Add(time.Hour + time.Minute), keys: 1}, true},
		"just long enough":  {lease{ttl: time.Hour, expires: now.Add(time.Hour), wall: now.Add(time.Hour), keys: 1}, true},
		"too short":         {lease{ttl: time.Hour, expires: now.Add(time.Hour - 1), wall: now.Add(time.Hour - 1), keys: 1}, false},
		"room for one more": {lease{ttl: time.Hour, expires: now.Add(2 * time.Hour), wall: now.Add(2 * time.Hour), keys: 9}, true},
		"full":              {lease{ttl: time.Hour, expires: now.Add(2 * time.Hour), wall: now.Add(2 * time.Hour), keys: 10}, false},
		"the machine slept": {lease{ttl: time.Hour, expires: now.Add(2 * time.Hour), wall: now.Add(time.Minute), keys: 1}, false},
		"the clock was set": {lease{ttl: time.Hour, expires: now.Add(time.Minute), wall: now.Add(2 * time.Hour), keys: 1}, false},
	} {
		if got := test.l.fits(now, 10); got != test.want {
			t.Errorf("%s: fits is %v", name, got)
		}
	}
}

func TestVersions(t *testing.T) {
	for version, ok := range map[string]bool{
		"3.5.13": true, "3.5.14": true, "3.6.0": true, "3.6.0-alpha.0": true, "3.10.0": true, "4.0.0": true, "3.5.13+git": true,
		"3.5.12": false, "3.4.30": false, "3.4.99": false, "2.9.99": false, "": false, "3.5": false, "3.5.x": false, "3.5.-1": false,
	} {
		if err := checkVersion(version); (err == nil) != ok {
			t.Errorf("version %q: %v", version, err)
		}
	}
}
