// Package scenario runs the servers, one after the other, and measures what they do under each load of the bench.
//
// A run goes through sizes, rounds and servers, in this order of nesting, so that what the machine does meanwhile
// does not hit one server alone. In a session, which is one server in one round, the server is started on its
// filled storage, does everything, and is stopped. No two servers run at once, but for etcd beside the server that
// uses it.
package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/figures"
)

// Plan says how much is measured. All fields are required.
type Plan struct {
	Servers []string // of package figures
	Objects []int    // sizes, ascending; writes and watches are measured at the first
	Only    *regexp.Regexp
	Rounds  int // how often each figure is measured; watches once less, and everything at Large sizes twice less

	Get, List, Write, Mixed time.Duration // how long each is measured
	Creates                 int           // at most so many in one measurement
	Starts                  int           // on nothing
	Settle                  time.Duration // before memory is looked at
	Informers               int           // that come at once after a restart
	Watchers                []int
	StuckAmong              int           // of Watchers: that number is measured also with a reader that is stuck
	Deliveries              int           // of one measurement at full speed, about
	Paced                   time.Duration // how long events come at a pace
}

// Large is where a size counts as large: fewer clients ask for all of it, and fewer rounds are made.
const Large = 50_000

// Full is what the bench does by default.
func Full() Plan {
	return Plan{
		Servers: figures.Servers(), Objects: []int{10_000, 100_000}, Only: regexp.MustCompile(""), Rounds: 3,
		Get: 1200 * time.Millisecond, List: 2 * time.Second, Write: time.Second, Mixed: 2 * time.Second,
		Creates: 3000, Starts: 5, Settle: 10 * time.Second, Informers: 200,
		Watchers: []int{100, 1000, 5000}, StuckAmong: 1000, Deliveries: 120_000, Paced: 4 * time.Second,
	}
}

// Quick is for a look while one works: it takes a few minutes, and its figures are coarse.
func Quick() Plan {
	p := Full()
	p.Objects, p.Rounds = []int{1000, 5000}, 1
	p.Get, p.List, p.Write, p.Mixed = 400*time.Millisecond, 500*time.Millisecond, 300*time.Millisecond, 600*time.Millisecond
	p.Creates, p.Starts, p.Settle, p.Informers = 1000, 3, time.Second, 50
	p.Deliveries, p.Paced = 40_000, 800*time.Millisecond
	return p
}

// RoundsOf is how often everything is measured at a size, and RoundsOfWatches how often that is: once at least.
func (p Plan) RoundsOf(objects int) int {
	if objects >= Large {
		return max(1, p.Rounds-2)
	}
	return p.Rounds
}

// RoundsOfWatches is for RoundsOf.
func (p Plan) RoundsOfWatches() int { return max(1, p.Rounds-1) }

// Listers is how many clients ask for whole collections at once.
func (p Plan) Listers(objects int) int {
	if objects >= Large {
		return 4
	}
	return 16
}

// Scenarios returns the names of all scenarios.
func (p Plan) Scenarios() []string {
	names := []string{
		Start, Binary, Idle, Filled, FirstList, Storm, GetUnset1, GetUnset16, GetAny1, GetAny16,
		ListUnset, ListAny, ListPaged, ListGzip, ListLabel, ListIndex,
	}
	for _, watchers := range p.Watchers {
		names = append(names, WatchName(watchers, FullSpeed), WatchName(watchers, AtAPace))
		if watchers == p.StuckAmong {
			names = append(names, WatchName(watchers, WithStuck))
		}
	}
	for _, clients := range []int{1, 16} {
		for _, verb := range Verbs() {
			names = append(names, WriteName(verb, clients))
		}
	}
	return append(names, Mixed)
}

// Check says what is wrong with a plan that a user has made.
func (p Plan) Check() error {
	for _, name := range p.Servers {
		if !slices.Contains(figures.Servers(), name) {
			return fmt.Errorf("no server %q: there are %s", name, strings.Join(figures.Servers(), ", "))
		}
	}
	for i, objects := range p.Objects {
		if objects < handful || objects >= firstCreated {
			return fmt.Errorf("%d objects: a size is from %d to %d", objects, handful, firstCreated-1)
		}
		if i > 0 && objects <= p.Objects[i-1] {
			return fmt.Errorf("%d objects after %d: sizes ascend", objects, p.Objects[i-1])
		}
	}
	if !slices.ContainsFunc(p.Scenarios(), p.wants) {
		return fmt.Errorf("no scenario matches %q: there are %s", p.Only, strings.Join(p.Scenarios(), ", "))
	}
	return nil
}
