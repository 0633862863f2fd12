package figures_test

import (
	"testing"

	"github.com/keelson-dev/keelson/examples/bench/internal/figures"
)

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		name    string
		samples []float64
		want    float64
		ok      bool
	}{
		{"none", nil, 0, false},
		{"one", []float64{3}, 3, true},
		{"two", []float64{3, 1}, 2, true},
		{"one that stands out", []float64{100, 1, 2}, 2, true},
		{"four", []float64{4, 1, 3, 2}, 2.5, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var r figures.Results
			k := figures.Key{Scenario: "get", Objects: 1, Server: figures.Peer, Metric: figures.CPU}
			for _, sample := range tt.samples {
				r.Add(k, sample)
			}
			if got, ok := r.Median(k); got != tt.want || ok != tt.ok {
				t.Errorf("Median = %v, %v; want %v, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestRatio(t *testing.T) {
	var r figures.Results
	k := figures.Key{Scenario: "get", Objects: 1, Server: figures.KeelsonBolt, Metric: figures.CPU}
	r.Add(k, 3)
	if got, ok := r.Ratio(k, figures.Peer); ok {
		t.Errorf("the ratio to what was not measured is %v", got)
	}
	peer := k
	peer.Server = figures.Peer
	r.Add(peer, 12)
	if got, ok := r.Ratio(k, figures.Peer); got != 0.25 || !ok {
		t.Errorf("Ratio = %v, %v; want 0.25", got, ok)
	}
	floor := k
	floor.Server = figures.Floor
	r.Add(floor, 0)
	if got, ok := r.Ratio(k, figures.Floor); ok {
		t.Errorf("the ratio to nothing is %v", got)
	}
}
