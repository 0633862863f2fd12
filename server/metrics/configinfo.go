package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// configInfo is the metric of the configuration file in use: its hash.
type configInfo struct {
	*prometheus.GaugeVec
	mu sync.Mutex // so that there is one series
}

func newConfigInfo(of string) *configInfo {
	return &configInfo{GaugeVec: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "apiserver_" + of + "_config_controller_last_config_info", Help: "Hash of the configuration file in use.",
	}, []string{"hash"})}
}

func (c *configInfo) set(content []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Reset()
	c.WithLabelValues(hashed(content)).Set(1)
}

// registerAll adds collectors to a registry: all, or none if there is an error.
func registerAll(in prometheus.Registerer, all []prometheus.Collector) error {
	for n, c := range all {
		if err := in.Register(c); err != nil {
			for _, before := range all[:n] {
				in.Unregister(before)
			}
			return err
		}
	}
	return nil
}
