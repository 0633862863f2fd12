// Package scenario runs the servers, one after the other, and measures them under each load of the bench.
//
// A run iterates over sizes, rounds and servers, in this order of nesting, so that a disturbance of the machine does not affect
// only one server. A session is one server in one round: the server is started on its filled storage, does everything, and is
// stopped. No two servers run at once, except for an etcd and the server that uses it.
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
	Servers []string // names of package figures
	Objects []int    // sizes, ascending; writes and watches are measured only at the first
	// Only selects the scenarios by name.
	Only   *regexp.Regexp
	Rounds int // how often each figure is measured; watches once less, and everything at Large sizes twice less

	Get, List, Write, Mixed time.Duration // duration of each measurement
	Creates                 int           // maximum number of creates in one measurement
	Starts                  int           // number of starts on an empty storage
	Settle                  time.Duration // delay before memory is measured
	Informers               int           // number of informers that return at once after a restart
	// Watchers are the numbers of watchers to measure.
	Watchers   []int
	StuckAmong int           // one of Watchers, which is measured also with a stuck reader
	Deliveries int           // about how many deliveries one measurement at full speed has
	Paced      time.Duration // duration of measurements with AtAPace
}

// Large is the size from which fewer clients list everything, and fewer rounds are made.
const Large = 50_000

// Full returns the default plan.
func Full() Plan {
	return Plan{
		Servers: figures.Servers(), Objects: []int{10_000, 100_000}, Only: regexp.MustCompile(""), Rounds: 3,
		Get: 1200 * time.Millisecond, List: 2 * time.Second, Write: time.Second, Mixed: 2 * time.Second,
		Creates: 3000, Starts: 5, Settle: 10 * time.Second, Informers: 200,
		Watchers: []int{100, 1000, 5000}, StuckAmong: 1000, Deliveries: 120_000, Paced: 4 * time.Second,
	}
}

// Quick returns a plan for development: it takes a few minutes, and its figures are coarse.
func Quick() Plan {
	p := Full()
	p.Objects, p.Rounds = []int{1000, 5000}, 1
	p.Get, p.List, p.Write, p.Mixed = 400*time.Millisecond, 500*time.Millisecond, 300*time.Millisecond, 600*time.Millisecond
	p.Creates, p.Starts, p.Settle, p.Informers = 1000, 3, time.Second, 50
	p.Deliveries, p.Paced = 40_000, 800*time.Millisecond
	return p
}

// RoundsOf returns how often everything is measured at a size; at least once.
func (p Plan) RoundsOf(objects int) int {
	if objects >= Large {
		return max(1, p.Rounds-2)
	}
	return p.Rounds
}

// RoundsOfWatches returns how often watches are measured; at least once.
func (p Plan) RoundsOfWatches() int { return max(1, p.Rounds-1) }

// Listers returns the number of clients that list whole collections at once.
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
	names = append(names, Mixed)
	for _, identity := range Identities() {
		names = append(names, AsName(identity))
	}
	return names
}

// Check returns an error if a plan of a user is invalid.
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
