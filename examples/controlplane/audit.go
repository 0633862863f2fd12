package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	restclient "github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/audit/logfile"
	"github.com/keelson-dev/keelson/server/audit/webhook"
	"github.com/keelson-dev/keelson/server/options"
	"go.uber.org/zap"
)

// auditing records requests as the flags say. The policy is used again when its file changes.
func auditing(o options.Audit, log *zap.Logger) server.Extension {
	return server.ExtensionFunc(func(h *server.Host) error {
		switch {
		case o.Log.Path == "" && o.Webhook.ConfigFile == "":
			return nil
		case o.PolicyFile == "":
			log.Warn("nothing is recorded: --audit-policy-file is not given")
			return nil
		}
		var backends []audit.Backend
		for _, open := range []func(*server.Host, options.Audit, *zap.Logger) (*audit.Backend, error){auditLog, auditWebhook} {
			b, err := open(h, o, log)
			if err != nil {
				return err
			}
			if b != nil {
				backends = append(backends, *b)
			}
		}
		err := h.Follow(server.ConfigFile{Name: "audit", Path: o.PolicyFile, Use: func(content []byte) error {
			policy, err := audit.ParsePolicy(content)
			if err != nil {
				return err
			}
			for i := range backends {
				backends[i].Policy = policy
			}
			return h.Audit(backends...)
		}})
		if err != nil {
			return fmt.Errorf("--audit-policy-file: %w", err)
		}
		return nil
	})
}

// auditLog opens the log of the flags; nil is none.
func auditLog(h *server.Host, o options.Audit, log *zap.Logger) (*audit.Backend, error) {
	l := o.Log
	if l.Path == "" {
		return nil, nil
	}
	var to io.Writer = os.Stdout
	if l.Path != "-" {
		file, err := logfile.Open(l.Path, logfile.Options{
			MaxMegabytes: boundOf(l.MaxSize), MaxDays: boundOf(l.MaxAge), MaxBackups: boundOf(l.MaxBackup), Compress: l.Compress,
		})
		if err != nil {
			return nil, fmt.Errorf("--audit-log-path: %w", err)
		}
		h.OnClose(func() { _ = file.Close() }) // events that were not written have been reported
		to = file
	}
	sink, err := audit.NewLog(to, audit.LogFormat(l.Format))
	if err != nil {
		return nil, fmt.Errorf("--audit-log-format: %w", err)
	}
	return delivered(h, "log", sink, l.AuditDelivery, 1, log)
}

// auditWebhook opens the webhook of the flags; nil is none.
func auditWebhook(h *server.Host, o options.Audit, log *zap.Logger) (*audit.Backend, error) {
	w := o.Webhook
	if w.ConfigFile == "" {
		return nil, nil
	}
	cfg, err := restclient.Kubeconfig(w.ConfigFile, "")
	if err != nil {
		return nil, fmt.Errorf("--audit-webhook-config-file: %w", err)
	}
	sink, err := webhook.New(cfg, webhook.Options{Backoff: w.Backoff})
	if err != nil {
		return nil, fmt.Errorf("--audit-webhook-config-file: %w", err)
	}
	h.OnClose(sink.Close)
	return delivered(h, "webhook", sink, w.AuditDelivery, max(w.Burst, 1), log)
}

// boundOf returns the bound of a logfile for that of a flag, where 0 is none.
func boundOf(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// flushTime is the time in which events that wait are delivered at the end.
const flushTime = 30 * time.Second

// delivered returns a backend that delivers events as the flags say.
func delivered(h *server.Host, name string, sink audit.Sink, d options.AuditDelivery, parallel int, log *zap.Logger) (*audit.Backend, error) {
	if d.Truncate {
		var err error
		if sink, err = audit.Truncate(sink, audit.TruncateOptions{MaxEventBytes: d.MaxEventBytes, MaxBatchBytes: d.MaxBatchBytes}); err != nil {
			return nil, fmt.Errorf("--audit-%s-truncate-enabled: %w", name, err)
		}
	}
	if d.Mode != "batch" {
		return &audit.Backend{Name: name, Sink: sink, Strict: d.Mode == "blocking-strict"}, nil
	}
	failed := func(err error, events int) {
		log.Error("audit events were not recorded", zap.String("backend", name), zap.Int("events", events), zap.Error(err))
	}
	o := audit.BatchOptions{Buffer: d.Buffer, MaxSize: d.BatchSize, MaxWait: max(d.BatchWait, time.Nanosecond), QPS: -1, Parallel: parallel, Failed: failed}
	if d.Throttle {
		o.QPS, o.Burst = float64(d.QPS), d.Burst
	}
	batch, err := audit.NewBatch(sink, o)
	if err != nil {
		return nil, fmt.Errorf("--audit-%s-mode: %w", name, err)
	}
	h.OnClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		if err := batch.Close(ctx); err != nil && !errors.Is(err, context.Canceled) {
			log.Error("audit events are lost at the end", zap.String("backend", name), zap.Error(err))
		}
	})
	return &audit.Backend{Name: name, Sink: batch}, nil
}
