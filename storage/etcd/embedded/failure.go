package embedded

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// failure is the first error after which etcd would end the process. etcd says it to its logger, which ends the
// goroutine instead: what must not go on does not.
type failure struct {
	happened chan struct{} // closed with the first
	mu       sync.Mutex    // guards err
	err      error
}

func newFailure() *failure { return &failure{happened: make(chan struct{})} }

func (f *failure) logger(lg *zap.Logger) *zap.Logger {
	if lg == nil {
		lg = zap.NewNop()
	}
	return lg.WithOptions(zap.WithFatalHook(f), zap.WithPanicHook(f))
}

// lastWords are what etcd says when it stops and its log cannot even be closed. It must go on then: others wait for
// its end.
const lastWords = "failed to close Raft storage"

// OnWrite implements zapcore.CheckWriteHook.
func (f *failure) OnWrite(ce *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New(ce.Message)
	for _, field := range fields {
		if cause, ok := field.Interface.(error); ok {
			err = fmt.Errorf("%s: %w", ce.Message, cause)
		}
	}
	f.set(err)
	if ce.Message != lastWords {
		runtime.Goexit()
	}
}

func (f *failure) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
		close(f.happened)
	}
}

// reason is nil before the first.
func (f *failure) reason() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
