package accounts

import (
	"github.com/keelson-dev/keelson/authn/serviceaccount"
	"github.com/keelson-dev/keelson/server"
	"github.com/prometheus/client_golang/prometheus"
)

// counters count the uses of tokens, with the names of kube-apiserver.
type counters map[serviceaccount.Use]prometheus.Counter

// newCounters returns counters that are in the metrics of a server until it ends.
func newCounters(h *server.Host) (counters, error) {
	c := counters{}
	for use, of := range map[serviceaccount.Use]struct{ name, help string }{
		serviceaccount.Legacy:            {"legacy_tokens_total", "Tokens of Secrets that were verified, also those that were refused after their signature."},
		serviceaccount.LegacyManual:      {"legacy_manual_token_uses_total", "Tokens of Secrets that somebody made."},
		serviceaccount.LegacyGenerated:   {"legacy_auto_token_uses_total", "Tokens of Secrets that their account lists."},
		serviceaccount.LegacyInvalidated: {"invalid_legacy_auto_token_uses_total", "Tokens of Secrets that have been marked invalid."},
		serviceaccount.Fresh:             {"valid_tokens_total", "Extended tokens that were used before their client should have read another one."},
		serviceaccount.Stale:             {"stale_tokens_total", "Extended tokens that were used after their client should have read another one."},
	} {
		counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "serviceaccount_" + of.name, Help: of.help})
		if err := h.Metrics().Register(counter); err != nil {
			return nil, err
		}
		h.OnClose(func() { h.Metrics().Unregister(counter) })
		c[use] = counter
	}
	return c, nil
}

// count counts a use.
func (c counters) count(use serviceaccount.Use) {
	if counter := c[use]; counter != nil {
		counter.Inc()
	}
}
