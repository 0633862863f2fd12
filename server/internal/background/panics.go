package background

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// panicsEvery is the time after a logged error in which further panics are logged at the debug level: work that is tried again
// panics again.
const panicsEvery = time.Minute

// Panics turns panics of the program's strategies, plug-ins, functions and storages into errors. It is for work in the background
// that calls these; in a request such a panic is answered with 500. Make one with NewPanics. It may be used concurrently.
type Panics struct {
	log          *zap.Logger
	what         string
	lastReported atomic.Int64 // time at which a panic was last logged as an error, in Unix seconds
}

// NewPanics returns a Panics that logs with the message what.
func NewPanics(log *zap.Logger, what string) *Panics { return &Panics{log: log, what: what} }

// Caught turns a panic into an error; call it by defer. The error has only the value of the panic, since the error may become a
// condition of an object. The stack is logged.
func (p *Panics) Caught(err *error) {
	v := recover()
	if v == nil {
		return
	}
	*err = fmt.Errorf("panic: %v", v)
	level, now, last := zap.DebugLevel, time.Now().Unix(), p.lastReported.Load()
	if now-last >= int64(panicsEvery/time.Second) && p.lastReported.CompareAndSwap(last, now) {
		level = zap.ErrorLevel
	}
	p.log.Log(level, p.what, zap.String("panic", fmt.Sprint(v)), zap.ByteString("stack", debug.Stack()))
}
