package harness

import (
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// Log receives the log of client libraries. It keeps the lines that they logged as errors. Make it with NewLog. Its methods may
// be called concurrently.
type Log struct {
	mu     sync.Mutex
	errors []string // guarded by mu
}

// NewLog returns a Log without lines.
func NewLog() *Log { return new(Log) }

// Logger returns a logger that writes to the log.
func (l *Log) Logger() logr.Logger { return logr.New(&sink{l, funcr.NewFormatter(funcr.Options{})}) }

// Errors returns the lines logged as errors so far.
func (l *Log) Errors() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.errors...)
}

// sink is a LogSink that keeps errors and drops the rest.
type sink struct {
	log *Log
	funcr.Formatter
}

func (s *sink) Enabled(int) bool         { return true }
func (s *sink) Info(int, string, ...any) {}

func (s *sink) Error(err error, msg string, kv ...any) {
	prefix, line := s.FormatError(err, msg, kv)
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.errors = append(s.log.errors, strings.TrimSpace(fmt.Sprint(prefix, " ", line)))
}

func (s *sink) WithName(name string) logr.LogSink {
	named := *s
	named.AddName(name)
	return &named
}

func (s *sink) WithValues(kv ...any) logr.LogSink {
	with := *s
	with.AddValues(kv)
	return &with
}
