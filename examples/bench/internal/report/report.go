// Package report writes the results of a bench as Markdown: the targets first, then all figures with the ratios of keelson to the
// other servers.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/figures"
	"github.com/keelson-dev/keelson/examples/bench/internal/proc"
	"github.com/keelson-dev/keelson/examples/bench/internal/scenario"
)

// Run is the input of a report.
type Run struct {
	// Machine describes the machine.
	Machine proc.Machine
	// Plan is the plan of the run.
	Plan scenario.Plan
	// Results are the measured values.
	Results *figures.Results
	Command string // the command line
	// Date is when the run began.
	Date time.Time
	// Took is the duration of the run.
	Took time.Duration
}

// Write writes the report.
func Write(w io.Writer, r Run) error {
	var b strings.Builder
	r.head(&b)
	r.targets(&b)
	for i, objects := range r.Plan.Objects {
		if tables := r.sized(objects, i == 0); tables != "" {
			fmt.Fprintf(&b, "\n## With %s objects\n%s", count(float64(objects)), tables)
		}
	}
	r.life(&b)
	r.failures(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// sized returns the tables for a number of objects. Identities, writes and watches were measured only with the first number.
func (r Run) sized(objects int, first bool) string {
	var b strings.Builder
	r.tables(&b, "GET", objects, []row{
		{scenario.GetUnset1, "rv unset, 1 client"}, {scenario.GetUnset16, "rv unset, 16 clients"},
		{scenario.GetAny1, "rv 0, 1 client"}, {scenario.GetAny16, "rv 0, 16 clients"},
	})
	if first {
		r.tables(&b, "GET by identity, rv 0, 16 clients, in servers that accept them all", objects, []row{
			{scenario.AsName(scenario.AsToken), "a token of a file"}, {scenario.AsName(scenario.AsCertificate), "a client certificate"},
			{scenario.AsName(scenario.AsProxied), "headers of an authenticating proxy"},
			{scenario.AsName(scenario.AsReviewed), "a token of 1 KB that a webhook reviews"},
			{scenario.AsName(scenario.AsImpersonated), "a token, as another user"},
		})
	}
	r.tables(&b, fmt.Sprintf("LIST, %d clients", r.Plan.Listers(objects)), objects, []row{
		{scenario.ListUnset, "all, rv unset"}, {scenario.ListAny, "all, rv 0"}, {scenario.ListPaged, "all, in pages of 500"},
		{scenario.ListGzip, "all, gzip"}, {scenario.ListLabel, "1% by a label"}, {scenario.ListIndex, "1% by a label with an index"},
	})
	if first {
		r.tables(&b, "Watch: one delivery of one event to one watcher", objects, watchRows(r.Plan))
		r.tables(&b, "Writes", objects, writeRows())
		r.tables(&b, "Mixed: 16 clients, 10 watchers", objects, []row{
			{scenario.Mixed, "12 GET, 2 LIST of 1%, 3 patch, 1 update, 1 create, 1 delete"},
		})
	}
	return b.String()
}

func (r Run) head(b *strings.Builder) {
	m := r.Machine
	fmt.Fprintf(b, "# keelson beside a server built on k8s.io/apiserver\n\n")
	date := r.Date.UTC().Format("2006-01-02 15:04 UTC")
	fmt.Fprintf(b, "Made by `%s` on %s in %v, on this machine:\n\n", r.Command, date, r.Took.Round(time.Second))
	table(b, []string{"processor", "cores", "memory", "kernel", "Go", "fsync of 4 KiB"}, [][]string{
		{or(m.CPU, "?"), fmt.Sprint(m.Cores), bytesText(float64(m.Memory)), or(m.Kernel, "?"), m.Go, seconds(m.Fsync.Seconds())},
	})
	fmt.Fprintf(b, `
All servers serve the same widgets, of about 1.7 KiB as JSON, over HTTP/2 and TLS to clients on the same machine.
%s, %s and %s are this library on its three backends (bolt syncs every write), %s is a server built
on k8s.io/apiserver (generic registry, watch cache, API priority and fairness), with an etcd of its own as %s has one,
and %s is net/http over bytes that were prepared, without authentication, authorization and flow control.

The measure is the CPU time of the server process for one operation: the clients need the same processors, so that
throughput and latency say less. Time and memory of etcd are not in it. Every figure is the median of its rounds, in
each of which the servers ran one after the other: %d rounds, %d of watches, %d with %s objects and more. Ratios are
keelson's figure divided by the other server's, on memory / bolt / etcd: below 1 keelson needs less.
`, figures.KeelsonMemory, figures.KeelsonBolt, figures.KeelsonEtcd, figures.Peer, figures.KeelsonEtcd, figures.Floor,
		r.Plan.Rounds, r.Plan.RoundsOfWatches(), r.Plan.RoundsOf(scenario.Large), count(scenario.Large))
}

// row is a scenario in the tables.
type row struct{ scenario, title string }

func watchRows(p scenario.Plan) (rows []row) {
	for _, watchers := range p.Watchers {
		for _, way := range []struct{ name, title string }{
			{scenario.FullSpeed, "full speed"}, {scenario.AtAPace, "50 events/s"}, {scenario.WithStuck, "full speed, one reader stuck"},
		} {
			rows = append(rows, row{scenario.WatchName(watchers, way.name), fmt.Sprintf("%s watchers, %s", count(float64(watchers)), way.title)})
		}
	}
	return rows
}

func writeRows() (rows []row) {
	titles := map[string]string{"patch": "merge patch", "apply": "server-side apply"}
	for _, verb := range scenario.Verbs() {
		rows = append(rows, row{scenario.WriteName(verb, 1), or(titles[verb], verb) + ", 1 client"},
			row{scenario.WriteName(verb, 16), or(titles[verb], verb) + ", 16 clients"})
	}
	return rows
}

// tables writes the tables of the scenarios that were measured.
func (r Run) tables(b *strings.Builder, title string, objects int, rows []row) {
	rows = slices.DeleteFunc(rows, func(row row) bool {
		return !slices.ContainsFunc(figures.Servers(), func(server string) bool {
			_, ok := r.Results.Median(figures.Key{Scenario: row.scenario, Objects: objects, Server: server, Metric: figures.CPU})
			return ok
		})
	})
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s\n", title)
	r.compare(b, "server CPU", objects, rows, figures.CPU, seconds)
	r.show(b, "latency p50 / p99", objects, rows, func(value func(figures.Metric) float64) string {
		return seconds(value(figures.P50)) + " / " + seconds(value(figures.P99))
	})
	r.show(b, "throughput per second", objects, rows, func(value func(figures.Metric) float64) string {
		return count(value(figures.Throughput))
	})
	r.show(b, "allocated by the server: bytes, allocations", objects, rows, func(value func(figures.Metric) float64) string {
		return bytesText(value(figures.AllocBytes)) + ", " + count(value(figures.Mallocs))
	})
	if strings.HasPrefix(rows[0].scenario, "watch/") {
		b.WriteString("\nWhat the writes cost that make the events was measured without watchers and is taken off the CPU. The latency is from\n" +
			"the beginning of the write until a watcher has read the event; at full speed it is that of the backlog, and each server\n" +
			"has another, since its own writes set the pace.\n")
	}
	r.etcdTable(b, objects, rows)
	r.resumes(b, objects, rows)
}

// compare writes a table of one metric with its ratios.
func (r Run) compare(b *strings.Builder, title string, objects int, rows []row, metric figures.Metric, text func(float64) string) {
	header := append([]string{title}, figures.Servers()...)
	header = append(header, "keelson / apiserver", "keelson / floor")
	var lines [][]string
	for _, row := range rows {
		line := []string{row.title}
		for _, server := range figures.Servers() {
			line = append(line, r.cell(figures.Key{Scenario: row.scenario, Objects: objects, Server: server, Metric: metric}, text))
		}
		for _, against := range []string{figures.Peer, figures.Floor} {
			var ratios []string
			for _, server := range keelsons() {
				ratio, ok := r.ratio(figures.Key{Scenario: row.scenario, Objects: objects, Server: server, Metric: metric}, against)
				ratios = append(ratios, orDash(ok, ratioText(ratio)))
			}
			line = append(line, joined(ratios))
		}
		lines = append(lines, line)
	}
	b.WriteString("\n")
	table(b, header, lines)
}

// keelsons returns the servers of this library.
func keelsons() []string {
	return []string{figures.KeelsonMemory, figures.KeelsonBolt, figures.KeelsonEtcd}
}

// ratio is Results.Ratio. keelson with an index is compared with the others without one.
func (r Run) ratio(k figures.Key, against string) (float64, bool) {
	if k.Scenario != scenario.ListIndex {
		return r.Results.Ratio(k, against)
	}
	mine, ok := r.Results.Median(k)
	k.Scenario, k.Server = scenario.ListLabel, against
	other, okOther := r.Results.Median(k)
	if !ok || !okOther || other == 0 {
		return 0, false
	}
	return mine / other, true
}

func (r Run) cell(k figures.Key, text func(float64) string) string {
	value, ok := r.Results.Median(k)
	return orDash(ok, text(value))
}

// show writes a table whose cells have several metrics.
func (r Run) show(b *strings.Builder, title string, objects int, rows []row, text func(value func(figures.Metric) float64) string) {
	var lines [][]string
	for _, row := range rows {
		line := []string{row.title}
		for _, server := range figures.Servers() {
			key := figures.Key{Scenario: row.scenario, Objects: objects, Server: server, Metric: figures.CPU}
			_, ok := r.Results.Median(key)
			line = append(line, orDash(ok, text(func(metric figures.Metric) float64 {
				key.Metric = metric
				value, _ := r.Results.Median(key)
				return value
			})))
		}
		lines = append(lines, line)
	}
	b.WriteString("\n")
	table(b, append([]string{title}, figures.Servers()...), lines)
}

// etcdTable writes the CPU times of etcd, if there are any.
func (r Run) etcdTable(b *strings.Builder, objects int, rows []row) {
	var lines [][]string
	any := false
	for _, row := range rows {
		line := []string{row.title}
		for _, server := range []string{figures.KeelsonEtcd, figures.Peer} {
			key := figures.Key{Scenario: row.scenario, Objects: objects, Server: server, Metric: figures.EtcdCPU}
			value, _ := r.Results.Median(key)
			any = any || value > 0
			line = append(line, r.cell(key, seconds))
		}
		lines = append(lines, line)
	}
	if any {
		b.WriteString("\n")
		table(b, []string{"CPU of etcd", "for " + figures.KeelsonEtcd, "for " + figures.Peer}, lines)
	}
}

// resumes lists the servers that ended streams early.
func (r Run) resumes(b *strings.Builder, objects int, rows []row) {
	for _, row := range rows {
		for _, server := range figures.Servers() {
			n, _ := r.Results.Median(figures.Key{Scenario: row.scenario, Objects: objects, Server: server, Metric: figures.Resumes})
			if n > 0 {
				fmt.Fprintf(b, "\n%s: %s ended streams of watchers that it found too slow; the clients opened %s again.\n",
					row.title, server, count(n))
			}
		}
	}
}

// life writes the figures that are measured once in a server's life.
func (r Run) life(b *strings.Builder) {
	type line struct {
		title, scenario string
		objects         int
		metric          figures.Metric
		text            func(float64) string
	}
	lines := []line{
		{"start to ready, without objects", scenario.Start, 0, figures.Time, seconds},
		{"stripped binary", scenario.Binary, 0, figures.Size, bytesText},
		{"idle: resident", scenario.Idle, 0, figures.RSS, bytesText},
		{"idle: live heap", scenario.Idle, 0, figures.HeapLive, bytesText},
	}
	for _, objects := range r.Plan.Objects {
		title := count(float64(objects)) + " objects: "
		informers := fmt.Sprintf("restart under %d informers, ", r.Plan.Informers)
		lines = append(lines,
			line{title + "restart to first LIST", scenario.FirstList, objects, figures.Time, seconds},
			line{title + informers + "all synced", scenario.Storm, objects, figures.Time, seconds},
			line{title + informers + "resident at most", scenario.Storm, objects, figures.Peak, bytesText},
			line{title + informers + "resident at most, without files", scenario.Storm, objects, figures.PeakAnonymous, bytesText},
			line{title + informers + "requests of each", scenario.Storm, objects, figures.Asked, count},
			line{title + informers + "requests of one at most", scenario.Storm, objects, figures.MostAsked, count},
			line{title + "resident", scenario.Filled, objects, figures.RSS, bytesText},
			line{title + "live heap", scenario.Filled, objects, figures.HeapLive, bytesText},
			line{title + "resident, without files", scenario.Filled, objects, figures.Anonymous, bytesText},
			line{title + "resident for each", scenario.Filled, objects, figures.RSSPerObject, bytesText},
			line{title + "resident for each, without files", scenario.Filled, objects, figures.AnonymousPerObject, bytesText},
			line{title + "live heap for each", scenario.Filled, objects, figures.HeapPerObject, bytesText})
	}
	var body [][]string
	for _, l := range lines {
		cells, any := []string{l.title}, false
		for _, server := range figures.Servers() {
			key := figures.Key{Scenario: l.scenario, Objects: l.objects, Server: server, Metric: l.metric}
			_, ok := r.Results.Median(key)
			any = any || ok
			cells = append(cells, r.cell(key, l.text))
		}
		var ratios []string
		for _, server := range keelsons() {
			ratio, ok := r.Results.Ratio(figures.Key{Scenario: l.scenario, Objects: l.objects, Server: server, Metric: l.metric}, figures.Peer)
			ratios = append(ratios, orDash(ok, ratioText(ratio)))
		}
		if any {
			body = append(body, append(cells, joined(ratios)))
		}
	}
	if len(body) == 0 {
		return
	}
	fmt.Fprintf(b, `
## Starting, and memory

Memory is looked at after %v without requests; that of a filled server after a restart and a first LIST (%s
is filled through its API instead), and for each object what is beyond the idle server. What is resident has the files
that are mapped: bolt's database, which for a server on etcd is memory of etcd.

`, r.Plan.Settle, figures.KeelsonMemory)
	table(b, append(append([]string{""}, figures.Servers()...), "keelson / apiserver"), body)
}

func (r Run) failures(b *strings.Builder) {
	failures := r.Results.Failures()
	if len(failures) == 0 {
		return
	}
	b.WriteString("\n## Not measured\n\n")
	for _, failure := range failures {
		fmt.Fprintf(b, "* %s\n", strings.ReplaceAll(failure, "\n", "\n  "))
	}
}
