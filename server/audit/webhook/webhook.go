// Package webhook sends audit events to an HTTP server, as kube-apiserver does with --audit-webhook-config-file.
//
//	cfg, err := client.Kubeconfig("/etc/keelson/audit.kubeconfig", "")
//	sink, err := webhook.New(cfg, webhook.Options{})
//	defer sink.Close()
//	batch, err := audit.NewBatch(sink, audit.BatchOptions{Parallel: 15})
//
// A [Sink] waits for the server, for minutes if the server fails: requests should not wait for it, so that a Batch belongs in front
// of it.
package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/internal/background"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Options are options of a Sink. The zero values stand for the defaults, which are those of kube-apiserver.
type Options struct {
	// Attempts is how often the same events are sent, if the server fails; 0 is 5.
	Attempts int
	// Backoff is the time before the second attempt; 0 is 10 s. It grows by half with each further attempt.
	Backoff time.Duration
	// Timeout bounds an attempt; 0 is 30 s.
	Timeout time.Duration
	// Client are options of the connections. Its Timeout and Retries are those of the Sink.
	Client client.Options
}

// Sink is an audit.Sink that sends events in one POST of an EventList of audit.k8s.io/v1. An answer with a code from 200 to 206
// means that all are recorded; the body of the answer is not used. After any error the same events are sent again. Make one with
// New, and Close it. All methods may be called concurrently.
type Sink struct {
	client *client.Client
	query  url.Values
	pauses wait.Backoff
	tries  int
}

// maxAnswer bounds the answer of the server, which is not used.
const maxAnswer = 64 << 10

// New returns a Sink for the server of cfg. The error names the wrong field of cfg or of the options. New connects to nothing.
func New(cfg client.Config, o Options) (*Sink, error) {
	if o.Attempts < 0 || o.Backoff < 0 || o.Timeout < 0 {
		return nil, errors.New("audit: the options of a webhook must not be negative")
	}
	o.Client.Timeout, o.Client.Retries = cmp.Or(o.Timeout, 30*time.Second), -1
	o.Client.MaxAnswer = cmp.Or(o.Client.MaxAnswer, maxAnswer)
	c, err := client.New(cfg, o.Client)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	tries := cmp.Or(o.Attempts, 5)
	return &Sink{
		client: c, tries: tries, query: url.Values{"timeout": {o.Client.Timeout.String()}},
		pauses: wait.Backoff{Duration: cmp.Or(o.Backoff, 10*time.Second), Factor: 1.5, Jitter: 0.2, Steps: tries},
	}, nil
}

// Close ends the attempts in progress, whose events are lost, and closes the connections.
func (s *Sink) Close() { s.client.Close() }

// eventList is an EventList of audit.k8s.io/v1.
type eventList struct {
	Kind       string         `json:"kind"`
	APIVersion string         `json:"apiVersion"`
	Metadata   struct{}       `json:"metadata"`
	Items      []*audit.Event `json:"items"`
}

// Record implements audit.Sink. It returns when the server has the events, after the last attempt, or when ctx ends.
func (s *Sink) Record(ctx context.Context, events ...*audit.Event) error {
	body, err := json.Marshal(eventList{Kind: "EventList", APIVersion: "audit.k8s.io/v1", Items: events})
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	pauses := s.pauses
	for try := 1; ; try++ {
		_, err := s.client.Do(ctx, client.Request{Method: http.MethodPost, Query: s.query, Body: body})
		if err == nil {
			return nil
		}
		if try == s.tries || errors.Is(err, client.ErrClosed) {
			return fmt.Errorf("audit: %d events were not sent in %d attempts: %w", len(events), try, err)
		}
		if !background.Pause(ctx, pauses.Step()) {
			return fmt.Errorf("audit: %d events were not sent: %w", len(events), errors.Join(ctx.Err(), err))
		}
	}
}
