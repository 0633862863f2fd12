package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/runtime/reload"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// ConfigFile is a file that configures an extension, and is used again when it changes, such as the file of an audit policy. See
// Host.Follow.
type ConfigFile struct {
	// Name is the name of the configuration, such as "audit", which all extensions share. It is part of the names of a health check
	// and of metrics, and so has only lower case letters and underscores, and begins with a letter.
	Name string
	// Path is the path of the file.
	Path string
	// Use uses the content of the file. After an error it must have changed nothing. It is not called twice at the same time.
	Use func(content []byte) error
	// Every is the time between two reads of the file; 0 is 10 s.
	Every time.Duration
	// MaxBytes bounds the content; 0 is 3 MiB.
	MaxBytes int64
}

// Follow calls Use with the content of a file, and again whenever the content has changed; see package reload. An error of the first
// call names the file. If Use fails later, or the file cannot be read, the server goes on with the content from before, and tells
// it in three ways until the file has usable content:
//
//   - The log has a line, again when the reason changes.
//   - /readyz?verbose names the check Name + "-config", whose path answers with 500 and the reason. /readyz itself succeeds: the server
//     works as before, and a mistake in a file must not end the service of all servers that have the file.
//   - The metric apiserver_<Name>_config_controller_automatic_reloads_total counts the attempts to use changed content, by status:
//     success or failure. The return to the content in use after a failure is a success.
//     apiserver_<Name>_config_controller_automatic_reload_last_timestamp_seconds has the time of the last one.
func (h *Host) Follow(f ConfigFile) error {
	if !isConfigName(f.Name) || f.Use == nil {
		return fmt.Errorf("server: Host.Follow %q: want a name of lower case letters and underscores, and a function", f.Name)
	}
	t := &followed{ConfigFile: f, log: h.s.opts.Observe.Logger}
	if err := t.register(h.Metrics()); err != nil { // before the content is used: the name may be taken
		return fmt.Errorf("server: Host.Follow %q: %w", f.Name, err)
	}
	file, err := reload.Open(f.Path, func(content []byte) (err error) {
		defer h.s.panics.Caught(&err)
		return f.Use(content)
	}, reload.Options{Every: f.Every, MaxBytes: f.MaxBytes, Tried: t.tried})
	if err != nil {
		t.unregister(h.Metrics())
		return err // it names the file
	}
	check := Check{Name: f.Name + "-config", ReadyOnly: true, advises: true, Check: func(context.Context) error { return file.Err() }}
	if err := h.Check(check); err != nil {
		t.unregister(h.Metrics())
		return err
	}
	h.OnClose(func() { t.unregister(h.Metrics()) })
	h.Go(file.Follow)
	return nil
}

// isConfigName reports whether a name may be that of a ConfigFile.
func isConfigName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return name != "" && name[0] != '_' && strings.Trim(name, letters+"_") == ""
}

// followed tells what becomes of a ConfigFile.
type followed struct {
	ConfigFile
	log   *zap.Logger
	total *prometheus.CounterVec
	last  *prometheus.GaugeVec

	mu     sync.Mutex // guards reason
	reason string     // of the last failure; "" after a success
}

// register adds the metrics. The error says that the name is taken; then none is added.
func (f *followed) register(in prometheus.Registerer) error {
	prefix := prometheus.BuildFQName("apiserver", f.Name, "config_controller_automatic_reload")
	f.total = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: prefix + "s_total", Help: "Attempts to use the changed content of the file, by status: success or failure.",
	}, []string{"status"})
	f.last = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: prefix + "_last_timestamp_seconds", Help: "Time of the last attempt to use the changed content of the file, by status: success or failure.",
	}, []string{"status"})
	if err := in.Register(f.total); err != nil {
		return err
	}
	if err := in.Register(f.last); err != nil {
		in.Unregister(f.total)
		return err
	}
	return nil
}

// unregister removes the metrics.
func (f *followed) unregister(in prometheus.Registerer) {
	in.Unregister(f.total)
	in.Unregister(f.last)
}

// tried tells of an attempt to use changed content.
func (f *followed) tried(err error) {
	status, reason := "success", ""
	if err != nil {
		status, reason = "failure", err.Error()
	}
	f.total.WithLabelValues(status).Inc()
	f.last.WithLabelValues(status).SetToCurrentTime()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch about := []zap.Field{zap.String("name", f.Name), zap.String("path", f.Path)}; {
	case err == nil:
		f.log.Info("a changed configuration file is used", about...)
	case reason != f.reason:
		f.log.Error("a changed configuration file cannot be used, and what it had before stays in use", append(about, zap.Error(err))...)
	}
	f.reason = reason
}
