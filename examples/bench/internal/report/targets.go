package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/examples/bench/internal/figures"
	"github.com/keelson-dev/keelson/examples/bench/internal/scenario"
)

// target is a target for keelson compared with another server: the ratio of their figures must be at most, or at least, a bound.
type target struct {
	title    string
	scenario string
	metric   figures.Metric
	against  string
	servers  []string // the servers of keelson that it applies to
	small    float64  // the bound for fewer than scenario.Large objects, and for scenarios without objects; 0 means none
	large    float64  // the bound for more objects; 0 means none
	least    bool     // the ratio must be at least the bound
}

// goals returns all targets.
func goals(p scenario.Plan) []target {
	all, local, etcd := keelsons(), []string{figures.KeelsonMemory, figures.KeelsonBolt}, []string{figures.KeelsonEtcd}
	cpu := func(title, name string, servers []string, small, large float64) target {
		return target{title + ", CPU", name, figures.CPU, figures.Peer, servers, small, large, false}
	}
	floor := func(title, name string, servers []string, most float64) target {
		return target{title + ", CPU", name, figures.CPU, figures.Floor, servers, most, most, false}
	}
	goals := []target{
		cpu("GET, rv unset, 1 client", scenario.GetUnset1, local, 1./4, 1./4),
		cpu("GET, rv unset, 1 client", scenario.GetUnset1, etcd, 1./2, 1./2),
		cpu("GET, rv unset, 16 clients", scenario.GetUnset16, all, 1./4, 1./4),
		cpu("GET, rv 0, 1 client", scenario.GetAny1, all, 1./4, 1./4),
		cpu("GET, rv 0, 16 clients", scenario.GetAny16, all, 1./4, 1./4),
		cpu("LIST, rv unset", scenario.ListUnset, all, 1./5, 1./4),
		cpu("LIST, rv 0", scenario.ListAny, all, 1./5, 1./4),
		cpu("LIST in pages", scenario.ListPaged, all, 0, 1./10),
		cpu("LIST, gzip", scenario.ListGzip, all, 1./42, 1./34),
		cpu("LIST of 1%", scenario.ListLabel, all, 1./18, 1./18),
	}
	for _, w := range watchRows(p) {
		if !strings.HasPrefix(w.scenario, "watch/1000/") {
			continue
		}
		goals = append(goals, cpu("delivery, "+w.title, w.scenario, all, 1./2, 1./2))
	}
	// At full speed the servers make different numbers of events, and the latency is that of the backlog.
	paced := scenario.WatchName(1000, scenario.AtAPace)
	goals = append(goals, target{"delivery, 1,000 watchers, 50 events/s, p99", paced, figures.P99, figures.Peer, all, 1. / 3, 1. / 3, false})
	goals = append(goals, writeGoals()...)
	once := func(title, name string, metric figures.Metric, servers []string, small, large float64) target {
		return target{title, name, metric, figures.Peer, servers, small, large, false}
	}
	goals = append(goals,
		once("resident memory for each object", scenario.Filled, figures.RSSPerObject, all, 2./3, 2./3),
		once("live heap for each object", scenario.Filled, figures.HeapPerObject, all, 1./2, 1./2),
		once("resident memory when idle", scenario.Idle, figures.RSS, all, 1./3, 0),
		once("stripped binary", scenario.Binary, figures.Size, all, 1./3, 0),
		once("start to ready", scenario.Start, figures.Time, all, 1./5, 0),
		once("restart to first LIST", scenario.FirstList, figures.Time, []string{figures.KeelsonBolt}, 0, 1./4),
		once("restart to first LIST", scenario.FirstList, figures.Time, etcd, 0, 1./2),
		floor("LIST, rv unset", scenario.ListUnset, all, 1.25),
		floor("LIST, rv 0", scenario.ListAny, all, 1.25),
		floor("LIST, gzip", scenario.ListGzip, all, 1.25),
	)
	for _, w := range watchRows(p) {
		goals = append(goals, floor("delivery, "+w.title, w.scenario, all, 1.25))
	}
	return append(goals,
		floor("GET, rv unset, 1 client", scenario.GetUnset1, local, 1.8),
		floor("GET, rv unset, 16 clients", scenario.GetUnset16, local, 1.8),
		floor("GET, rv 0, 1 client", scenario.GetAny1, all, 1.8),
		floor("GET, rv 0, 16 clients", scenario.GetAny16, all, 1.8))
}

