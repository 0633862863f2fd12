package embedded

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// failure is the first error after which etcd would end the process. etcd logs the error as fatal or panics in its logger.
// The hooks of the logger record it and end only the calling goroutine, so that what must not continue does not.
type failure struct {
	happened chan struct{} // closed after the first error
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

// lastWords is the message that etcd logs when it stops and cannot close its log. The goroutine must not end then, because
// others wait for it.
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

// reason returns the first error, or nil.
func (f *failure) reason() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
