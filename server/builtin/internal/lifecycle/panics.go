package lifecycle

import (
	"fmt"
	"runtime/debug"
	"time"

	"go.uber.org/zap"
)

// panicsEvery is for how long no other panic is logged as an error: what is tried again panics again.
const panicsEvery = time.Minute

// caught, when it is deferred, makes an error of a panic of the program's strategies, plug-ins and storages, which are
// called here as they are for a request, which would be answered with 500. The error has the value only, since it may
// become a condition of a namespace; the stack is logged.
func (l *Lifecycle) caught(err *error) {
	v := recover()
	if v == nil {
		return
	}
	*err = fmt.Errorf("panic: %v", v)
	level, now, told := zap.DebugLevel, time.Now().Unix(), l.panicked.Load()
	if now-told >= int64(panicsEvery/time.Second) && l.panicked.CompareAndSwap(told, now) {
		level = zap.ErrorLevel
	}
	l.log.Log(level, "work on namespaces panicked", zap.String("panic", fmt.Sprint(v)), zap.ByteString("stack", debug.Stack()))
}
