// Package client is a client of other servers of the Kubernetes API. It sends single requests, such as delegated decisions and
// calls of webhooks that are configured by a kubeconfig, and it keeps copies of the objects of another server in memory. It does
// not use client-go.
//
// # Configuration
//
//	cfg, err := client.Kubeconfig("/etc/keelson/delegate.kubeconfig", "")
//	c, err := client.New(cfg, client.Options{})
//	defer c.Close()
//
// A [Config] has the address of a server, the authorities to trust and the credentials of the client. [Kubeconfig] reads it from
// a file, [InCluster] from the environment of a pod, and a program may also fill it in. Tokens and client certificates in files
// are read again when they change. Errors name the file and the field and say what to do. They contain no secrets.
//
// # Requests
//
// A [Client] owns the connections to one server. [Client.Do] sends any request. A request without a path goes to the configured
// URL itself, as webhooks need it:
//
//	answer, err := c.Do(ctx, client.Request{Method: http.MethodPost, Body: review})
//
// Get, List, Create, Update and Delete are for the objects of a [Target]. They decode the answer into a Go struct, an
// unstructured.Unstructured or a json.RawMessage. [Client.Watch] returns a stream of events. [Client.Resource] finds the resource
// of a kind by discovery.
//
// The time of each request and the size of each answer and of each event of a watch are limited by [Options]. Answers with the
// code 429 or 503 and a Retry-After header make the client send the request again, up to Options.Retries times and while the
// timeout allows. Redirects are followed only within the server.
//
// # Readers
//
// [Readers] implements runtime.Readers with the objects of another server:
//
//	readers := client.NewReaders(c, client.ReadersOptions{Scheme: scheme})
//	defer readers.Close()
//	airport, err := runtime.Read[*Airport](readers).Get(ctx, "", "muc", runtime.Freshness{})
package client
