package servertest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/servertest"
)

const (
	configMaps = "/api/v1/namespaces/default/configmaps"
	events     = "/api/v1/namespaces/default/events"
)

// Kubernetes keeps an event for an hour.
func TestEventsInABubble(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		srv := servertest.New(t, builtin.New(builtin.Options{}))
		watch := hear(t, srv, events+"?watch=1&timeoutSeconds=86400")
		ask(t, srv, "POST", events, `{"metadata":{"name":"e"},"involvedObject":{"kind":"ConfigMap","namespace":"default","name":"m"},"reason":"Seen"}`).want(201)
		time.Sleep(time.Hour - time.Nanosecond)
		ask(t, srv, "GET", events+"/e", "").want(200)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		ask(t, srv, "GET", events+"/e", "").want(404)
		watch.want(t, "0s ADDED e", "1h0m0s DELETED e")
	})
}

// When the server is idle, its controllers have done all work.
func TestControllersInABubble(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		srv := servertest.New(t, builtin.New(builtin.Options{}), widgets())
		ask(t, srv, "POST", "/api/v1/namespaces", `{"metadata":{"name":"a"}}`).want(201)
		ask(t, srv, "POST", widgetsOfA, `{"metadata":{"name":"w"}}`).want(201)
		ask(t, srv, "POST", configMaps, `{"metadata":{"name":"owner"}}`).want(201)
		owner := metaOf(t, ask(t, srv, "GET", configMaps+"/owner", "").want(200))
		owned := `{"metadata":{"name":"owned","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"` + string(owner.UID) + `"}]}}`
		ask(t, srv, "POST", configMaps, owned).want(201)
		synctest.Wait()
		ask(t, srv, "GET", configMaps+"/owned", "").want(200)

		ask(t, srv, "DELETE", configMaps+"/owner", "").want(200)
		ask(t, srv, "DELETE", "/api/v1/namespaces/a", "").want(200)
		synctest.Wait()
		ask(t, srv, "GET", configMaps+"/owned", "").want(404)
		ask(t, srv, "GET", widgetsOfA+"/w", "").want(404)
		ask(t, srv, "GET", "/api/v1/namespaces/a", "").want(404)
	})
}
