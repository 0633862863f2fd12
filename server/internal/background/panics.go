package background

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// panicsEvery is for how long no other panic is logged as an error: what is tried again panics again.
const panicsEvery = time.Minute

// Panics makes errors of panics of the program's strategies, plug-ins, functions and storages. Work in the background calls these
// as a request does, which would be answered with 500. Make one with NewPanics. It may be used concurrently.
type Panics struct {
	log  *zap.Logger
	what string
	told atomic.Int64 // when a panic was last logged as an error, in seconds of Unix
}

// NewPanics returns Panics that are logged with the message what.
func NewPanics(log *zap.Logger, what string) *Panics { return &Panics{log: log, what: what} }

// Caught, when it is deferred, makes an error of a panic. The error has the value only, since it may become a condition of an
// object; the stack is logged.
func (p *Panics) Caught(err *error) {
	v := recover()
	if v == nil {
		return
	}
	*err = fmt.Errorf("panic: %v", v)
	level, now, told := zap.DebugLevel, time.Now().Unix(), p.told.Load()
	if now-told >= int64(panicsEvery/time.Second) && p.told.CompareAndSwap(told, now) {
		level = zap.ErrorLevel
	}
	p.log.Log(level, p.what, zap.String("panic", fmt.Sprint(v)), zap.ByteString("stack", debug.Stack()))
}