// writeGoals returns the targets for writes: on the same etcd, and on bolt with every write on disk.
func writeGoals() (goals []target) {
	for _, verb := range []string{"create", "update", "patch"} {
		for _, w := range []struct {
			clients int
			bolt    float64
		}{{1, 1. / 4}, {16, 1. / 5}} {
			title, name := fmt.Sprintf("%s, %d client", verb, w.clients), scenario.WriteName(verb, w.clients)
			if w.clients > 1 {
				title += "s"
			}
			write := func(server string, metric figures.Metric, what string, bound float64, least bool) target {
				return target{title + ", " + what, name, metric, figures.Peer, []string{server}, bound, bound, least}
			}
			goals = append(goals,
				write(figures.KeelsonEtcd, figures.CPU, "CPU", 2./5, false),
				write(figures.KeelsonBolt, figures.CPU, "CPU", w.bolt, false),
				write(figures.KeelsonEtcd, figures.Throughput, "throughput", 1, true),
				write(figures.KeelsonBolt, figures.Throughput, "throughput", 3, true))
		}
	}
	return goals
}

// bound returns the bound for a number of objects, if there is one.
func (t target) bound(objects int) (float64, bool) {
	bound := t.small
	if objects >= scenario.Large {
		bound = t.large
	}
	return bound, bound > 0
}

// met reports whether a ratio meets the bound.
func (t target) met(ratio, bound float64) bool {
	if t.least {
		return ratio >= bound
	}
	return ratio <= bound
}

// targets writes the table of the targets with measured figures.
func (r Run) targets(b *strings.Builder) {
	var lines [][]string
	met, missed := 0, 0
	for _, t := range goals(r.Plan) {
		for _, objects := range append([]int{0}, r.Plan.Objects...) {
			bound, ok := t.bound(objects)
			if !ok {
				continue
			}
			size := count(float64(objects))
			if objects == 0 {
				size = ""
			}
			sign := "≤ "
			if t.least {
				sign = "≥ "
			}
			cells, any := []string{t.title, size, t.against, sign + fraction(bound)}, false
			for _, server := range keelsons() {
				ratio, ok := r.Results.Ratio(figures.Key{Scenario: t.scenario, Objects: objects, Server: server, Metric: t.metric}, t.against)
				switch ok = ok && slices.Contains(t.servers, server); {
				case !ok:
					cells = append(cells, "")
					continue
				case t.met(ratio, bound):
					met++
					cells = append(cells, ratioText(ratio)+" met")
				default:
					missed++
					cells = append(cells, "**"+ratioText(ratio)+" missed**")
				}
				any = true
			}
			if any {
				lines = append(lines, cells)
			}
		}
	}
	index, indexMet, indexMissed := r.independence()
	lines, met, missed = append(lines, index...), met+indexMet, missed+indexMissed
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Targets: %d met, %d missed\n\n", met, missed)
	table(b, []string{"ratio of", "objects", "keelson against", "wanted", "memory", "bolt", "etcd"}, lines)
}

// steady is the allowed growth of the cost of each result of an indexed LIST in a larger collection. It allows for the noise of a
// machine.
const steady = 1.25

// independence checks whether the cost of each result of an indexed LIST depends on the size of the collection.
func (r Run) independence() (lines [][]string, met, missed int) {
	sizes := r.Plan.Objects
	if len(sizes) < 2 {
		return nil, 0, 0
	}
	small, large := sizes[0], sizes[len(sizes)-1]
	cells, any := []string{
		"one result of LIST by an indexed label, CPU", count(float64(large)), "itself with " + count(float64(small)), "≤ " + fraction(steady),
	}, false
	for _, server := range keelsons() {
		key := figures.Key{Scenario: scenario.ListIndex, Objects: small, Server: server, Metric: figures.CPU}
		before, ok := r.Results.Median(key)
		key.Objects = large
		after, okAfter := r.Results.Median(key)
		if !ok || !okAfter || before == 0 {
			cells = append(cells, "")
			continue
		}
		any = true
		ratio := after / before * float64(small) / float64(large) // both find 1%
		if ratio <= steady {
			met++
			cells = append(cells, ratioText(ratio)+" met")
		} else {
			missed++
			cells = append(cells, "**"+ratioText(ratio)+" missed**")
		}
	}
	if any {
		lines = [][]string{cells}
	}
	return lines, met, missed
}
