package crd

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// panicsEvery is for how long no other panic is logged as an error: what is tried again panics again.
const panicsEvery = time.Minute

// panics is when a panic was last logged as an error, in seconds of Unix. It may be used concurrently.
type panics struct{ loggedAt atomic.Int64 }

// caught, when it is deferred, makes an error of a panic of the program's plug-ins and functions, which are called here as
// they are for a request, which would be answered with 500. The error has the value only, since it may become a condition;
// the stack is logged.
func (c *controller) caught(err *error) {
	v := recover()
	if v == nil {
		return
	}
	*err = fmt.Errorf("panic: %v", v)
	level, now, loggedAt := zap.DebugLevel, time.Now().Unix(), c.panics.loggedAt.Load()
	if now-loggedAt >= int64(panicsEvery/time.Second) && c.panics.loggedAt.CompareAndSwap(loggedAt, now) {
		level = zap.ErrorLevel
	}
	c.log.Log(level, "work on definitions panicked", zap.String("panic", fmt.Sprint(v)), zap.ByteString("stack", debug.Stack()))
}
