package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// LogFormat is the form of the events in a log.
type LogFormat string

// The formats.
const (
	JSONLines LogFormat = "json"   // each event is a line with the JSON of an Event of audit.k8s.io/v1
	Legacy    LogFormat = "legacy" // each event is a line with its most important fields as text
)

// Log is a Sink that writes a line for each event. Each call of Record makes one call of Write, in which all lines are complete. If
// a Write fails after some bytes, the next one begins with a line end, so that only the line that was cut is damaged.
type Log struct {
	format LogFormat

	mu  sync.Mutex // guards the fields below
	w   io.Writer
	cut bool // the last line has no end
}

// NewLog returns a Log that writes to w. The Log calls Write from one goroutine at a time, and does not close w.
func NewLog(w io.Writer, format LogFormat) (*Log, error) {
	if w == nil {
		return nil, errors.New("audit: a Log needs an io.Writer")
	}
	if format != JSONLines && format != Legacy {
		return nil, fmt.Errorf("audit: unknown format %q of a log: use %q or %q", format, JSONLines, Legacy)
	}
	return &Log{format: format, w: w}, nil
}

// Record implements Sink.
func (l *Log) Record(_ context.Context, events ...*Event) error {
	var lines bytes.Buffer
	lines.WriteByte('\n') // written after a cut line
	for _, e := range events {
		if l.format == Legacy {
			lines.WriteString(legacyLine(e))
		} else if err := json.NewEncoder(&lines).Encode(e.WithKind()); err != nil {
			return fmt.Errorf("audit: event %s: %w", e.AuditID, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	text := lines.Bytes()
	if !l.cut {
		text = text[1:]
	}
	n, err := l.w.Write(text)
	switch {
	case err == nil:
		l.cut = false
	case n > 0:
		l.cut = text[min(n, len(text))-1] != '\n'
	}
	return err
}

// legacyLine returns an event as a line of the format Legacy.
func legacyLine(e *Event) string {
	user, groups, as, asGroups := "<none>", "<none>", "<self>", "<lookup>"
	if e.User.Username != "" {
		user = e.User.Username
	}
	if len(e.User.Groups) > 0 {
		groups = quotedList(e.User.Groups)
	}
	if u := e.ImpersonatedUser; u != nil {
		as = u.Username
		if len(u.Groups) > 0 {
			asGroups = quotedList(u.Groups)
		}
	}
	namespace, response, ip := "<none>", "<deferred>", "<unknown>"
	if e.ObjectRef != nil && e.ObjectRef.Namespace != "" {
		namespace = e.ObjectRef.Namespace
	}
	if e.ResponseStatus != nil {
		response = strconv.Itoa(int(e.ResponseStatus.Code))
	}
	if len(e.SourceIPs) > 0 {
		ip = e.SourceIPs[0]
	}
	return fmt.Sprintf("%s AUDIT: id=%q stage=%q ip=%q method=%q user=%q groups=%q as=%q asgroups=%q user-agent=%q namespace=%q uri=%q response=%q\n",
		e.RequestReceivedTimestamp.UTC().Format(time.RFC3339Nano), e.AuditID, e.Stage, ip, e.Verb, user, groups, as, asGroups, e.UserAgent, namespace, e.RequestURI, response)
}

func quotedList(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = strconv.Quote(s)
	}
	return strings.Join(quoted, ",")
}
