package metrics

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Issuers has the metrics of issuers of JSON web tokens, with the names of kube-apiserver. An issuer is named by a hash of its URL, and so
// are keys and configurations by a hash. Make one with NewIssuers. Its methods may be called concurrently.
type Issuers struct {
	in     prometheus.Registerer
	took   *prometheus.HistogramVec
	last   *prometheus.GaugeVec
	keys   *prometheus.GaugeVec
	config *configInfo

	mu   sync.Mutex        // guards held, and that a gauge has one series for each issuer
	held map[string]string // hashes of the keys, by those of the issuers
}

// NewIssuers adds the metrics to a registry. The error says that it has them already.
func NewIssuers(in prometheus.Registerer) (*Issuers, error) {
	const prefix = "apiserver_authentication_jwt_authenticator_"
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &Issuers{
		in: in, held: map[string]string{},
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "latency_seconds", Help: "Time that the authentication of a JSON web token took, by result: success or failure.",
			Buckets: []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		}, []string{"jwt_issuer_hash", "result"}),
		last:   gauge(prefix+"jwks_fetch_last_timestamp_seconds", "Time of the last attempt to get the keys of an issuer, by result: success or failure.", "jwt_issuer_hash", "result"),
		keys:   gauge(prefix+"jwks_fetch_last_key_set_info", "Hash of the keys of an issuer.", "hash", "jwt_issuer_hash"),
		config: newConfigInfo("authentication"),
	}
	if err := registerAll(in, m.all()); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Issuers) all() []prometheus.Collector {
	return []prometheus.Collector{m.took, m.last, m.keys, m.config}
}

// Close removes the metrics from the registry.
func (m *Issuers) Close() {
	for _, c := range m.all() {
		m.in.Unregister(c)
	}
}

// Authenticated counts a token.
func (m *Issuers) Authenticated(issuer string, err error, took time.Duration) {
	m.took.WithLabelValues(hashed([]byte(issuer)), resultOf(err)).Observe(took.Seconds())
}

// Fetched tells of an attempt to get the keys of an issuer, which have a hash.
func (m *Issuers) Fetched(issuer, keys string, err error) {
	of := hashed([]byte(issuer))
	m.last.WithLabelValues(of, resultOf(err)).SetToCurrentTime()
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, has := m.held[of]; has && before != keys {
		m.keys.DeleteLabelValues(before, of)
	}
	m.held[of] = keys
	m.keys.WithLabelValues(keys, of).Set(1)
}

// Configured tells of the content of a configuration file, which is now in use.
func (m *Issuers) Configured(content []byte) { m.config.set(content) }

func resultOf(err error) string {
	if err != nil {
		return "failure"
	}
	return "success"
}

func hashed(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
