package servertest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// logged is a test that keeps what is logged to it.
type logged struct {
	testing.TB
	mu    sync.Mutex
	lines []string
}

func (l *logged) Logf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// A panic of a strategy is in the log of the test, with its stack.
func TestPanicsAreLogged(t *testing.T) {
	t.Parallel()
	log := &logged{TB: t}
	srv := servertest.New(log, server.Group{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Widget", server.KindOptions[*Widget]{Strategy: registry.Strategy[*Widget]{
			Validate: func(*registry.Call, *Widget) field.ErrorList { panic("no such widget") },
		}}),
	}}}})
	resp, err := srv.Client().Post(srv.URL+"/apis/example.com/v1/namespaces/default/widgets", "application/json", strings.NewReader(`{"metadata":{"name":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	log.mu.Lock()
	defer log.mu.Unlock()
	text := strings.Join(log.lines, "\n")
	if resp.StatusCode != 500 || !strings.Contains(text, "no such widget") || !strings.Contains(text, "logs_test.go") {
		t.Errorf("%d, and the log is %q", resp.StatusCode, text)
	}
}
