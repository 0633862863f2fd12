package main

import (
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/load"
	"github.com/keelson-dev/keelson/examples/bench/internal/proc"
	"github.com/keelson-dev/keelson/examples/bench/internal/report"
)

// report writes the results in Markdown.
func (m *measuring) report(w io.Writer, machine proc.Machine, began time.Time) error {
	var b strings.Builder
	command := strings.ReplaceAll(m.command, m.token, "TOKEN")
	if m.token == "" {
		command = m.command
	}
	fmt.Fprintf(&b, "Made by `%s` on %s in %v: %s, %d cores, %s; %s.\n\n", command, began.UTC().Format("2006-01-02 15:04 UTC"),
		time.Since(began).Round(time.Second), machine.CPU, machine.Cores, machine.Go, revision())
	fmt.Fprintf(&b, "%d definitions, %d in a group, each with a schema of its own of %d lines as YAML, %d bytes as JSON; every other one with three rules.\n\n",
		m.definitions, perGroup, schemaLines, len(definition(1)))
	m.writeServed(&b)
	m.writeMemory(&b)
	m.writeRequests(&b)
	m.writeFetches(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown revision"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "revision " + s.Value
		}
	}
	return "unknown revision"
}

func (m *measuring) writeServed(b *strings.Builder) {
	rows := [][]string{}
	few := min(100, m.definitions)
	for _, part := range []struct {
		what string
		of   []delays
	}{
		{fmt.Sprintf("the first %d", few), m.served[:few]},
		{fmt.Sprintf("the last %d", few), m.served[m.definitions-few : m.definitions]},
		{fmt.Sprintf("%d more, when all documents were asked for", more), m.served[m.definitions:]},
	} {
		var created, answered, served []time.Duration
		for _, d := range part.of {
			created, answered, served = append(created, d.created), append(answered, d.served-d.created), append(served, d.served)
		}
		row := []string{part.what}
		for _, list := range [][]time.Duration{created, answered, served} {
			sorted := slices.Sorted(slices.Values(list))
			row = append(row, both(load.Quantile(sorted, 0.5), load.Quantile(sorted, 0.99)))
		}
		rows = append(rows, row)
	}
	b.WriteString("Until its objects can be listed, p50 / p99, by a client that asks each millisecond:\n\n")
	report.Table(b, []string{"", "create is answered", "then until served", "together"}, rows)
}

func (m *measuring) writeMemory(b *strings.Builder) {
	base := m.memory[0]
	rows := [][]string{}
	for i, now := range m.memory {
		each := func(value, base float64) string {
			if i == 0 || value == 0 {
				return "–"
			}
			return report.Bytes((value - base) / float64(m.definitions-1))
		}
		heap := "–"
		if now.heap > 0 {
			heap = report.Bytes(now.heap)
		}
		rows = append(rows, []string{now.when, heap, each(now.heap, base.heap), report.Bytes(now.resident), each(now.resident, base.resident)})
	}
	b.WriteString("\nMemory; each is what is beyond one definition, the stored definition included:\n\n")
	report.Table(b, []string{"", "live heap", "each", "resident", "each"}, rows)
}

func (m *measuring) writeRequests(b *strings.Builder) {
	rows, many := [][]string{}, fmt.Sprint(m.definitions)
	for i, one := range m.requests[0] {
		all := m.requests[1][i]
		allocs := func(r request) string {
			if r.allocs == 0 {
				return "–"
			}
			return fmt.Sprintf("%.0f", r.allocs)
		}
		rows = append(rows, []string{
			one.what, report.Seconds(one.cpu.Seconds()), report.Seconds(all.cpu.Seconds()), allocs(one), allocs(all), both(one.p50, one.p99), both(all.p50, all.p99),
		})
	}
	fmt.Fprintf(b, "\nRequests for objects of one definition, beside one and beside %d, by one client:\n\n", m.definitions)
	report.Table(b, []string{"", "server CPU, 1", many, "allocations, 1", many, "p50 / p99, 1", many}, rows)
}

func (m *measuring) writeFetches(b *strings.Builder) {
	rows := [][]string{}
	for _, f := range m.fetches {
		row := []string{f.what, report.Bytes(float64(f.bytes))}
		for i := range f.took {
			row = append(row, report.Seconds(f.took[i].Seconds())+" / "+report.Seconds(f.cpu[i].Seconds()))
		}
		rows = append(rows, row)
	}
	b.WriteString("\nDocuments, time / server CPU, which is counted in steps of 10 ms:\n\n")
	report.Table(b, []string{"", "size", "first", "again", "after one more definition", "again"}, rows)
}

func both(a, b time.Duration) string {
	return report.Seconds(a.Seconds()) + " / " + report.Seconds(b.Seconds())
}
